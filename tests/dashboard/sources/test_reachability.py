"""What cannot be reached is noticed within seconds, and so is that it is back."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager

import pytest
import trio

from support.ports import free_ports
from support.watching import INTERVAL_SECONDS, Watching
from trionet import open_broker
from trionet.dashboard.model._model import Model
from trionet.dashboard.sources import _cluster_source as cluster_source
from trionet.dashboard.sources._cluster_source import ClusterSource
from trionet.testing import broker as running_broker

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_source, "CHECK_SECONDS", 0.01)
    monkeypatch.setattr(cluster_source, "REFUSED_SECONDS", 0.05)


@asynccontextmanager
async def looking_for(servers: str) -> AsyncIterator[Watching]:
    """A model of a cluster that may not be there, which is not waited for."""
    found = Watching(Model())
    source = ClusterSource(servers)
    source.interval_seconds = INTERVAL_SECONDS
    found.model.changed = found.changed
    async with trio.open_nursery() as nursery:
        nursery.start_soon(source.run, found.model)
        yield found
        nursery.cancel_scope.cancel()


def said(model: Model) -> str:
    """What is said of a cluster of which a user need not wait for a response."""
    assert model.is_refused
    assert ["reachability"] == list(model.failing)
    assert [f"{model.unreachable}; trying again every second"] == model.problems
    return str(model.unreachable)


async def test_where_nothing_listens_the_address_is_said_as_it_was_given() -> None:
    [port] = free_ports(1)
    async with looking_for(f"localhost:{port}") as watched:
        model = await watched.until(lambda model: model.is_refused)

    assert f"nothing listens at localhost:{port} (connection refused)" == said(model)


async def test_all_of_them_are_named() -> None:
    one, other = free_ports(2)
    async with looking_for(f"127.0.0.1:{one},127.0.0.1:{other}") as watched:
        model = await watched.until(lambda model: model.is_refused)

    expected = f"nothing listens at 127.0.0.1:{one} or 127.0.0.1:{other} (connection refused)"
    assert expected == said(model)


async def test_one_that_responds_is_enough_and_what_is_back_is_noticed() -> None:
    one, other = free_ports(2)
    async with looking_for(f"127.0.0.1:{one},127.0.0.1:{other}") as watched:
        await watched.until(lambda model: model.is_refused)
        async with open_broker(listeners=f"PLAINTEXT://127.0.0.1:{other}"):
            model = await watched.until(lambda model: model.unreachable is None)

            assert ({}, {}, False) == (model.alarms, model.failing, model.is_refused)


async def test_a_name_without_an_address_is_told_from_a_closed_port() -> None:
    async with looking_for("nowhere.invalid:9092") as watched:
        model = await watched.until(lambda model: model.is_refused)

    assert "nowhere.invalid:9092: name does not resolve" in said(model)


async def test_a_server_that_is_silent_may_still_respond() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        async with looking_for(address) as watched:
            model = await watched.until(lambda model: model.unreachable)

    assert f"{address}: no response to ApiVersions within 2 s" in str(model.unreachable)
    assert not model.is_refused


async def test_a_broker_that_ends_is_missed_and_what_follows_is_not_shown_beside_it() -> None:
    with ExitStack() as running:
        servers = running.enter_context(running_broker()).bootstrap_servers
        async with looking_for(servers) as watched:
            await watched.until(lambda model: model.responded_at)
            watched.model.set_alarm("topics", "topics could not be read", 0.0)
            assert ["topics could not be read"] == watched.model.problems
            await trio.to_thread.run_sync(running.close)
            model = await watched.until(lambda model: model.is_refused)

    [problem] = model.problems
    assert servers in problem
    assert problem.endswith("; trying again every second")
