"""The inside of a broker beside the dashboard, with nothing set on either side."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
import trio

from support.client import connect
from support.ports import free_ports
from support.watching import watching
from trionet import open_broker, open_jafka_broker
from trionet.dashboard.sources._local_source import NO_METRICS, has_jafka
from trionet.dashboard.sources._open_source import open_remote
from trionet.protocol.messages.api_versions import ApiVersionsRequest
from trionet.testing import broker as running_broker


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "trionet"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_everything_is_shown(host: str) -> None:
    async with open_broker() as broker, connect(broker.bootstrap_servers):
        address = f"{host}:{broker.endpoints[0].port}"
        async with open_remote(address) as source, watching(source) as watched:
            source.focus("connections")
            model = await watched.until(lambda m: len(m.connections) and m.brokers.updated_at)

    assert (address, "local socket", 1) == (
        model.about.source,
        model.about.via,
        model.about.node_id,
    )
    assert {} == model.alarms


async def test_connections_are_closed_without_a_token() -> None:
    async with open_broker() as broker, connect(broker.bootstrap_servers) as client:
        await client.call(ApiVersionsRequest(), 0)
        async with open_remote(broker.bootstrap_servers) as source, watching(source) as watched:
            source.focus("connections")
            model = await watched.until(lambda model: len(model.connections))
            id = next(row.id for row in model.connections.values() if row.client_id != "")

            assert f"closed connection {id}" == await source.actions.close_connection(id)


async def test_a_broker_that_comes_later_is_found() -> None:
    [port] = free_ports(1)
    async with open_remote(f"127.0.0.1:{port}") as source, watching(source) as watched:
        await watched.until(lambda model: model.unreachable)
        assert {None} == {each.missing for each in (watched.model.apis, watched.model.log)}

        async with open_broker(listeners=f"PLAINTEXT://127.0.0.1:{port}"):
            model = await watched.until(lambda m: m.about.via and m.unreachable is None)

            assert "local socket" == model.about.via


async def test_a_broker_that_ends_is_no_broker_without_an_inside() -> None:
    with ExitStack() as running:
        broker = running.enter_context(running_broker())
        async with open_remote(broker.bootstrap_servers) as source, watching(source) as watched:
            await watched.until(lambda model: model.about.via)
            await trio.to_thread.run_sync(running.close)
            model = await watched.until(lambda model: model.apis.failure)

    assert f"the local socket of {broker.bootstrap_servers}" in model.failing
    assert None is model.apis.missing


async def test_a_broker_without_one_is_read_by_kafkas_protocol() -> None:
    async with (
        open_broker(metrics_local_enable=False) as broker,
        open_remote(broker.bootstrap_servers) as source,
        watching(source) as watched,
    ):
        model = await watched.until(lambda model: model.apis.missing)

    assert ("Kafka protocol", NO_METRICS) == (model.about.via, model.apis.missing)
    assert {} == model.alarms


async def test_a_jafka_broker_is_seen_as_one() -> None:
    async with (
        open_jafka_broker() as broker,
        open_remote(broker.address) as source,
        watching(source) as watched,
    ):
        model = await watched.until(lambda model: model.topics.updated_at is not None)

    assert "local socket" == model.about.via
    assert model.groups.missing


def too_long(folder: Path) -> Path:
    return folder / ("x" * 100)


def not_a_folder(folder: Path) -> Path:
    (folder / "trionet").touch()
    return folder


def a_link_to_itself(folder: Path) -> Path:
    (folder / "trionet").mkdir(mode=0o700)
    for kind in ("jafka", "kafka"):
        link = folder / "trionet" / f"{kind}-127.0.0.1:9092.sock"
        link.symlink_to(link)
    return folder


@pytest.mark.parametrize("make", [too_long, not_a_folder, a_link_to_itself])
async def test_what_cannot_be_connected_to_makes_no_broker_a_jafka_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], Path]
) -> None:
    runtime = make(tmp_path)
    runtime.mkdir(mode=0o700, exist_ok=True)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))

    assert not await has_jafka("127.0.0.1:9092")
