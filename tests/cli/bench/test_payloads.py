"""What is written."""

from __future__ import annotations

import pytest

from trionet.cli.bench._payloads import Payloads, payloads_of, random_payloads


def test_values_come_in_turns_with_their_size() -> None:
    payloads = Payloads([b"a", b"bb", b"ccc"])

    assert ([b"a", b"bb"], 3) == payloads.take(2)
    assert ([b"ccc", b"a", b"bb", b"ccc", b"a"], 10) == payloads.take(5)


@pytest.mark.parametrize("size", [0, 1, 100, 2_000_000])
def test_random_values_have_the_size_that_was_asked_for(size: int) -> None:
    values, total = random_payloads(size).take(2)

    assert [size, size] == [len(each) for each in values]
    assert 2 * size == total


def test_random_values_are_letters_the_same_in_each_run() -> None:
    [first, second], _ = random_payloads(100).take(2)

    assert first != second
    assert first.isalpha()
    assert first.isupper()
    assert [first, second] == random_payloads(100).take(2)[0]


def test_values_of_a_file_are_between_delimiters() -> None:
    payloads = payloads_of(b"one\n\ntwo\n", b"\n")

    assert payloads is not None
    assert ([b"one", b"two", b"one"], 9) == payloads.take(3)
    assert payloads_of(b"\n\n", b"\n") is None
