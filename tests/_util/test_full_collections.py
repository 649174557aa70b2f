"""Full garbage collections cost the same however much a broker of its own process keeps."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from support.brokers import broker_and_client
from support.calls import create_topic
from support.group_calls import commit
from trionet._util._full_collections import FROZEN_AT_ONCE, full_collections

#: What a full collection may visit: what was not worth freezing, and what is new since the last.
VISITED_MAX = 6 * FROZEN_AT_ONCE


class Node:
    """An object that may be part of a cycle."""

    next: Any = None


@pytest.fixture(autouse=True)
def unfrozen() -> Iterator[None]:
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def test_what_is_kept_is_not_visited_again_and_is_freed_when_dropped() -> None:
    with full_collections.freeze_survivors():
        before = gc.get_freeze_count()
        kept = [Node() for _ in range(40 * FROZEN_AT_ONCE)]

        assert len(gc.get_objects()) < VISITED_MAX
        kept.clear()
        assert gc.get_freeze_count() < before + VISITED_MAX


def test_what_there_was_before_does_not_make_collections_rarer() -> None:
    earlier = [Node() for _ in range(80 * FROZEN_AT_ONCE)]
    gc.collect()
    with full_collections.freeze_survivors():
        kept = [Node() for _ in range(20 * FROZEN_AT_ONCE)]

        assert len(gc.get_objects()) < VISITED_MAX
    assert earlier
    assert kept


def test_garbage_in_cycles_is_freed() -> None:
    with full_collections.freeze_survivors():
        before = gc.get_freeze_count()
        for _ in range(40 * FROZEN_AT_ONCE):
            node = Node()
            node.next = node

        assert gc.get_freeze_count() < before + FROZEN_AT_ONCE
        assert len(gc.get_objects()) < VISITED_MAX


def test_few_survivors_are_not_frozen() -> None:
    with full_collections.freeze_survivors():
        kept = [Node() for _ in range(FROZEN_AT_ONCE // 10)]
        before = gc.get_freeze_count()
        gc.collect()

        assert gc.get_freeze_count() <= before
        assert kept


def test_a_long_call_does_not_put_off_what_takes_no_time() -> None:
    with full_collections.freeze_survivors():
        before = gc.get_threshold()
        with full_collections.put_off():
            assert before == gc.get_threshold()


def test_afterwards_collections_are_as_before() -> None:
    before = gc.get_threshold(), list(gc.callbacks)
    with full_collections.freeze_survivors():
        assert before != (gc.get_threshold(), gc.callbacks)

    assert before == (gc.get_threshold(), gc.callbacks)


async def test_new_logs_and_groups_are_frozen_and_deleted_ones_are_freed() -> None:
    async with broker_and_client() as (broker, client):
        with broker.own_process():
            before = gc.get_freeze_count()
            await create_topic(client, "t", partitions=4000)
            for number in range(500):
                await commit(client, {"t": dict.fromkeys(range(20), 1)}, group=f"g{number}")

            assert before + 50_000 < gc.get_freeze_count()
            assert len(gc.get_objects()) < VISITED_MAX

            topic = broker._cluster.topics.get("t")
            assert topic is not None
            await broker._cluster.delete_topic(topic)

            assert gc.get_freeze_count() < before + 50_000


async def test_nothing_is_frozen_in_a_process_of_another_program() -> None:
    async with broker_and_client() as (_, client):
        before = gc.get_freeze_count()
        await create_topic(client, "t", partitions=1000)

        assert gc.get_freeze_count() <= before
