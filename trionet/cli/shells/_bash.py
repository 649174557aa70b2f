"""Completion for bash."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from ._tree import Place, Value

_HEAD = """\
# bash completion for trionet; written by `trionet completion bash`.

_trionet() {
    local at="" word i
    local current=${COMP_WORDS[COMP_CWORD]}
    local before=${COMP_WORDS[COMP_CWORD-1]}
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        case "$at/$word" in
"""
_MIDDLE = """\
                at="$at/$word" ;;
        esac
    done
    case "$at $before" in
"""
_BETWEEN = """\
    esac
    case "$at" in
"""
_TAIL = """\
    esac
}

_trionet_words() {
    COMPREPLY=($(compgen -W "$1" -- "$2"))
}

_trionet_files() {
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen -f -- "$1"))
}

complete -F _trionet trionet
"""


def script(places: Iterable[Place]) -> str:
    """The text of the file."""
    found = list(places)
    below = [_path(place) for place in found if place.words]
    return "".join(
        (
            _HEAD,
            f"            {' | '.join(below)})\n",
            _MIDDLE,
            *(line for place in found for line in _values(place)),
            _BETWEEN,
            *(line for place in found for line in _words(place)),
            _TAIL,
        )
    )


def _path(place: Place) -> str:
    return "".join(f"/{word}" for word in place.words)


def _values(place: Place) -> Iterator[str]:
    """What follows an option."""
    for option in place.options:
        if option.value is not None:
            patterns = " | ".join(shlex.quote(f"{_path(place)} {flag}") for flag in option.flags)
            yield f"        {patterns})\n            {_completed(option.value)}\n"
            yield "            return ;;\n"


def _words(place: Place) -> Iterator[str]:
    """What stands by itself: options where a dash is typed, else commands, words or files."""
    flags = " ".join(flag for option in place.options for flag in option.flags)
    names = " ".join(name for name, _ in place.commands)
    yield f"        {shlex.quote(_path(place))})\n"
    yield "            if [[ $current == -* ]]; then\n"
    yield f"                {_words_of(flags)}\n"
    if names:
        yield f"            else\n                {_words_of(names)}\n"
    elif place.value is not None and (place.value.choices or place.value.is_file):
        yield f"            else\n                {_completed(place.value)}\n"
    yield "            fi ;;\n"


def _completed(value: Value) -> str:
    if value.choices:
        return _words_of(" ".join(value.choices))
    return '_trionet_files "$current"' if value.is_file else ":"


def _words_of(words: str) -> str:
    return f'_trionet_words {shlex.quote(words)} "$current"'
