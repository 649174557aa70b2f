"""docs/compare-tools.md: every command of ours in it is one."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from trionet.cli.main import whole_parser

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "compare-tools.md").read_text("utf-8")
PARSER = whole_parser()
COMMANDS = sorted(set(re.findall(r"`trionet ([^`]*)`", PAGE)))


def test_there_are_commands() -> None:
    assert len(COMMANDS) > 50


@pytest.mark.parametrize("command", [each for each in COMMANDS if "TOPIC" not in each])
def test_a_command_that_is_named_is_one(command: str) -> None:
    PARSER.parse_args(shlex.split(command))


def test_every_row_has_a_cell_for_each_tool() -> None:
    tables, _, _ = PAGE.partition("\n## Rates\n")
    rows = [line for line in tables.splitlines() if line.startswith("| ")]

    assert [] == [row for row in rows if row.count(" | ") != 4]
