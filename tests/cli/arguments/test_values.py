"""Numbers that Kafka's protocol cannot carry are wrong usage, and nothing is done."""

from __future__ import annotations

import argparse

import pytest

from support.command_runs import Run
from trionet.cli.arguments._values import (
    INT16_MAX,
    INT32_MAX,
    INT64_MAX,
    bounded_int,
    is_natural,
)

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
