"""Connections are counted, and counted back exactly once."""

from __future__ import annotations

import pytest

from trionet.server.quotas._connection_quotas import ConnectionCounts, ConnectionGuard


def test_counts_are_kept_in_all_by_listener_and_by_address() -> None:
    counts = ConnectionCounts()

    before = [
        counts.add(listener, address)
        for listener, address in [("A", "10.0.0.1"), ("B", "10.0.0.1"), ("B", "10.0.0.2")]
    ]

    assert [0, 1, 0] == before
    assert 3 == counts.total
    assert (1, 2, 0) == tuple(counts.by_listener[name] for name in "ABC")
    assert (2, 1, 0) == tuple(counts.by_address[f"10.0.0.{number}"] for number in (1, 2, 3))


def test_counting_back_what_was_never_counted_is_an_error() -> None:
    """Q2: an address that is unknown, or known to another listener only."""
    counts = ConnectionCounts()
    counts.add("A", "10.0.0.1")

    with pytest.raises(ValueError, match=r"no connection is counted from 10\.0\.0\.2 to A"):
        counts.remove("A", "10.0.0.2")
    with pytest.raises(ValueError, match=r"no connection is counted from 10\.0\.0\.1 to B"):
        counts.remove("B", "10.0.0.1")

    assert "<1 connections: {'A': 1}, {'10.0.0.1': 1}>" == repr(counts)


def test_an_address_without_connections_is_forgotten() -> None:
    counts = ConnectionCounts()
    counts.add("A", "10.0.0.1")

    counts.remove("A", "10.0.0.1")

    assert "<0 connections: {}, {}>" == repr(counts)


def test_a_guard_counts_back_once_however_often_it_is_released() -> None:
    """KAFKA-2614: several paths close a connection, and each may release."""
    counts, released = ConnectionCounts(), []
    counts.add("A", "10.0.0.1")
    counts.add("A", "10.0.0.1")
    guard = ConnectionGuard(counts, "A", "10.0.0.1", lambda: released.append(counts.total))
    assert "<ConnectionGuard 10.0.0.1 to A>" == repr(guard)

    guard.release()
    guard.release()

    assert 1 == counts.total
    assert [1] == released
    assert "<ConnectionGuard 10.0.0.1 to A released>" == repr(guard)
