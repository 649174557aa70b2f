"""The tree of commands, options and values for completion, built from the parsers."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_FILES: Final = re.compile(r"FILE|DIR|PATH|FOLDER|INPUT")


class Value(NamedTuple):
    """The value of an option or a positional argument.

    Attributes:
        choices: the allowed words; empty if any text is allowed.
        is_file: whether the value is the path of a file or directory.
    """

    choices: tuple[str, ...]
    is_file: bool


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
            argument = None if action.nargs == 0 else _value(action)
            options.append(Option(tuple(action.option_strings), _help(action), argument))
        else:
            value = value or _value(action)
    yield Place(words, tuple(commands.items()), tuple(options), value)
    for name, each in below.items():
        yield from places(each, (*words, name))


def _value(action: argparse.Action) -> Value:
    choices = tuple(map(str, action.choices)) if action.choices is not None else ()
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    return Value(choices, _FILES.fullmatch(metavar) is not None)


def _help(action: argparse.Action) -> str:
    """Return the first clause of the help text, which fits on one line."""
    text = "" if action.help in {None, argparse.SUPPRESS} else str(action.help)
    return re.split(r"[;(:]", text.replace("%%", "%"), maxsplit=1)[0].strip()
