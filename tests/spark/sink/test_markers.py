"""What a marker says, and what a replay makes of it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from trionet.spark.sink._digest import RowDigest
from trionet.spark.sink._markers import (
    Marker,
    ReplayError,
    check_head,
    check_same,
    parse_marker,
    wanted_markers,
)

DIGESTS = {1: RowDigest(2, 20), 3: RowDigest(1, 2**64 - 1)}
WANTED = wanted_markers(7, DIGESTS)


def test_marker_is_an_offset_with_metadata() -> None:
    """Brokers allow 4096 bytes of metadata, unless they are set otherwise."""
    for marker in WANTED.values():
        assert marker == parse_marker("g", 7, marker.metadata())
        assert len(marker.metadata()) < 200


def test_marker_has_the_rows_of_the_task_and_of_all_tasks() -> None:
    assert {
        1: Marker(7, 1, RowDigest(2, 20), 2, 3, RowDigest(3, 19)),
        3: Marker(7, 3, RowDigest(1, 2**64 - 1), 2, 3, RowDigest(3, 19)),
    } == WANTED


@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        ("", "not a marker"),
        ("x", "not a marker"),
        ("[]", "not a marker"),
        ("{}", "not a marker"),
        ('{"trionet": 1}', "not a marker"),
        ('{"trionet": 2}', "reads version 1"),
    ],
)
def test_what_is_no_marker_is_an_error(metadata: str, text: str) -> None:
    with pytest.raises(ReplayError, match=f"group 'g'.*{text}"):
        parse_marker("g", 7, metadata)


@pytest.mark.parametrize("head", [None, Marker(6, 0, RowDigest(1, 1), 1, 0, RowDigest(1, 1))])
def test_without_a_head_nothing_is_committed(head: Marker | None) -> None:
    assert not check_head(7, WANTED, head)
    assert not check_head(7, {}, head)


def test_head_of_the_micro_batch_says_that_a_part_is_committed() -> None:
    assert check_head(7, WANTED, WANTED[1])


@pytest.mark.parametrize(
    ("replay", "text"),
    [
        ({}, "that task has no rows"),
        ({3: DIGESTS[3]}, "that task has no rows"),
        ({1: RowDigest(2, 21), 3: DIGESTS[3]}, "that task has 2 rows with digest"),
        ({0: RowDigest(1, 1), **DIGESTS}, "all 3 tasks up to task 3 have 4 rows"),
        ({1: DIGESTS[1]}, "all 1 tasks up to task 1 have 2 rows"),
        ({0: RowDigest(0, 0), 1: DIGESTS[1], 3: DIGESTS[3]}, "all 3 tasks up to task 3 have 3"),
        ({1: DIGESTS[1], 4: DIGESTS[3]}, "2 tasks up to task 4 have 3 rows .* 2 up to task 3 had"),
    ],
)
def test_replay_must_have_the_same_rows(replay: Mapping[int, RowDigest], text: str) -> None:
    with pytest.raises(ReplayError, match=text):
        check_head(7, wanted_markers(7, replay), WANTED[1])


def test_head_must_be_of_the_first_task() -> None:
    with pytest.raises(ReplayError, match="its first task is 1"):
        check_head(7, WANTED, WANTED[3])


def test_checkpoint_must_not_be_older() -> None:
    with pytest.raises(ReplayError, match="have micro-batch 7 of this query already"):
        check_head(6, wanted_markers(6, DIGESTS), WANTED[1])


def test_each_committed_task_is_compared() -> None:
    check_same(WANTED[3], WANTED[3])
    with pytest.raises(ReplayError, match="Restore what has changed"):
        check_same(WANTED[1], WANTED[3])
