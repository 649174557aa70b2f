from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.client.producer.batching._buffer_pool import BufferPool
from trionet.errors import ConfigError


def test_what_is_taken_is_missing_until_it_comes_back() -> None:
    """B1: whatever its size."""
    pool = BufferPool(64 * 1024)

    assert pool.take(1024)
    assert pool.take(2 * 1024)
    assert 61 * 1024 == pool.available

    pool.give_back(1024)
    pool.give_back(2 * 1024)

    assert 64 * 1024 == pool.available


def test_more_than_there_is_can_never_be_had() -> None:
    """B2: that is an error, not a wait."""
    pool = BufferPool(1024)

    with pytest.raises(ValueError, match=r"1025 bytes exceed buffer\.memory \(1024\)"):
        pool.take(1025)
    assert pool.take(1024)
    assert not pool.take(1)
    assert pool.is_exhausted

    pool.give_back(1024)

    assert not pool.is_exhausted


def test_sizes_beyond_32_bits_count() -> None:
    """B8: 20 GB, of which 2 GB are taken ten times."""
    pool = BufferPool(20_000_000_000)
    for taken in range(1, 11):
        assert pool.take(2_000_000_000)
        assert 20_000_000_000 - taken * 2_000_000_000 == pool.available
    assert not pool.take(1)
    for _ in range(10):
        pool.give_back(2_000_000_000)

    assert 20_000_000_000 == pool.available


def test_a_pool_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"buffer\.memory = 0 must be at least 1"):
        BufferPool(0)


@given(sizes=st.lists(st.integers(1, 100), max_size=60))
def test_whatever_is_taken_and_given_back_all_is_there_in_the_end(sizes: list[int]) -> None:
    pool = BufferPool(300)
    held: list[int] = []
    for size in sizes:
        if pool.take(size):
            held.append(size)
        elif held:
            pool.give_back(held.pop(len(held) // 2))

        assert 300 == pool.available + sum(held)
        assert pool.available >= 0
