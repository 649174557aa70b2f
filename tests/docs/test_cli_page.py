"""docs/reference/cli.md names the options of `trionet decode` and the fields of its documents."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from trionet.cli import decode
from trionet.cli.decoding.allowance import RECORDS_SHOWN_MAX
from trionet.cli.decoding.documents import document
from trionet.cli.decoding.openings import TEXT_BYTES_MAX
from trionet.cli.decoding.pieces import PIECE_BYTES_MAX
from trionet.cli.decoding.shown import BYTES_SHOWN
from trionet.cli.decoding.tree import Entry

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli.md").read_text("utf-8")


def test_the_options_are_those_of_the_command() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    decode.add_arguments(parser)
    options = {
        option for action in parser._actions for option in action.option_strings if "--" in option
    }

    assert options == set(re.findall(r"^\| `(--[a-z]+)[ `]", PAGE, re.MULTILINE))


def test_the_fields_are_those_of_the_documents() -> None:
    entry = Entry(1, "", 0, 0, "batch", {}, None, None, None)
    listed = re.findall(r"^\| (`[a-z_]+`(?:, `[a-z_]+`)*) \|", PAGE, re.MULTILINE)
    names = {name.strip("` ") for row in listed for name in row.split(",")}

    assert set(document(entry, None)) <= names
    assert names - set(document(entry, None)) == {
        "api",
        "api_key",
        "version",
        "answers",
        "fitting_versions",
        "ambiguous",
    }


def test_the_limits_are_those_of_the_code() -> None:
    assert f"at most {TEXT_BYTES_MAX // 2**20} MB of it" in PAGE
    assert f"at most {PIECE_BYTES_MAX // 2**20} MB long" in PAGE
    assert f"at most {RECORDS_SHOWN_MAX:,} records" in PAGE
    assert f"beyond the first {BYTES_SHOWN} |" in PAGE
