"""``trionet completion``: print a completion script for a shell, generated from the parsers."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from ..terminal._output import stdout

_FILES: Final = re.compile(r"FILE|DIR|PATH|FOLDER|INPUT")
#: The names to look up for a value, keyed by how it is called in the help text.
_NAMES: Final = {"TOPIC": "topics", "GROUP": "groups", "VIEW": "views"}
#: What creates a topic has no use for the names of those that exist.
_NEW_NAMES: Final = ("topics", "create")


class Value(NamedTuple):
    """The value of an option or a positional argument.

    Attributes:
        choices: the allowed words; empty if any text is allowed.
        is_file: whether the value is the path of a file or directory.
        names: the kind of names to look up: ``topics``, ``groups``, ``views``, or none.
    """

    choices: tuple[str, ...]
    is_file: bool
    names: str = ""

    @property
    def is_known(self) -> bool:
        """Whether there is anything to offer."""
        return bool(self.choices or self.is_file or self.names)


class Option(NamedTuple):
    """A command-line option.

    Attributes:
        flags: the spellings, such as ``-b`` and ``--brokers``.
        help: the help text.
        value: the value; None for a flag without a value.
    """

    flags: tuple[str, ...]
    help: str
    value: Value | None


class Place(NamedTuple):
    """A command and the words that may follow it.

    Attributes:
        words: the words after ``trionet``, such as a command and a subcommand; empty at the root.
        commands: the names and summaries of the subcommands.
        options: the options.
        value: the first positional argument; None if there is none.
    """

    words: tuple[str, ...]
    commands: tuple[tuple[str, str], ...]
    options: tuple[Option, ...]
    value: Value | None


def places(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> Iterator[Place]:
    """Yield all commands, each before its subcommands."""
    options: list[Option] = []
    commands: dict[str, str] = {}
    below: dict[str, argparse.ArgumentParser] = {}
    value: Value | None = None
    for action in parser._actions:  # noqa: SLF001
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            below.update(action.choices)
            shown = action._choices_actions  # noqa: SLF001
            commands = {str(each.dest): _help(each) for each in shown}
        elif action.option_strings:
            argument = None if action.nargs == 0 else _value(action, words)
            options.append(Option(tuple(action.option_strings), _help(action), argument))
        else:
            value = value or _value(action, words)
    yield Place(words, tuple(commands.items()), tuple(options), value)
    for name, each in below.items():
        yield from places(each, (*words, name))


def _value(action: argparse.Action, words: tuple[str, ...]) -> Value:
    choices = tuple(map(str, action.choices)) if action.choices is not None else ()
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    kind = re.split(r"[\[:]", metavar, maxsplit=1)[0]  # TOPIC[:N,...] begins with a topic
    names = "" if choices or words == _NEW_NAMES else _NAMES.get(kind, "")
    return Value(choices, _FILES.fullmatch(metavar) is not None, names)


def _help(action: argparse.Action) -> str:
    """Return the first clause of the help text, which fits on one line."""
    text = "" if action.help in {None, argparse.SUPPRESS} else str(action.help)
    return re.split(r"[;(:]", text.replace("%%", "%"), maxsplit=1)[0].strip()


_CASES_MIDDLE = """\
                at="$at/$word" ;;
        esac
    done
    case "$at $before" in
"""
_CASES_BETWEEN = """\
    esac
    case "$at" in
