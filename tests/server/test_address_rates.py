"""The rates of addresses: which limit counts, and what is remembered of whom."""

from __future__ import annotations

import pytest

from trionet.server.quotas._connection_limits import UNLIMITED
from trionet.server.quotas._creation_rate import (
    ADDRESSES_MAX,
    IDLE_SECONDS_MAX,
    AddressRates,
    CreationRate,
)


def rates(default: int | None = None) -> AddressRates:
    rates = AddressRates(CreationRate)
    rates.set_limit(None, default)
    return rates


def test_the_own_limit_beats_the_default_and_gives_way_to_it_when_it_is_gone() -> None:
    """Q17: override, default, and none, in this order."""
    limits = rates(default=10)
    limits.set_limit("a", 20)
    assert (20, 10) == (limits.limit_of("a"), limits.limit_of("b"))

    limits.set_limit(None, 15)
    assert (20, 15) == (limits.limit_of("a"), limits.limit_of("b"))

    limits.set_limit("a", None)
    assert (15, 15) == (limits.limit_of("a"), limits.limit_of("b"))

    limits.set_limit(None, None)
    assert (UNLIMITED, UNLIMITED) == (limits.limit_of("a"), limits.limit_of("b"))


def test_taking_away_a_limit_that_is_not_there_changes_nothing() -> None:
    limits = rates(default=10)

    limits.set_limit("a", None)

    assert 10 == limits.limit_of("a")


def test_a_limit_is_not_negative() -> None:
    with pytest.raises(ValueError, match="connection_creation_rate = -1; allowed: 0 or more"):
        rates().set_limit("a", -1)


def test_an_address_without_a_limit_is_not_remembered() -> None:
    limits = rates()

    assert {0} == {limits.record("a", now=0) for _ in range(1000)}
    assert 0 == len(limits._rates)
    assert {} == limits.all_per_second(now=0)


def test_a_refused_connection_does_not_count() -> None:
    """Whoever keeps trying is let in again at the rate of the limit, not shut out for ever."""
    limits = rates(default=1)

    admitted = sum(limits.record("a", now=number / 100) == 0 for number in range(2000))

    assert 20 <= admitted <= 30
    assert limits.all_per_second(now=20)["a"] <= 1


def test_each_address_has_its_own_rate() -> None:
    limits = rates(default=1)

    while limits.record("a", now=0) == 0:
        pass

    assert 0 == limits.record("b", now=0)


def test_a_limit_of_0_refuses_everyone_for_a_whole_window() -> None:
    assert {1} == {rates(default=0).record("a", now=number) for number in range(20)}


def test_an_address_that_is_silent_for_an_hour_is_forgotten() -> None:
    limits = rates(default=1)
    limits.record("a", now=0)
    limits.record("b", now=1)

    limits.record("c", now=IDLE_SECONDS_MAX)

    assert 2 == len(limits._rates)
    assert {"b": 0, "c": 0.1} == limits.all_per_second(now=IDLE_SECONDS_MAX)
    assert {"c": 0.1} == limits.all_per_second(now=IDLE_SECONDS_MAX, count_max=1)


def test_no_more_addresses_are_remembered_than_the_limit() -> None:
    limits = rates(default=1)
    for number in range(ADDRESSES_MAX):
        limits.record(str(number), now=0)
    limits.record("0", now=0.5)  # not the one that was silent longest any more

    for number in range(500):
        limits.record(f"new {number}", now=0.6)

    assert ADDRESSES_MAX == len(limits._rates)
    found = limits.all_per_second(now=1)
    assert found["0"] > 0
    assert "1" not in found
