"""What docs/reference/cli-admin.md has of each subcommand: its usage and its arguments.

`python3 -m support.cli_tables` with `PYTHONPATH=.:tests` writes it there, and leaves what stands
between the tables as it is.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from trionet.cli.clients._connection import add_connection_arguments
from trionet.cli.main import whole_parser
from trionet.cli.terminal._output import add_format_arguments

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli-admin.md"
#: The commands whose subcommands the page has.
COMMANDS: Final = ("topics", "groups", "configs", "config", "cluster", "transactions")
# A heading, up to the end of the table below it.
SECTION: Final = re.compile(
    r"^### `trionet (?P<words>[a-z -]+)`\n\n(?P<usage>`.*`\n)(?P<table>\n(?:\|.*\n)+)?",
    re.MULTILINE,
)


@cache
def subcommands() -> dict[str, argparse.ArgumentParser]:
    """Every subcommand without subcommands of its own, by its words."""
    found = {}
    for words, parser in _below(whole_parser(), ()):
        if words and words[0] in COMMANDS:
            found[" ".join(words)] = parser
    return found


def section(words: str, parser: argparse.ArgumentParser) -> str:
    """The heading, the usage and the arguments."""
    actions = [each for each in parser._actions if not _is_shared(each)]
    names = [_metavar(each) for each in actions if not each.option_strings]
    options = ["[OPTIONS]"] if any(each.option_strings for each in actions) else []
    usage = " ".join(["trionet", words, *options, *names])
    rows = [f"| {_name(each)} | {_text(each)} |\n" for each in actions]
    table = ["\n| Argument | Meaning |\n|---|---|\n", *rows] if rows else []
    return "".join([f"### `trionet {words}`\n\n`{usage}`\n", *table])


def _below(
    parser: argparse.ArgumentParser, words: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, each in action.choices.items():
                yield from _below(each, (*words, name))
            return
    yield words, parser


@cache
def _shared() -> set[tuple[str, ...]]:
    parser = argparse.ArgumentParser()
    add_connection_arguments(parser)
    add_format_arguments(parser)
    return {tuple(action.option_strings) for action in parser._actions}


def _is_shared(action: argparse.Action) -> bool:
    return tuple(action.option_strings) in _shared()


def _metavar(action: argparse.Action) -> str:
    name = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    return {"*": f"[{name} ...]", "+": f"{name} ...", "?": f"[{name}]"}.get(
        str(action.nargs or ""), name
    )


def _name(action: argparse.Action) -> str:
    if not action.option_strings:
        return f"`{action.metavar or action.dest.upper()}`"
    value = ""
    if action.nargs != 0:
        value = f" {action.metavar or '|'.join(map(str, action.choices or ()))}"
    return ", ".join(f"`{flag}{value}`" for flag in action.option_strings).replace("|", "\\|")


def _text(action: argparse.Action) -> str:
    return str(action.help).replace("%%", "%").replace("|", "\\|")


def main() -> None:
    parsers = subcommands()
    text = PAGE.read_text("utf-8")

    def replaced(found: re.Match[str]) -> str:
        return section(found["words"], parsers[found["words"]])

    PAGE.write_text(SECTION.sub(replaced, text), encoding="utf-8")


if __name__ == "__main__":
    main()
