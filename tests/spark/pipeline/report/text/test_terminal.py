"""A report as text: everything is said, and nothing that a client wrote is obeyed."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark.pipeline.report.samples import HOSTILE, minute, report_of, sample
from spark.pipeline.results_folder import requests
from trionet.spark.pipeline.report.text._terminal import divided, write


class Terminal(io.StringIO):
    """What takes itself for a terminal."""

    def isatty(self) -> bool:
        return True


def text_of(top: int = 10, file: io.StringIO | None = None) -> str:
    file = io.StringIO() if file is None else file
    write(report_of(sample()), top, file)
    return file.getvalue()


@pytest.mark.parametrize(
    "line",
    [
        "Time 2026-03-01 12:00 UTC to 2026-03-01 12:10 UTC",
        "Requests 1,025",
        "Rate 1.7/s, at most 1.8/s over 60 s",
        "Errors 5 (0.49%)",
        "Received 102 kB, 171 B/s",
        "Not included records of all clients: 12 late (their minute was already closed)",
        "Produce 1,000 97.6% 1.7/s 5 1.00 ms 49.9 ms 49.9 ms 49.9 ms 50.0 ms 100 kB 50.0 kB",
        "Produce NOT_LEADER_OR_FOLLOWER 5 0.50%",
        "Fetch connection gone 2 8.00%",
        "PEER_CLOSED PLAINTEXT 4 3.00 s 40 4.00 kB 2.00 kB",
        "shop User:shop PLAINTEXT 10 25.0% 30.0 ms 10.0 ms",
        "2026-03-01 12:08 UTC p99 of total 9.00 ms 1.00 µs +7.5 Produce shop PLAINTEXT",
    ],
)
def test_a_report_says(line: str) -> None:
    assert line in [" ".join(each.split()) for each in text_of().splitlines()]


@pytest.mark.parametrize("file", [io.StringIO, Terminal])
def test_nothing_that_a_client_calls_itself_reaches_the_terminal_as_it_is(
    file: type[io.StringIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("NO_COLOR", raising=False)

    text = text_of(file=file())

    without_colours = re.sub(r"\x1b\[[\d;]*m", "", text)
    assert "<script>alert(1)</script>[bold]x[/nope]\\u001b[2J\\u0007\\u202egpj" in without_colours
    assert [] == [each for each in without_colours if not each.isprintable() and each != "\n"]
    assert (file is Terminal) == (text != without_colours)


def test_neither_does_the_name_of_an_api_in_a_folder_of_others() -> None:
    file = io.StringIO()
    write(report_of({"requests": [requests(minute(0), [5], api=(99, HOSTILE))]}), 10, file)

    assert [] == [each for each in file.getvalue() if not each.isprintable() and each != "\n"]


def test_a_table_has_so_many_rows_and_says_how_many_there_are_besides() -> None:
    text = text_of(top=1)

    assert "connection gone" not in text
    assert 2 == text.count("1 more not shown.")


def test_what_is_not_there_is_said() -> None:
    file = io.StringIO()
    write(report_of({"requests": [requests(minute(0), [5])]}), 10, file)

    for said in ("No errors.", "No connections were closed.", "No client was throttled."):
        assert said in file.getvalue()


def test_an_encoding_without_blocks_has_other_bars() -> None:
    plain = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="backslashreplace")
    write(report_of(sample()), 10, plain)

    plain.seek(0)
    assert "== local" in plain.read()


@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=6), st.integers(1, 80))
def test_the_parts_of_a_bar_fill_it(parts: list[float], cells: int) -> None:
    found = divided(parts, cells)

    assert sum(found) == (cells if sum(parts) else 0)
    for part, each in zip(parts, found, strict=True):
        assert abs(each - cells * part / (sum(parts) or 1)) < 1 + 1e-9
