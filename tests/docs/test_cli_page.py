"""docs/reference/cli.md names the options of `trionet decode` and the fields of its documents."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from trionet.cli import decode
from trionet.cli.clients._connection import add_connection_arguments
from trionet.cli.clients._first_response import REACH_SECONDS
from trionet.cli.decode._output import document
from trionet.cli.decode._record_batches import RECORDS_SHOWN_MAX
from trionet.cli.decode._sources import TEXT_BYTES_MAX
from trionet.cli.decode._split import ENTRY_BYTES_MAX
from trionet.cli.decode._tree import Entry
from trionet.client.network._open_client import REFUSED_SECONDS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli.md").read_text("utf-8")

DECODE = PAGE.partition("\n## `trionet decode`\n")[2].partition("\n## ")[0]


def test_the_options_are_those_of_the_command() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    decode.add_arguments(parser)
    options = {
        option for action in parser._actions for option in action.option_strings if "--" in option
    }

    assert options == set(re.findall(r"^\| `(--[a-z]+)[ `]", DECODE, re.MULTILINE))


def test_the_options_of_a_connection_are_those_of_the_commands() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    add_connection_arguments(parser)
    table = PAGE.partition("\n## Commands for a cluster\n")[2].partition("\nOf a setting")[0]
    listed = re.findall(r"^\| `(-[^` ]+)", table, re.MULTILINE)

    assert [action.option_strings[0] for action in parser._actions] == listed
    assert f"silent has {REACH_SECONDS:g} seconds for its first response" in PAGE
    assert f"(connection refused); gave up after {REFUSED_SECONDS:g} s" in PAGE


def test_the_fields_are_those_of_the_documents() -> None:
    entry = Entry(1, "", 0, 0, "batch", {}, None, None, None)
    listed = re.findall(r"^\| (`[a-z_]+`(?:, `[a-z_]+`)*) \|", DECODE, re.MULTILINE)
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
    assert f"at most {ENTRY_BYTES_MAX // 2**20} MB long" in PAGE
    assert f"at most {RECORDS_SHOWN_MAX:,} records" in PAGE
    assert f"beyond the first {decode.BYTES_SHOWN} |" in PAGE
