"""Which requests are in the sample: each with the same chance, whatever comes in turns."""

from __future__ import annotations

import random

import pytest

from trionet.broker.telemetry._request_recorder import RequestRecorder


def taken(sample_ppm: int, count: int, seed: int = 1) -> list[bool]:
    """Of so many requests, which are logged."""
    recorder = RequestRecorder(1, sample_ppm, 1, lambda: 0, random.Random(seed))
    found = []
    for _ in range(count):
        is_taken = not recorder._gap
        recorder._gap = recorder._next_gap() if is_taken else recorder._gap - 1
        found.append(is_taken)
    return found


@pytest.mark.parametrize("sample_ppm", [500_000, 100_000, 10_000])
def test_a_sample_is_as_large_as_it_is_to_be(sample_ppm: int) -> None:
    count = 100_000
    mean = count * sample_ppm / 1e6
    assert abs(sum(taken(sample_ppm, count)) - mean) < 5 * mean**0.5


def test_requests_that_come_in_turns_have_the_same_chance() -> None:
    found = taken(250_000, 40_000)
    for turn in range(4):
        assert abs(sum(found[turn::4]) - 2500) < 250


def test_a_seed_draws_the_same_sample() -> None:
    assert taken(300_000, 1000) == taken(300_000, 1000) != taken(300_000, 1000, seed=2)


def test_all_and_none() -> None:
    assert all(taken(1_000_000, 10))
    assert not any(taken(0, 10))
