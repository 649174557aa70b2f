"""The memory of all requests together: never far beyond its limit, and always given back."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from trionet.errors import ConfigError
from trionet.net.wire._memory_pool import MemoryLease, MemoryPool


def allocate(pool: MemoryPool, size: int, now: float = 0) -> MemoryLease:
    lease = pool.try_allocate(size, now)
    assert lease is not None
    return lease


@pytest.mark.parametrize("size", [0, -1, 501])
def test_a_size_that_no_request_can_have_is_refused(size: int) -> None:
    """F8: size 0, a negative one and one above the maximum are errors."""
    pool = MemoryPool(1000, 500)

    with pytest.raises(ValueError, match="allowed: 1 to 500"):
        pool.try_allocate(size, now=0)

    assert 1000 == pool.available


def test_one_lease_may_go_past_the_limit() -> None:
    """F8: as long as anything is left, a lease may take more than is left."""
    pool = MemoryPool(1000, 900)

    allocate(pool, 900)
    allocate(pool, 99)
    allocate(pool, 900)

    assert (-899, 1899) == (pool.available, pool.used)
    assert pool.try_allocate(1, now=0) is None


def test_a_foreign_lease_is_not_taken_back() -> None:
    """F8: a lease of another pool is an error, and changes neither."""
    pool, other = MemoryPool(100, 10), MemoryPool(100, 10)
    lease = allocate(other, 10)

    with pytest.raises(ValueError, match="10 bytes> was not taken from this pool"):
        pool.release(lease, now=0)

    assert (100, 90) == (pool.available, other.available)


def test_a_lease_is_given_back_once() -> None:
    """F8: a second release is an error, and gives nothing back."""
    pool = MemoryPool(100, 10)
    lease = allocate(pool, 10)
    pool.release(lease, now=0)

    with pytest.raises(ValueError, match="10 bytes released> was not taken"):
        pool.release(lease, now=0)

    assert 100 == pool.available


def test_everyone_who_waits_is_woken_once_when_memory_is_back() -> None:
    pool = MemoryPool(100, 100)
    leases = [allocate(pool, 60), allocate(pool, 60)]
    woken: list[str] = []
    wakes = [lambda: woken.append("a"), lambda: woken.append("b")]
    for wake in (*wakes, wakes[0]):
        assert pool.try_allocate(1, now=0) is None
        pool.wake_when_available(wake)

    pool.release(leases[0], now=1)
    assert ["a", "b"] == woken
    pool.release(leases[1], now=2)

    assert ["a", "b"] == woken


def test_no_task_is_woken_for_memory_that_still_lacks() -> None:
    pool = MemoryPool(100, 100)
    small, large = allocate(pool, 50), allocate(pool, 100)
    woken: list[float] = []
    assert pool.try_allocate(1, now=0) is None
    pool.wake_when_available(lambda: woken.append(pool.available))

    pool.release(small, now=0)
    assert [] == woken
    pool.release(large, now=0)

    assert [100] == woken


class Reader:
    """Takes the whole pool when it is woken, or waits for the next time."""

    def __init__(self, pool: MemoryPool) -> None:
        self.pool = pool
        self.asked = 0
        self.lease: MemoryLease | None = None

    def wake(self) -> None:
        self.asked += 1
        self.lease = self.pool.try_allocate(100, now=0)
        if self.lease is None:
            self.pool.wake_when_available(self.wake)


def test_who_is_woken_and_finds_nothing_waits_again() -> None:
    pool = MemoryPool(100, 100)
    lease = allocate(pool, 100)
    first, second = Reader(pool), Reader(pool)
    pool.wake_when_available(first.wake)
    pool.wake_when_available(second.wake)

    pool.release(lease, now=0)
    assert first.lease is not None
    assert (1, 1) == (first.asked, second.asked)
    pool.release(first.lease, now=0)

    assert second.lease is not None
    assert (1, 2) == (first.asked, second.asked)


def test_the_time_without_memory_is_from_the_refusal_to_the_release() -> None:
    pool = MemoryPool(100, 100)
    lease = allocate(pool, 100, now=0)
    assert 0 == pool.depleted_seconds(now=10)  # nobody has asked in vain

    assert pool.try_allocate(1, now=10) is None
    assert pool.try_allocate(1, now=11) is None
    assert 3 == pool.depleted_seconds(now=13)
    pool.release(lease, now=15)

    assert 5 == pool.depleted_seconds(now=15) == pool.depleted_seconds(now=1000)
    allocate(pool, 100, now=20)
    assert pool.try_allocate(1, now=21) is None
    assert 6 == pool.depleted_seconds(now=22)


@pytest.mark.parametrize(
    ("used", "is_low"), [(0, False), (900, False), (901, True), (999, True), (1000, False)]
)
def test_little_memory_is_less_than_a_tenth_but_some(used: int, is_low: bool) -> None:
    pool = MemoryPool(1000, 1000)
    if used:
        allocate(pool, used)

    assert is_low is pool.is_low


@pytest.mark.parametrize("bytes_max", [0, -1])
def test_no_limit_is_no_pool(bytes_max: int) -> None:
    assert MemoryPool.of(bytes_max, 100) is None


def test_a_limit_below_the_largest_request_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match=r"at least socket\.request\.max\.bytes \(100\)"):
        MemoryPool.of(99, 100)


def test_a_limit_of_the_largest_request_is_a_pool() -> None:
    pool = MemoryPool.of(100, 100)

    assert pool is not None
    assert 100 == pool.available


class Model(RuleBasedStateMachine):
    """Whatever is taken and given back, in whatever order."""

    leases = Bundle("leases")
    bytes_max = 100
    lease_bytes_max = 60

    def __init__(self) -> None:
        super().__init__()
        self.pool = MemoryPool(self.bytes_max, self.lease_bytes_max)
        self.out: dict[MemoryLease, int] = {}
        self.now = 0.0
        self.woken = 0
        self.depleted_since: float | None = None
        self.depleted = 0.0

    def wake(self) -> None:
        self.woken += 1

    @rule(target=leases, size=st.integers(1, lease_bytes_max))
    def allocate(self, size: int) -> MemoryLease | None:
        is_left = sum(self.out.values()) < self.bytes_max
        lease = self.pool.try_allocate(size, self.now)
        assert is_left == (lease is not None)
        if lease is not None:
            self.out[lease] = size
        else:
            self.pool.wake_when_available(self.wake)
            if self.depleted_since is None:
                self.depleted_since = self.now
        return lease

    @rule(lease=consumes(leases))
    def release(self, lease: MemoryLease | None) -> None:
        if lease is None:
            return
        before = self.woken
        self.pool.release(lease, self.now)
        del self.out[lease]
        ends = self.depleted_since is not None and sum(self.out.values()) < self.bytes_max
        assert before + ends == self.woken
        if ends:
            assert self.depleted_since is not None
            self.depleted += self.now - self.depleted_since
            self.depleted_since = None

    @rule(seconds=st.integers(0, 5))
    def pass_time(self, seconds: int) -> None:
        self.now += seconds

    @invariant()
    def bytes_are_counted(self) -> None:
        assert sum(self.out.values()) == self.pool.used
        assert self.pool.used < self.bytes_max + self.lease_bytes_max

    @invariant()
    def time_is_counted(self) -> None:
        since = self.now - self.depleted_since if self.depleted_since is not None else 0
        assert self.depleted + since == self.pool.depleted_seconds(self.now)


TestModel = Model.TestCase
