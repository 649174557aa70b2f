"""Committed offsets in memory, and when they expire (KIP-211)."""

from __future__ import annotations

from typing import ClassVar

import pytest

from trionet.broker.groups._committed_offsets import (
    CommittedOffset,
    CommittedOffsets,
    Partition,
    expired,
)

HOUR = 3_600_000
RETENTION = 24 * HOUR
NOW = 1_700_000_000_000


def at(
    offset: int, committed_at_ms: int = NOW, expires_at_ms: int | None = None
) -> CommittedOffset:
    return CommittedOffset(offset, -1, "", committed_at_ms, expires_at_ms)


@pytest.fixture
def offsets() -> CommittedOffsets:
    offsets = CommittedOffsets()
    offsets.put("g", {("t", 0): at(1), ("t", 1): at(2), ("u", 0): at(3)})
    offsets.put("h", {("t", 0): at(4)})
    return offsets


def test_a_group_has_those_that_it_committed_last(offsets: CommittedOffsets) -> None:
    offsets.put("g", {("t", 1): at(20), ("v", 0): at(5)})

    assert {("t", 0): at(1), ("t", 1): at(20), ("u", 0): at(3), ("v", 0): at(5)} == offsets.of("g")
    assert {("t", 0): at(4)} == offsets.of("h")


def test_a_group_that_has_committed_nothing_has_none(offsets: CommittedOffsets) -> None:
    offsets.put("empty", {})

    assert {} == offsets.of("unknown") == offsets.of("empty")


def test_some_can_be_removed(offsets: CommittedOffsets) -> None:
    offsets.remove("g", [("t", 0), ("u", 0), ("never", 9)])
    offsets.remove("unknown", [("t", 0)])

    assert {("t", 1): at(2)} == offsets.of("g")
    assert {("t", 0): at(4)} == offsets.of("h")


def test_all_of_a_group_can_be_removed(offsets: CommittedOffsets) -> None:
    offsets.remove_group("g")
    offsets.remove_group("unknown")

    assert ({}, {("t", 0): at(4)}) == (offsets.of("g"), offsets.of("h"))


def test_all_of_a_topic_can_be_removed(offsets: CommittedOffsets) -> None:
    offsets.remove_topic("t")

    assert ({("u", 0): at(3)}, {}) == (offsets.of("g"), offsets.of("h"))


class ComparedName(str):
    """The name of a topic that counts how often one is compared with another name."""

    __slots__ = ()
    times: ClassVar[int] = 0

    def __eq__(self, other: object) -> bool:
        ComparedName.times += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_the_end_of_a_topic_concerns_no_groups_of_others(offsets: CommittedOffsets) -> None:
    for number in range(100):
        offsets.put(f"g{number}", {(ComparedName(f"u{number}"), 0): at(1)})
    ComparedName.times = 0

    offsets.remove_topic("t")

    assert 0 == ComparedName.times


def test_a_group_may_come_back_to_a_topic(offsets: CommittedOffsets) -> None:
    offsets.remove("g", [("t", 0), ("t", 1)])
    offsets.put("g", {("t", 7): at(7)})
    offsets.remove_topic("u")
    offsets.put("g", {("u", 8): at(8)})

    offsets.remove_topic("t")
    assert {("u", 8): at(8)} == offsets.of("g")
    offsets.remove_topic("u")
    assert {} == offsets.of("g")


@pytest.mark.parametrize("first", ["partitions", "topic"])
def test_a_group_that_has_none_left_takes_no_room(offsets: CommittedOffsets, first: str) -> None:
    if first == "partitions":
        offsets.remove("g", [("t", 0), ("t", 1), ("u", 0)])
    else:
        offsets.remove_topic("u")
    offsets.remove_topic("t")

    assert ({}, {}, {}) == (offsets._groups, offsets._topics_of, offsets._groups_of)


# Expiry.


def due(
    committed_at_ms: int = NOW - 2 * RETENTION,
    expires_at_ms: int | None = None,
    *,
    empty_since_ms: int | None = None,
    in_use: frozenset[str] | None = frozenset(),
) -> bool:
    """Whether the offset of a partition of topic `t` is to be dropped now."""
    partition: Partition = ("t", 0)
    found = expired(
        {partition: at(1, committed_at_ms, expires_at_ms)},
        NOW,
        RETENTION,
        empty_since_ms=empty_since_ms,
        in_use=in_use,
    )
    assert found in ([], [partition])
    return bool(found)


def test_an_offset_of_a_topic_without_readers_is_kept_for_the_retention() -> None:
    assert not due(NOW - RETENTION + 1)
    assert due(NOW - RETENTION)


def test_that_of_a_topic_that_members_read_is_kept_however_old_it_is() -> None:
    assert not due(0, in_use=frozenset({"t"}))
    assert due(in_use=frozenset({"other"}))


def test_so_is_every_one_while_it_is_not_known_what_members_read() -> None:
    assert not due(0, in_use=None)


def test_the_retention_begins_when_the_last_member_leaves() -> None:
    assert not due(0, empty_since_ms=NOW - RETENTION + 1)
    assert due(0, empty_since_ms=NOW - RETENTION)


def test_what_is_committed_to_a_group_without_members_has_its_own_retention() -> None:
    """An administrator who sets the offsets of an old group finds them there tomorrow."""
    assert not due(NOW - 1, empty_since_ms=NOW - 2 * RETENTION)


def test_a_client_may_say_how_long_an_offset_is_kept() -> None:
    assert not due(0, NOW + 1)
    assert due(NOW - 1, NOW)
    assert not due(0, NOW + 1, empty_since_ms=0)


def test_what_members_read_is_kept_whatever_the_client_said() -> None:
    assert not due(0, NOW - 1, in_use=frozenset({"t"}))
    assert not due(0, NOW - 1, in_use=None)


def test_each_partition_is_judged_by_itself() -> None:
    offsets = {
        ("t", 0): at(1, NOW - RETENTION),
        ("t", 1): at(1, NOW),
        ("u", 0): at(1, NOW, NOW),
        ("used", 0): at(1, 0),
    }

    assert [("t", 0), ("u", 0)] == expired(
        offsets, NOW, RETENTION, empty_since_ms=None, in_use=frozenset({"used"})
    )


def test_what_a_transaction_may_still_change_is_kept() -> None:
    """If it is aborted, the group goes on from there."""
    offsets = {("t", 0): at(1, 0), ("t", 1): at(2, 0)}

    assert [("t", 1)] == expired(
        offsets, NOW, RETENTION, empty_since_ms=None, in_use=frozenset(), pending={("t", 0)}
    )
