"""Tables for people, JSON and CSV for programs; and nothing that a terminal obeys."""

from __future__ import annotations

import argparse
import csv
import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trionet.cli.terminal._output import (
    CSV,
    FORMATS,
    JSON,
    TEXT,
    Table,
    facts,
    json_text,
    table_text,
    write,
    write_results,
)

HOSTILE = "a\x1b[2J\x07\n\u202e\x9b\u200b"


def test_columns_are_as_wide_as_they_must_be_and_numbers_stand_to_the_right() -> None:
    table = Table(
        ("name", "end_offset", "replicas"),
        [("orders", 7, (1, 2)), ("b", 12345, ()), ("", None, ())],
    )

    assert (
        "NAME    END-OFFSET  REPLICAS\n"
        "orders           7  1,2\n"
        "b            12345\n"
        "                 -\n"
    ) == table_text(table)


def test_a_name_of_wide_characters_takes_its_cells() -> None:
    assert "NAME  N\n注文  1\nab    2\n" == table_text(
        Table(("name", "n"), [("注文", 1), ("ab", 2)])
    )


def test_a_header_is_bold_on_a_terminal_alone() -> None:
    table = Table(("n",), [(1,)], "title")

    assert "\x1b[1mtitle\x1b[0m\n\x1b[1mN\x1b[0m\n1\n" == table_text(table, is_terminal=True)
    assert "title\nN\n1\n" == table_text(table)


def test_facts_have_no_header() -> None:
    text = table_text(facts({"topic": "orders", "in_sync": 3, "internal": False}))

    assert "topic     orders\nin sync   3\ninternal  false\n" == text


def test_a_table_has_a_line_for_each_row_whatever_the_names_are() -> None:
    text = table_text(Table(("name",), [(HOSTILE,), ("b",)]))

    assert 3 == text.count("\n")
    assert all(line.isprintable() for line in text.splitlines())


@pytest.mark.parametrize("letter", ["x", "\x1b", "\U000e0001", "注"], ids=ascii)
def test_no_name_widens_all_rows_beyond_what_a_terminal_can_show(letter: str) -> None:
    rows = [(f"group-{number}", "Stable") for number in range(50)]
    table = Table(("group", "state"), [(letter * 32_000, "Empty"), *rows])

    text = table_text(table)

    assert len(text) < 52 * 600
    [cut] = [line for line in text.splitlines() if line.endswith("  Empty")]
    assert cut.rstrip(" Empty").endswith("...")
    assert letter * 32_000 == json.loads(json_text(table.documents(), Out()))[0]["group"]


def test_a_name_of_any_topic_is_shown_whole() -> None:
    assert "t" * 249 in table_text(Table(("topic", "n"), [("t" * 249, 1)]))


def test_a_long_value_at_the_end_of_a_row_is_cut_later() -> None:
    text = table_text(Table(("key", "value"), [("k", "v" * 1_000), ("l", "v" * 3_000)], "t" * 300))

    title, _, first, second, _ = text.split("\n")
    assert "t" * 253 + "..." == title
    assert f"k    {'v' * 1_000}" == first
    assert f"l    {'v' * 1_997}..." == second


def test_a_title_is_as_harmless_as_a_cell() -> None:
    assert "a\\u001b[2J\nN\n" == table_text(Table(("n",), [], "a\x1b[2J"))


@settings(max_examples=30)
@given(st.lists(st.text(), min_size=1, max_size=4))
def test_no_text_makes_a_table_more_than_its_lines(names: list[str]) -> None:
    text = table_text(Table(("name", "n"), [(name, 1) for name in names]))

    lines = text.split("\n")
    assert len(names) + 2 == len(lines)
    assert all(line.isprintable() for line in lines)


class Out(io.StringIO):
    encoding = "utf-8"

    def __init__(self, *, is_terminal: bool = False) -> None:
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self) -> bool:
        return self.is_terminal


@settings(max_examples=30)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_json_is_harmless_and_says_the_same(document: object) -> None:
    for is_terminal in (False, True):
        text = json_text(document, Out(is_terminal=is_terminal))

        assert document == json.loads(text)
        assert text.replace("\n", "").isprintable()
    assert "\n" not in json_text(document, Out())


def test_json_in_ascii_where_the_output_has_nothing_else() -> None:
    out = Out()
    out.encoding = "ascii"

    assert '"\\u6ce8"' == json_text("注", out)


def test_what_is_written_is_for_people_or_programs(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table(("name", "n", "on"), [("a", None, True), (HOSTILE, 1.5, False)])

    write(TEXT, table)
    assert "NAME" in capsys.readouterr().out
    write(JSON, table)
    assert [
        {"name": "a", "n": None, "on": True},
        {"name": HOSTILE, "n": 1.5, "on": False},
    ] == json.loads(capsys.readouterr().out)
    write(CSV, table)
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert [["name", "n", "on"], ["a", "", "true"], [HOSTILE, "1.5", "false"]] == rows


def test_several_tables_have_a_line_between_them(capsys: pytest.CaptureFixture[str]) -> None:
    write(TEXT, [Table(("a",), [(1,)]), Table(("b",), [(2,)])])

    assert "A\n1\n\nB\n2\n" == capsys.readouterr().out


def test_csv_has_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    tables = [Table(("a",), [(1,)]), Table(("b",), [(2,)])]

    write(CSV, tables)
    last = capsys.readouterr().out
    write(CSV, tables, as_csv=tables[0])

    assert ("b\n2\n", "a\n1\n") == (last, capsys.readouterr().out)


@pytest.mark.parametrize("form", FORMATS)
def test_nothing_that_a_terminal_obeys_comes_to_one(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    out = Out(is_terminal=True)
    monkeypatch.setattr("sys.stdout", out)

    write(form, Table(("name",), [(HOSTILE,)]))

    text = out.getvalue().replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert text.replace("\n", "").isprintable()
    assert "u202e" in text


@pytest.mark.parametrize(
    ("form", "rows", "errors", "out"),
    [
        (TEXT, [("a",)], [], "NAME\na\n"),
        (TEXT, [("a",)], ["b is not there"], "NAME\na\n"),
        (TEXT, [], ["b is not there"], ""),
        (TEXT, [], [], "NAME\n"),
        (JSON, [], ["b is not there"], "[]\n"),
        (CSV, [], ["b is not there"], "name\n"),
    ],
)
def test_there_are_no_headings_above_nothing_but_errors(
    form: str,
    rows: list[tuple[str]],
    errors: list[str],
    out: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = argparse.Namespace(format=form, prog="trionet x")

    status = write_results(arguments, Table(("name",), rows), iter(errors))

    printed = capsys.readouterr()
    assert (len(errors), out) == (status, printed.out)
    assert "".join(f"trionet x: {each}\n" for each in errors) == printed.err
