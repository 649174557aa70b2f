"""docs/reference/cli-records.md names the options, verbs, modifiers, types and fields."""

from __future__ import annotations

import argparse
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

import pytest

from support.cli_records import batch_of
from trionet.cli import consume, produce
from trionet.cli.clients._connection import add_connection_arguments
from trionet.cli.consume._range import span
from trionet.cli.records._layout import NUMBER_MODIFIERS, layout
from trionet.cli.records._packing import JSON, NAMED, Packing
from trionet.cli.records._rendering import JsonLines, Rendering, Showing
from trionet.errors import ConfigError

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli-records.md").read_text(
    "utf-8"
)


def section(title: str) -> str:
    _, _, rest = PAGE.partition(f"\n## {title}")
    return rest.partition("\n## ")[0]


def first_cells(text: str) -> list[str]:
    """What is marked as code in the first column of its tables."""
    rows = re.findall(r"^\| (`.*?`(?:, `.*?`)*) +\|", text, re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`(.*?)`", row)]


def options(describe: object) -> set[str]:
    parser = argparse.ArgumentParser(add_help=False)
    describe(parser)  # type: ignore[operator]
    return {option for action in parser._actions for option in action.option_strings}


@pytest.mark.parametrize("command", [produce, consume])
def test_the_options_are_those_of_the_command(command: ModuleType) -> None:
    name = command.__name__.rpartition(".")[2]
    listed = first_cells(section(f"`trionet {name}")) + first_cells(section("Options of both"))

    assert options(command.add_arguments) - options(add_connection_arguments) == set(listed)


def verbs() -> list[str]:
    cells = first_cells(section("Formats"))
    return [name.replace("{...}", "{%k}") for name in cells if name.startswith("%")]


@pytest.mark.parametrize("verb", verbs())
def test_a_verb_that_is_listed_is_one(verb: str) -> None:
    Rendering(layout(verb))


def test_no_other_letter_is_a_verb() -> None:
    listed = {name[1] for name in verbs()}
    found = set()
    for code in range(0x21, 0x7F):
        try:
            Rendering(layout(f"%{chr(code)}" + ("{timestamp-type}" if chr(code) == "a" else "")))
        except ConfigError:
            continue
        found.add(chr(code))

    assert found == listed


def test_the_modifiers_of_numbers_are_listed() -> None:
    rows = re.findall(r"^\| (`.*`) \| numbers", section("Formats"), re.MULTILINE)

    assert set(NUMBER_MODIFIERS) == {name for row in rows for name in re.findall(r"`(.*?)`", row)}


def test_the_types_are_listed() -> None:
    assert {*NAMED, JSON} == set(first_cells(section("Types")))


@pytest.mark.parametrize("where", first_cells(section("Offsets and times")))
def test_an_offset_that_is_listed_is_one(where: str) -> None:
    span([where], datetime(2026, 3, 1, tzinfo=UTC))


def test_the_fields_of_documents_are_listed() -> None:
    showing = Showing(key=Packing("long"), value=Packing("long"))
    batch = batch_of([(b"\xff", b"\xff")], headers=[[("a", b"\xff")]], broker_id=1)
    found = {*json.loads(JsonLines(showing).render(batch))}
    found |= {*json.loads(JsonLines(with_value=False).render(batch))}

    assert found == set(first_cells(section("JSON")))
