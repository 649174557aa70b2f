"""File descriptors: how many connections may take, and that files have the others."""

from __future__ import annotations

import contextlib
import gc
import logging
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import trionet.broker.run._server_settings as module
from support.calls import batch, create_topic, delete_topic, fetch, produce, values_of
from support.client import connect, host_and_port
from support.eventually import eventually
from support.leaks import descriptors
from support.trionet_process import trionet_broker_process
from trionet import open_broker
from trionet.broker.config._broker_config import BrokerConfig
from trionet.broker.run._server_settings import (
    CONNECTIONS_MIN,
    connections_max,
    log_connections_max,
)
from trionet.protocol.error_codes import KAFKA_STORAGE_ERROR
from trionet.server._connection_quotas import UNLIMITED

resource = pytest.importorskip("resource", reason="needs the limits of Unix")

LIMIT = 256
TOPICS = 80


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> int:
    """What the process may open: 1000 files."""
    monkeypatch.setattr(module, "descriptor_limit", lambda: 1000)
    return 1000


def test_connections_leave_half_of_the_descriptors_to_files(limit: int) -> None:
    assert 500 == connections_max(BrokerConfig({}))
    assert 166 == connections_max(BrokerConfig({}), nodes=3)
    assert 20 == connections_max(BrokerConfig.from_settings({"max.connections": "20"}))
    assert 0 == connections_max(BrokerConfig.from_settings({"max.connections": "0"}))


def test_the_reserve_is_a_setting_and_shuts_no_client_out(limit: int) -> None:
    reserve = "file.descriptors.reserve"
    assert 900 == connections_max(BrokerConfig.from_settings({reserve: "100"}))
    assert 1000 == connections_max(BrokerConfig.from_settings({reserve: "0"}))
    assert CONNECTIONS_MIN == connections_max(BrokerConfig.from_settings({reserve: "5000"}))


def test_without_a_limit_of_descriptors_connections_have_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert soft // 2 == connections_max(BrokerConfig({}))
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, hard))
    assert UNLIMITED == connections_max(BrokerConfig({}))


def test_a_setting_that_counts_for_less_is_reported(
    limit: int, caplog: pytest.LogCaptureFixture
) -> None:
    log_connections_max(BrokerConfig({}), 1)
    log_connections_max(BrokerConfig.from_settings({"max.connections": "500"}), 1)
    assert "" == caplog.text

    log_connections_max(BrokerConfig.from_settings({"max.connections": "501"}), 1)

    [(_, level, message)] = caplog.record_tuples
    assert logging.WARNING == level
    assert message.startswith("max.connections = 501 is reduced to 500: the process may open 1000")


@contextlib.contextmanager
def strangers(address: str, count: int) -> Iterator[None]:
    """Connections that say nothing, as many as are let in and a few in the backlog."""
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            sock = stack.enter_context(socket.socket())
            sock.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                sock.connect(host_and_port(address))
        yield


def with_descriptors(limit: int) -> list[str]:
    """A command that runs another one with so many file descriptors."""
    code = (
        f"import os, resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, ({limit}, {limit}));"
        " os.execv(sys.argv[1], sys.argv[1:])"
    )
    return [sys.executable, "-c", code]


async def test_strangers_leave_the_descriptors_that_partitions_need(tmp_path: Path) -> None:
    """On a disk, each partition opens a file when it is written for the first time."""
    topics = [f"t{number}" for number in range(TOPICS)]
    with trionet_broker_process(tmp_path / "data", before=with_descriptors(LIMIT)) as (address, _):
        async with connect(address) as client:
            for topic in topics:
                await create_topic(client, topic)
            with strangers(address, 2 * LIMIT):
                written = [await produce(client, topic, batch(b"x")) for topic in topics]
    assert {0} == {each.error_code for each in written}


async def test_partitions_in_memory_take_descriptors_when_they_are_written_to() -> None:
    """Two topics of 10,000 partitions had taken them all, and with them every later request."""

    def files() -> int:
        gc.collect()  # those of tests before
        return len([each for each in descriptors() if "memfd:" in each])

    async with open_broker() as broker, connect(broker.bootstrap_servers) as client:
        before = files()
        await create_topic(client, "big", partitions=500)
        created = files() - before
        await produce(client, "big", batch(b"a"), partition=3)
        assert [b"a"] == values_of(await fetch(client, "big", partition=3))
        written = files() - before

    assert [0, 1] == [created, written]


async def test_without_descriptors_for_logs_a_broker_in_memory_still_serves() -> None:
    """What has no place is refused; who comes anew is served, and deleting makes room."""
    with trionet_broker_process(before=with_descriptors(LIMIT)) as (address, _):
        async with connect(address) as client:
            await create_topic(client, "big", partitions=LIMIT)
            codes = [
                (await produce(client, "big", batch(b"a"), partition=index)).error_code
                for index in range(LIMIT)
            ]
            assert {0, KAFKA_STORAGE_ERROR} == set(codes)
            assert codes == sorted(codes)
            assert LIMIT // 2 < codes.count(0) < LIMIT - LIMIT // 16
            assert [b"a"] == values_of(await fetch(client, "big"))
        async with connect(address) as another:
            await delete_topic(another, "big")
            await create_topic(another, "small")

            async def write() -> int:
                return (await produce(another, "small", batch(b"a"))).error_code

            # The files of what is deleted go in the background.
            await eventually(write, lambda code: not code)
