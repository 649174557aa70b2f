"""Numbers that Kafka's protocol cannot carry are wrong usage, and nothing is done.

Times as people write them.
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.command_runs import Run
from trionet.cli.arguments._values import (
    INT16_MAX,
    INT32_MAX,
    INT64_MAX,
    bounded_int,
    is_natural,
    parse_time,
    time_text,
)
from trionet.errors import ConfigError

TOO_LARGE = str(INT64_MAX + 1)


@pytest.mark.parametrize(
    ("text", "number"), [("1", 1), ("32767", INT16_MAX), ("-1", -1), ("0007", 7)]
)
def test_a_number_within_limits_is_taken(text: str, number: int) -> None:
    assert number == bounded_int(1, INT16_MAX, default=-1)(text)


@pytest.mark.parametrize("text", ["0", "-2", "32768", "", "x", "1_0", " 1", "\u0661", "9" * 9999])
def test_others_are_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as caught:
        bounded_int(1, INT16_MAX, default=-1)(text)

    assert "expected 1 to 32767, or -1 for the broker's default" in str(caught.value)
    assert len(str(caught.value)) < 200


def test_natural_numbers_are_digits_and_not_too_many() -> None:
    assert is_natural("0", INT32_MAX)
    assert is_natural(str(INT32_MAX), INT32_MAX)
    assert not any(is_natural(text, INT32_MAX) for text in ("2147483648", "-1", "", "\u0661"))
    assert not is_natural("9" * 9999, INT64_MAX)


@pytest.mark.parametrize(
    "command",
    [
        "topics create a -p 2147483648",
        "topics create a -r 32768",
        "topics create a --replica-assignment 2147483648",
        "topics alter a -p 2147483648",
        "topics alter a -n 2147483648",
        f"topics offsets a -t {TOO_LARGE}",
        "topics offsets a -p 2147483648",
        f"topics trim a --yes -o {TOO_LARGE}",
        f"topics trim a --yes -o @{TOO_LARGE}",
        f"groups reset a --to-time {TOO_LARGE}",
        "groups reset a --to-latest -t b:2147483648",
        "groups delete-offsets a --yes -t b:2147483648",
        "configs describe broker 2147483648",
        "cluster log-dirs -i 2147483648",
        "cluster elect-leaders --yes a:2147483648",
        f"transactions list --producer-id {TOO_LARGE}",
        f"transactions list --longer-than-ms {TOO_LARGE}",
        f"transactions abort-hanging a:1 --yes --start-offset {TOO_LARGE}",
        "transactions abort-hanging a:2147483648 --yes --start-offset 1",
    ],
)
def test_what_no_request_can_carry_is_wrong_usage(run: Run, command: str) -> None:
    done = run(*command.split(), "-b", "127.0.0.1:1")

    assert (2, "") == (done.status, done.out)
    assert "expected" in done.err


@pytest.mark.parametrize("row", ["a,2147483648,1", f"a,1,{TOO_LARGE}"])
def test_so_it_is_in_a_file(run: Run, row: str) -> None:
    done = run("topics", "trim", "-f", "-", "--yes", "-b", "127.0.0.1:1", stdin=row)

    assert (2, "") == (done.status, done.out)
    assert (
        f"-:1: invalid partition a-{2**31}" in done.err
        or f"-:1: invalid offset {TOO_LARGE}" in done.err
    )


NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
NOW_MS = 1_772_366_400_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", NOW_MS),
        ("1h", NOW_MS - 3_600_000),
        ("-90s", NOW_MS - 90_000),
        ("250ms", NOW_MS - 250),
        ("2d", NOW_MS - 172_800_000),
        ("2026-03-01", NOW_MS - 43_200_000),
        ("2026-03-01T12:00", NOW_MS),
        ("2026-03-01T12:00:00Z", NOW_MS),
        ("2026-03-01T13:00+01:00", NOW_MS),
        ("1772366400", NOW_MS),
        ("1772366400000", NOW_MS),
        ("0", 0),
        ("1969-12-31T23:59:59.999", 0),  # not -1, which is the end to a broker
        ("60000d", 0),
    ],
)
def test_a_time_is_read(text: str, expected: int) -> None:
    assert expected == parse_time(text, NOW)


@pytest.mark.parametrize(
    "text",
    ["", "9" * 20, "yesterday", "1y", "2026-13-01", "--1h", "99999999999999999999h", "1h30m"],
)
def test_what_is_no_time_is_reported(text: str) -> None:
    with pytest.raises(ConfigError, match=r"invalid time .*: expected 2026-03-01,"):
        parse_time(text, NOW)


@settings(max_examples=30)
@given(st.integers(-(2**63), 2**63 - 1))
def test_any_time_of_a_record_has_a_text(milliseconds: int) -> None:
    text = time_text(milliseconds)

    assert text == str(milliseconds) or max(0, milliseconds) == parse_time(text, NOW)


def test_a_time_has_its_milliseconds() -> None:
    assert "2026-03-01T12:00:00.007Z" == time_text(NOW_MS + 7)
