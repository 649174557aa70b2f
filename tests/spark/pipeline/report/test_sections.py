"""Numbers and tables of a report as text, on a terminal and as JSON."""

from __future__ import annotations

import io
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark.pipeline.report.samples import HOSTILE, minute, report_of, sample
from spark.pipeline.results_folder import requests
from trionet.spark.pipeline.report._json import document
from trionet.spark.pipeline.report._sections import (
    count,
    duration,
    rate,
    rounded,
    sections,
    share,
    size,
)
from trionet.spark.pipeline.report._terminal import divided, write


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (count(0), "0"),
        (count(999_999), "999,999"),
        (count(1_234_567), "1.23 M"),
        (count(2_500_000_000), "2.50 G"),
        (rate(0), "0.0/s"),
        (rate(0.000_28), "0.00028/s"),
        (rate(0.25), "0.250/s"),
        (rate(12.34), "12.3/s"),
        (rate(20_000), "20,000/s"),
        (rate(1_500_000), "1.50 M/s"),
        (size(12), "12 B"),
        (size(1_234), "1.23 kB"),
        (size(999_700), "1.00 MB"),
        (size(12_300_000_000), "12.3 GB"),
        (share(0), "0.00%"),
        (share(0.000_001), "<0.01%"),
        (share(0.0123), "1.23%"),
        (share(1), "100.0%"),
        (duration(None), "-"),
        (duration(0), "0 µs"),
        (duration(96), "96.0 µs"),
        (duration(1_234), "1.23 ms"),
        (duration(999_700), "1.00 s"),
        (duration(90e6), "90.0 s"),
        (duration(600e6), "10.0 min"),
        (duration(45_965e6), "12.8 h"),
        (duration(30 * 86400e6), "30.0 d"),
    ],
)
def test_a_number_is_written_with_three_digits_and_its_unit(written: str, expected: str) -> None:
    assert expected == written


def test_a_round_number_can_do_without_its_zeros() -> None:
    written = ("10.0 ms", "1.00/s", "1.50 s", "0.500/s", "0.050/s", "100 kB", "2,000/s")
    expected = ["10 ms", "1/s", "1.5 s", "0.5/s", "0.05/s", "100 kB", "2,000/s"]
    assert expected == [rounded(each) for each in written]


@given(st.floats(0, 1e16))
def test_any_number_is_short(value: float) -> None:
    assert all(len(each(value)) <= 14 for each in (count, size, rate, duration))


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
        "Clocks ahead broker 2 by 59 min, broker 7 by 2 min",
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


def test_incidents_come_before_the_other_tables() -> None:
    titles = ("Incidents", "APIs", "Phases", "Objectives", "Top talkers", "Anomalies")
    found = [each for line in text_of().splitlines() if (each := line.rstrip()) in titles]

    assert list(titles) == found


def test_a_date_is_on_one_line_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "90")

    text = re.sub(r"\x1b\[[\d;]*m", "", text_of(file=Terminal()))
    incidents = text.partition("\nIncidents ")[2].partition("\nAPIs ")[0]

    assert 2 == len(re.findall(r"^2026-03-01 12:0\d UTC ", incidents, re.MULTILINE))


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
    assert 3 == text.count("1 more not shown.")


def test_what_is_not_there_is_said() -> None:
    file = io.StringIO()
    write(report_of({"requests": [requests(minute(0), [5])]}), 10, file)

    for said in ("No errors.", "No connections were closed.", "No client was throttled."):
        assert said in file.getvalue()


def test_all_causes_of_an_incident_are_named_with_their_times() -> None:
    report = report_of(sample())

    [incidents] = [each for each in sections(report, 10) if each.title == "Incidents"]
    rows = [dict(zip(incidents.headings, row, strict=True)) for row in incidents.rows]
    assert {"request rate, Produce, shop, 12:08 to 12:10"} <= {row["other causes"] for row in rows}
    said = json.loads(document(report))["incidents"][0]["causes"]
    assert ["error_share", "requests_per_s"] == [cause["measure"] for cause in said]
    assert {"2026-03-01T12:08:00Z"} == {cause["start"] for cause in said}


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


def test_a_document_is_one_line_of_everything() -> None:
    text = document(report_of(sample()))

    assert text.isascii()
    assert text.isprintable()
    said = json.loads(text)
    assert 1 == said["version"]
    assert "2026-03-01T12:00:00Z" == said["start"]
    assert (1025, 5) == (said["requests"], said["errors"])
    assert ["NOT_LEADER_OR_FOLLOWER", "NONE"] == [each["error"] for each in said["errors_by_code"]]
    assert ["Produce", "Fetch"] == [each["api"] for each in said["apis"]]
    assert HOSTILE == said["talkers"][1]["client_id"]
    assert 12 == said["intake"]["late"]
    assert {"2": 59, "7": 2} == said["clocks_ahead"]
    assert "2026-03-01T12:08:00Z" == said["anomalies"][0]["window"]
    assert 10 == len(said["timeline"]["starts"]) == len(said["timeline"]["requests"]["Fetch"])
