"""Full garbage collections of a broker's own process do not visit all of its logs."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from support.brokers import broker_and_client
from support.calls import create_topic
from trionet.broker.model._cluster import LOGS_FROZEN_AT_ONCE

#: More objects than a new log has, so that a difference is one of hundreds of logs.
OBJECTS = 10 * LOGS_FROZEN_AT_ONCE


@pytest.fixture(autouse=True)
def unfrozen() -> Iterator[None]:
    gc.unfreeze()
    yield
    gc.unfreeze()


async def test_new_logs_are_frozen_and_deleted_ones_are_freed() -> None:
    async with broker_and_client() as (broker, client):
        broker.own_process()
        await create_topic(client, "first", partitions=LOGS_FROZEN_AT_ONCE)
        before, young = gc.get_freeze_count(), len(gc.get_objects())
        await create_topic(client, "t", partitions=2 * LOGS_FROZEN_AT_ONCE)

        assert before + 2 * OBJECTS < gc.get_freeze_count()
        assert len(gc.get_objects()) < young + OBJECTS

        topic = broker._cluster.topics.get("t")
        assert topic is not None
        await broker._cluster.delete_topic(topic)

        assert gc.get_freeze_count() < before + OBJECTS


async def test_nothing_is_frozen_in_a_process_of_another_program() -> None:
    async with broker_and_client() as (_, client):
        await create_topic(client, "t", partitions=LOGS_FROZEN_AT_ONCE)

        assert 0 == gc.get_freeze_count()
