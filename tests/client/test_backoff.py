from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from trionet.client._backoff import ExponentialBackoff


def test_wait_doubles_with_each_failure_up_to_the_limit() -> None:
    backoff = ExponentialBackoff(0.1, 1.0)
    rng = random.Random(0)

    for failures, expected in [(1, 0.1), (2, 0.2), (3, 0.4), (4, 0.8), (5, 1.0), (60, 1.0)]:
        waits = [backoff.seconds(failures, rng) for _ in range(50)]

        assert expected * 0.8 <= min(waits) <= max(waits) <= min(expected * 1.2, 1.0)
        assert min(waits) < max(waits)


def test_nothing_grows_where_the_limit_is_not_above_the_first_wait() -> None:
    backoff = ExponentialBackoff(0.05, 0.05)

    assert {0.05} == {backoff.seconds(n, random.Random(n)) for n in range(1, 20)}


@given(failures=st.integers(0, 10**9), seed=st.integers())
def test_no_number_of_failures_goes_beyond_the_limit(failures: int, seed: int) -> None:
    assert 0.04 <= ExponentialBackoff(0.05, 30.0).seconds(failures, random.Random(seed)) <= 30.0