"""


class _Cases(NamedTuple):
    """A shell whose completion script consists of ``case`` statements.

    Attributes:
        head: the beginning of the script.
        tail: the end of the script.
        pattern: the form of the pattern of a case.
        separator: what separates alternative patterns.
        current: the word that is completed.
        options: returns the lines that complete the options of a place.
        commands: returns the lines that complete the subcommands of a place.
        value: returns the command that completes a value.
    """

    head: str
    tail: str
    pattern: str
    separator: str
    current: str
    options: Callable[[Place], str]
    commands: Callable[[Place], str]
    value: Callable[[Value], str]

    def script(self, places: Sequence[Place]) -> str:
        """Return the completion script."""
        below = " | ".join(self.pattern.format(_path(place)) for place in places if place.words)
        values = [line for place in places for line in self._values(place)]
        words = [line for place in places for line in self._words(place)]
        before = [self.head, f"            {below})\n", _CASES_MIDDLE]
        return "".join([*before, *values, _CASES_BETWEEN, *words, self.tail])

    def _values(self, place: Place) -> Iterator[str]:
        """Yield the cases that complete the values of options."""
        for option in place.options:
            if option.value is not None:
                flags = (shlex.quote(f"{_path(place)} {flag}") for flag in option.flags)
                yield f"        {self.pattern.format(self.separator.join(flags))})\n"
                yield f"            {self.value(option.value)}\n            return ;;\n"

    def _words(self, place: Place) -> Iterator[str]:
        """Yield the case of a place: options after a dash, otherwise commands, words or files."""
        yield f"        {self.pattern.format(shlex.quote(_path(place)))})\n"
        yield f"            if [[ {self.current} == -* ]]; then\n"
        yield self.options(place)
        if place.commands:
            yield f"            else\n{self.commands(place)}"
        elif place.value is not None and place.value.is_known:
            yield f"            else\n                {self.value(place.value)}\n"
        yield "            fi ;;\n"


def _path(place: Place) -> str:
    return "".join(f"/{word}" for word in place.words)


_BASH_HEAD = """\
# bash completion for trionet; generated by `trionet completion bash`.

_trionet() {
    local at="" word i
    local current=${COMP_WORDS[COMP_CWORD]}
    local before=${COMP_WORDS[COMP_CWORD-1]}
    COMPREPLY=()
    # Bash splits --option=value into three words, and KEY=VALUE too.
    if [[ $current == = || $before == = ]]; then
        [[ $current == = ]] && current="" || before=${COMP_WORDS[COMP_CWORD-2]}
        [[ $before == -* ]] || return
    fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        case "$at/$word" in
"""
_BASH_TAIL = """\
    esac
}

_trionet_words() {
    COMPREPLY=($(compgen -W "$1" -- "$2"))
}

_trionet_files() {
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen -f -- "$1"))
}

