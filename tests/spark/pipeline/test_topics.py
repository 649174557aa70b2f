"""What a job does about its topics before Spark starts: our admin client against our broker."""

from __future__ import annotations

from typing import Any

import pytest
import trio

import trionet
from spark.pipeline.test_settings import settings
from trionet.client.admin import ConfigResource, ConfigResourceType
from trionet.errors import ConfigError, DisconnectedError
from trionet.spark.pipeline._job import RESULTS_CONFIGS, prepare_topics


def is_asked_to_stop() -> bool:
    return True


def goes_on() -> bool:
    return False


def nothing(_text: str) -> None:
    raise AssertionError("there is nothing to wait for")


async def test_the_topic_of_results_is_made_for_keys_that_come_again() -> None:
    async with (
        trionet.open_broker() as broker,
        trionet.open_admin(broker.bootstrap_servers) as admin,
    ):
        await admin.create_topics(["requests"])
        job = settings(bootstrap_servers=broker.bootstrap_servers)

        assert await prepare_topics(job, goes_on, nothing)
        assert await prepare_topics(job, goes_on, nothing)

        resource = ConfigResource(ConfigResourceType.TOPIC, "requests-results")
        configs = (await admin.describe_configs([resource])).checked()[resource]
        assert RESULTS_CONFIGS["cleanup.policy"] == configs["cleanup.policy"].value


async def test_a_job_waits_for_its_topic(autojump_clock: Any) -> None:
    told: list[str] = []
    network = trionet.testing.MemoryNetwork()
    async with (
        trionet.open_broker(network=network) as broker,
        trionet.open_admin(broker.bootstrap_servers, network=network) as admin,
        trio.open_nursery() as nursery,
    ):
        job = settings(bootstrap_servers=broker.bootstrap_servers)

        async def make_later() -> None:
            await trio.sleep(10)
            await admin.create_topics(["requests"])

        nursery.start_soon(make_later)
        assert await prepare_topics(job, goes_on, told.append, network=network)

    assert ["waiting for the topic requests"] == told


async def test_a_job_that_waits_can_be_stopped() -> None:
    async with trionet.open_broker() as broker:
        job = settings(bootstrap_servers=broker.bootstrap_servers)

        assert not await prepare_topics(job, is_asked_to_stop, lambda _: None)


async def test_a_job_that_has_no_broker_yet_can_be_stopped(autojump_clock: Any) -> None:
    async def never_connected(_admin: trionet.Admin) -> None:
        await trio.sleep_forever()

    def is_stopped() -> bool:
        return trio.current_time() >= 3

    job = settings(bootstrap_servers="10.0.0.9:9092")
    network = trionet.testing.MemoryNetwork()
    assert not await prepare_topics(job, is_stopped, nothing, never_connected, network=network)

    assert 3 == pytest.approx(trio.current_time(), abs=0.2)


async def test_what_is_there_of_a_topic_that_is_not_cannot_be_read() -> None:
    async with trionet.open_broker() as broker:
        job = settings(bootstrap_servers=broker.bootstrap_servers, available_now=True)

        with pytest.raises(ConfigError, match=r"request\.log\.topic=requests"):
            await prepare_topics(job, goes_on, nothing)


async def test_a_job_whose_brokers_refuse_it_ends_soon(autojump_clock: Any) -> None:
    network = trionet.testing.MemoryNetwork()
    job = settings(bootstrap_servers="10.0.0.9:9092")

    with pytest.raises(DisconnectedError) as raised:
        await prepare_topics(job, goes_on, nothing, network=network)

    assert 2 == pytest.approx(trio.current_time())
    assert "nothing listens at 10.0.0.9:9092 (connection refused); gave up after 2 s" == str(
        raised.value
    )
