"""What may be typed where, read from the parsers."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_FILES: Final = re.compile(r"FILE|DIR|PATH|FOLDER|INPUT")


class Value(NamedTuple):
    """What stands behind an option, or by itself.

    Attributes:
        choices: the words that are allowed; none for any.
        is_file: it names a file or a folder.
    """

    choices: tuple[str, ...]
    is_file: bool


class Option(NamedTuple):
    """An option.

    Attributes:
        flags: how it is written: ``-b``, ``--brokers``.
        help: what it does.
        value: what stands behind it; None for nothing.
    """

    flags: tuple[str, ...]
    help: str
    value: Value | None


class Place(NamedTuple):
    """What may follow some words.

    Attributes:
        words: the words behind ``trionet``: none, or a command and its subcommand.
        commands: subcommands, and what they do.
        options: the options.
        value: what else is taken here; None for nothing.
    """

    words: tuple[str, ...]
    commands: tuple[tuple[str, str], ...]
    options: tuple[Option, ...]
    value: Value | None


def places(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> Iterator[Place]:
    """All places, those of a command before those of its subcommands."""
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
            taken = None if action.nargs == 0 else _value(action)
            options.append(Option(tuple(action.option_strings), _help(action), taken))
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
    """The first clause of the help, short enough for a line beside others."""
    text = "" if action.help in {None, argparse.SUPPRESS} else str(action.help)
    return re.split(r"[;(:]", text.replace("%%", "%"), maxsplit=1)[0].strip()