# Without compgen, which would expand what a name contains.
_trionet_names() {
    local name
    while IFS= read -r name; do
        [[ $name == "$2"* ]] && COMPREPLY+=("$(printf %q "$name")")
    done < <("${COMP_WORDS[0]}" __complete "$1" "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
}

complete -F _trionet trionet
"""


def _bash_line(words: Iterable[str]) -> str:
    return f"                {_bash_words(words)}\n"


def _bash_words(words: Iterable[str]) -> str:
    return f'_trionet_words {shlex.quote(" ".join(words))} "$current"'


def _bash_value(value: Value) -> str:
    if value.choices:
        return _bash_words(value.choices)
    if value.names:
        return f'_trionet_names {value.names} "$current"'
    return '_trionet_files "$current"' if value.is_file else ":"


_BASH: Final = _Cases(
    _BASH_HEAD,
    _BASH_TAIL,
    pattern="{}",
    separator=" | ",
    current="$current",
    options=lambda place: _bash_line(flag for each in place.options for flag in each.flags),
    commands=lambda place: _bash_line(name for name, _ in place.commands),
    value=_bash_value,
)

_ZSH_HEAD = """\
#compdef trionet
# zsh completion for trionet; generated by `trionet completion zsh`.

_trionet() {
    local at="" word i before=${words[CURRENT-1]}
    local -a found
    if [[ ${words[CURRENT]} == --*=* ]]; then
        before=${words[CURRENT]%%=*}
        compset -P 1 '*='
    fi
    for ((i = 2; i < CURRENT; i++)); do
        word=${words[i]}
        case "$at/$word" in
"""
_ZSH_TAIL = """\
    esac
}

_trionet_names() {
    local line="${(j: :)words[1,CURRENT]}"
    local -a names=(${(f)"$("${(Q)words[1]}" __complete $1 "$line" 2>/dev/null)"})
    compadd -a names
}

if [[ $funcstack[1] == _trionet ]]; then
    _trionet "$@"
else
    compdef _trionet trionet
fi
"""


def _zsh_described(tag: str, words: Iterable[tuple[str, str]]) -> str:
    lines = (f"                    {shlex.quote(f'{word}:{text}')}\n" for word, text in words)
    found = f"                found=(\n{''.join(lines)}                )\n"
    return f"{found}                _describe {tag} found\n"


def _zsh_value(value: Value) -> str:
    if value.choices:
        return f"compadd -- {' '.join(map(shlex.quote, value.choices))}"
    if value.names:
        return f"_trionet_names {value.names}"
    return "_files" if value.is_file else "_message value"


_ZSH: Final = _Cases(
    _ZSH_HEAD,
    _ZSH_TAIL,
    pattern="({})",
    separator="|",
    current="${words[CURRENT]}",
    options=lambda place: _zsh_described(
        "-o option", ((flag, each.help) for each in place.options for flag in each.flags)
    ),
    commands=lambda place: _zsh_described("command", place.commands),
    value=_zsh_value,
)

_FISH_HEAD = """\
# fish completion for trionet; generated by `trionet completion fish`.

function __trionet_at --description 'Whether the command line has these commands'
    set -l at
    for word in (commandline -opc)[2..-1]
        if contains -- (string join -- / $at $word) $__trionet_places
            set -a at $word
        end
    end
    test "$argv" = "$at"
end

function __trionet_names
    set -l words (commandline -opc)
    $words[1] __complete $argv[1] (commandline -cp) 2>/dev/null
end

complete -c trionet -f
"""


def _fish_script(places: Sequence[Place]) -> str:
    paths = " ".join("/".join(place.words) for place in places if place.words)
    lines = (line for place in places for line in _fish_lines(place))
    return "".join((_FISH_HEAD, f"set -g __trionet_places {paths}\n", *lines))


def _fish_lines(place: Place) -> Iterator[str]:
    here = f"complete -c trionet -n {_fish_quoted(' '.join(['__trionet_at', *place.words]))}"
    for name, text in place.commands:
        yield f"{here} -a {_fish_quoted(name)} -d {_fish_quoted(text)}\n"
    for option in place.options:
        yield f"{here}{_fish_option(option)} -d {_fish_quoted(option.help)}\n"
    if place.value is not None and place.value.is_known:
        yield f"{here}{_fish_value(place.value)}\n"


def _fish_option(option: Option) -> str:
    flags = "".join(
        f" -l {flag[2:]}" if flag.startswith("--") else f" -s {flag[1:]}" for flag in option.flags
    )
    return flags if option.value is None else f"{flags} -r{_fish_value(option.value)}"


def _fish_value(value: Value) -> str:
    if value.choices:
        return f" -f -a {_fish_quoted(' '.join(value.choices))}"
    if value.names:
        return f" -f -a {_fish_quoted(f'(__trionet_names {value.names})')}"
    return " -F" if value.is_file else " -f"


def _fish_quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


#: Returns the completion script of a shell, keyed by the name of the shell.
SHELLS: Final[dict[str, Callable[[Sequence[Place]], str]]] = {
    "bash": _BASH.script,
    "zsh": _ZSH.script,
    "fish": _fish_script,
}
_INSTALLATION: Final = """\
bash: trionet completion bash > ~/.local/share/bash-completion/completions/trionet
zsh:  trionet completion zsh > ~/.zfunc/_trionet   (with fpath+=~/.zfunc before compinit)
fish: trionet completion fish > ~/.config/fish/completions/trionet.fish
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.description = (
        "Print a script that lets a shell complete commands, options and their values. It covers "
        "the commands of this version. Names of topics and groups are looked up in the cluster of "
        "the command line, for at most a second."
    )
    parser.epilog = _INSTALLATION
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("shell", choices=SHELLS, help="the shell")


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status."""
    from ..main import whole_parser

    stdout().write(SHELLS[arguments.shell](list(places(whole_parser()))))
    return 0
