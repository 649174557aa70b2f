from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import trio

from support.brokers import log_of
from support.calls import append, create_topic, delete_topic, fetch, values_of
from support.client import connect
from trionet import open_broker
from trionet.broker.model._broker_state import BrokerState
from trionet.broker.model._cluster import Cluster
from trionet.broker.storage._storage_errors import storage_errors
from trionet.errors import ApiError
from trionet.protocol import error_codes

NEVER_SEEN = b"\x01" * 16


async def refusal(state: BrokerState, topic: str | bytes, partition: int) -> int:
    await trio.lowlevel.checkpoint()
    with pytest.raises(ApiError) as raised:
        state.find_log(topic, partition)
    return raised.value.error_code


async def test_a_log_is_found_by_the_name_and_by_the_id_of_its_topic() -> None:
    async with open_broker() as broker:
        state = broker._state
        topic = await state.cluster.create_topic("t", partitions=2)

        by_name, by_id = state.find_log("t", 1), state.find_log(topic.id, 1)

        assert log_of(broker, partition=1) is by_name is by_id
        assert by_name is state.get_log("t", 1)


async def test_what_there_is_no_log_of_is_none_or_an_error() -> None:
    async with open_broker() as broker:
        state = broker._state
        topic = await state.cluster.create_topic("t")

        assert state.get_log("t", 1) is state.get_log("u", 0) is state.get_log(NEVER_SEEN, 0)
        assert error_codes.UNKNOWN_TOPIC_OR_PARTITION == await refusal(state, "u", 0)
        assert error_codes.UNKNOWN_TOPIC_OR_PARTITION == await refusal(state, "t", 1)
        assert error_codes.UNKNOWN_TOPIC_OR_PARTITION == await refusal(state, topic.id, 1)
        assert error_codes.UNKNOWN_TOPIC_ID == await refusal(state, NEVER_SEEN, 0)


async def test_a_topics_logs_obey_its_settings_and_then_the_brokers() -> None:
    async with open_broker(log_segment_bytes=2_000_000, message_max_bytes=5000) as broker:
        await broker._cluster.create_topic("t", configs=(("max.message.bytes", "700"),))

        config = log_of(broker).config

        assert (700, 2_000_000) == (config.max_message_bytes, config.segment_bytes)


async def test_of_many_who_create_a_topic_at_once_one_succeeds() -> None:
    outcomes: list[int] = []

    async def create(cluster: Cluster) -> None:
        try:
            await cluster.create_topic("t", partitions=5)
            outcomes.append(error_codes.NONE)
        except ApiError as error:
            outcomes.append(error.error_code)

    async with open_broker() as broker:
        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(create, broker._cluster)

        assert [error_codes.NONE, *[error_codes.TOPIC_ALREADY_EXISTS] * 9] == sorted(outcomes)
        assert 5 == len(broker._state.folder.logs)


async def test_get_or_create_returns_the_same_topic_to_all() -> None:
    async with open_broker() as broker:
        state = broker._state

        first = await state.cluster.get_or_create_topic("t")
        second = await state.cluster.get_or_create_topic("t")

        assert first is second
        with pytest.raises(ApiError, match="invalid topic name"):
            await state.cluster.get_or_create_topic("a b")


async def test_a_deleted_topic_cannot_be_deleted_again() -> None:
    async with open_broker() as broker:
        topic = await broker._cluster.create_topic("t")
        await broker._cluster.delete_topic(topic)

        with pytest.raises(ApiError) as raised:
            await broker._cluster.delete_topic(topic)

        assert error_codes.UNKNOWN_TOPIC_OR_PARTITION == raised.value.error_code


async def test_creations_and_deletions_may_alternate_fast() -> None:
    async with open_broker() as broker, connect(broker.bootstrap_servers) as client:
        for round in range(10):
            await create_topic(client, "t", partitions=2)
            await append(client, b"%d" % round)
            assert [b"%d" % round] == values_of(await fetch(client, "t"))
            await delete_topic(client, "t")

        assert {} == broker._state.folder.logs


async def test_a_creation_that_was_cut_short_is_completed_by_the_next_start(
    tmp_path: Path,
) -> None:
    async with (
        open_broker(log_dirs=str(tmp_path)) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        topic_id = (await create_topic(client, "t", partitions=2)).topic_id
    shutil.rmtree(tmp_path / "t-1")

    async with (
        open_broker(log_dirs=str(tmp_path)) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        await append(client, b"a", partition=1)

        assert topic_id == log_of(broker, partition=1).topic_id
        assert [b"a"] == values_of(await fetch(client, topic_id, partition=1))


async def test_a_partition_that_no_topic_owns_is_set_aside_and_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "trionet.broker")
    data = tmp_path / "data"
    async with (
        open_broker(log_dirs=str(data)) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        await create_topic(client, "t")
        await create_topic(client, "other")
        await append(client, b"a")
        await log_of(broker).flush()
        shutil.copytree(data / "t-0", tmp_path / "copy")
        await delete_topic(client, "t")
    shutil.copytree(tmp_path / "copy", data / "t-0")

    async with open_broker(log_dirs=str(data)) as broker:
        assert [("other", 0)] == list(broker._state.folder.logs)

    assert ["other-0"] == [name for name in os.listdir(data) if name.endswith("-0")]
    [stray] = [name for name in os.listdir(data) if name.endswith("-stray")]
    assert (
        f"t-0: no topic has this partition; its directory is kept as {stray} and not served"
        in caplog.text
    )
    assert b"a" in (data / stray / f"{0:020d}.log").read_bytes()


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), PermissionError()])
def test_a_failing_disk_is_kafkas_storage_error_and_is_logged(
    error: OSError, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ApiError) as raised, storage_errors():
        raise error

    assert error_codes.KAFKA_STORAGE_ERROR == raised.value.error_code
    assert error is raised.value.__cause__
    assert ["WARNING"] == [record.levelname for record in caplog.records]


def test_other_errors_are_left_alone() -> None:
    with pytest.raises(ZeroDivisionError), storage_errors():
        raise ZeroDivisionError
