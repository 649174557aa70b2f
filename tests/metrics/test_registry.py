"""Snapshots: what all collectors say, at one moment."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from trionet.metrics._registry import (
    COLLECTOR_ERRORS,
    Family,
    Kind,
    Metric,
    Registry,
    Sample,
    single,
)

QUEUE = Metric("queue_size", Kind.GAUGE, "What waits.")
BYTES = Metric("bytes_total", Kind.COUNTER, "Bytes.", ("listener",))
TIME = Metric("time_ms", Kind.SUMMARY, "Time.")


def test_a_snapshot_has_what_the_collectors_say_at_its_time() -> None:
    registry = Registry()
    registry.register(lambda now: [single(QUEUE, now)])

    snapshot = registry.snapshot(12.5)

    assert (12.5, 12.5) == (snapshot.now, snapshot["queue_size"].of())


def test_a_snapshot_stays_as_it_was() -> None:
    registry, size = Registry(), [1]
    registry.register(lambda now: [single(QUEUE, size[0])])
    before = registry.snapshot(0)

    size[0] = 2

    assert (1, 2) == (before["queue_size"].of(), registry.snapshot(1)["queue_size"].of())


def test_families_of_one_metric_become_one() -> None:
    registry = Registry()
    registry.register(lambda now: [Family(BYTES, (Sample(("A",), 1),))])
    registry.register(lambda now: [Family(BYTES, (Sample(("B",), 2),))])

    family = registry.snapshot(0)["bytes_total"]

    assert (1, 2) == (family.of("A"), family.of("B"))


def test_families_come_in_alphabetical_order() -> None:
    registry = Registry()
    registry.register(lambda now: [single(TIME, 0), single(QUEUE, 0)])

    assert ["queue_size", "time_ms", COLLECTOR_ERRORS.name] == list(registry.snapshot(0))


def test_a_collector_that_fails_takes_nothing_from_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(now: float) -> Iterator[Family]:
        yield single(QUEUE, 1)
        raise KeyError("gone")

    registry = Registry()
    registry.register(fail)
    registry.register(lambda now: [single(TIME, 2)])

    registry.snapshot(0)
    snapshot = registry.snapshot(1)

    assert {"queue_size", "time_ms", COLLECTOR_ERRORS.name} == set(snapshot)
    assert 2 == snapshot[COLLECTOR_ERRORS.name].of()
    assert 2 == caplog.text.count("a metrics collector failed")


def test_a_name_has_one_meaning() -> None:
    registry = Registry()
    other = Metric("queue_size", Kind.COUNTER, "Something else.")
    registry.register(lambda now: [single(QUEUE, 1)])
    registry.register(lambda now: [single(other, 2)])

    snapshot = registry.snapshot(0)

    assert (1, 1) == (snapshot["queue_size"].of(), snapshot[COLLECTOR_ERRORS.name].of())


def test_a_collector_can_be_taken_away_and_is_never_asked_twice() -> None:
    def collect(now: float) -> list[Family]:
        return [single(QUEUE, 1)]

    registry = Registry()
    registry.register(collect)
    registry.register(collect)
    assert 1 == len(registry.snapshot(0)["queue_size"].samples)

    registry.unregister(collect)
    registry.unregister(collect)

    assert [COLLECTOR_ERRORS.name] == list(registry.snapshot(0))


def test_a_family_is_asked_by_its_labels() -> None:
    family = Family(BYTES, (Sample(("A",), 5),))

    assert 5 == family.of("A")
    with pytest.raises(KeyError):
        family.of("B")
