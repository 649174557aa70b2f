"""What a metrics listener reports, and what it is asked to do, over HTTP and HTTPS."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from support.calls import create_topic
from support.client import connect
from support.tls import certificate, client_context, write_pem
from support.watching import watching
from trionet import ConfigError, open_broker
from trionet.dashboard.model._model import Model
from trionet.dashboard.model._snapshot import LOOP_LAG, OPEN_FDS, from_json
from trionet.dashboard.sources._http_client import HttpClient, HttpError
from trionet.dashboard.sources._network_source import NetworkSource
from trionet.dashboard.sources._snapshot_readers import MetricsListenerReader, MetricsPagesError

TOKEN = "sixteen-characters-at-least"
HERE = "http://127.0.0.1:0"


@pytest.mark.slow
async def test_more_connections_than_a_page_has_are_all_read() -> None:
    async with (
        open_broker(metrics_listener=HERE) as broker,
        trio.open_nursery() as nursery,
    ):
        assert broker.metrics is not None
        streams = [
            await trio.open_tcp_stream("127.0.0.1", broker.endpoints[0].port) for _ in range(505)
        ]
        async with HttpClient(f"{broker.metrics.url}") as client:
            reader = MetricsListenerReader(client)
            with trio.fail_after(5):
                while broker.statistics().server.connections < len(streams):
                    await trio.lowlevel.checkpoint()
            rows, total = await reader.rows("connections")

        assert (505, 505) == (total, len({row["number"] for row in rows}))
        for stream in streams:
            nursery.start_soon(stream.aclose)


async def test_a_connection_is_closed_by_who_has_the_token() -> None:
    async with (
        open_broker(metrics_listener=HERE, metrics_listener_token=TOKEN) as broker,
        connect(broker.bootstrap_servers),
    ):
        assert broker.metrics is not None
        async with HttpClient(f"{broker.metrics.url}", token=TOKEN) as client:
            reader = MetricsListenerReader(client)
            [row] = (await reader.rows("connections"))[0]

            assert await reader.close_connection(row["id"])
            with trio.fail_after(5):
                while (await reader.rows("connections"))[1]:
                    await trio.lowlevel.checkpoint()
            assert not await reader.close_connection(row["id"])


async def test_without_a_token_nothing_is_closed() -> None:
    async with open_broker(metrics_listener=HERE) as broker, connect(broker.bootstrap_servers):
        assert broker.metrics is not None
        async with HttpClient(f"{broker.metrics.url}") as client:
            reader = MetricsListenerReader(client)
            [row] = (await reader.rows("connections"))[0]

            with pytest.raises(MetricsPagesError, match="POST needs a listener with a token"):
                await reader.close_connection(row["id"])
            assert 1 == broker.statistics().server.connections


async def test_a_wrong_token_is_rejected() -> None:
    async with open_broker(metrics_listener=HERE, metrics_listener_token=TOKEN) as broker:
        assert broker.metrics is not None
        async with HttpClient(f"{broker.metrics.url}", token="another") as client:
            with pytest.raises(MetricsPagesError, match="a token is required"):
                await MetricsListenerReader(client).take()


async def test_a_listener_with_tls_is_read(tmp_path: Path) -> None:
    path = write_pem(tmp_path / "metrics.pem", certificate())
    settings = {
        "metrics.listener": "https://127.0.0.1:0",
        "metrics.listener.token": TOKEN,
        "listener.name.metrics.ssl.keystore.type": "PEM",
        "listener.name.metrics.ssl.keystore.location": str(path),
    }
    async with open_broker(settings) as broker:
        assert broker.metrics is not None
        url = f"https://127.0.0.1:{broker.metrics.endpoint.port}"  # type: ignore[union-attr]
        async with HttpClient(url, token=TOKEN, tls=client_context()) as client:
            told = await MetricsListenerReader(client).take()
        assert broker.cluster_id == told.about["cluster_id"]
        async with HttpClient(url, token=TOKEN) as client:
            with pytest.raises(HttpError, match="certificate verify failed"):
                await MetricsListenerReader(client).take()


async def test_a_server_that_is_none_of_ours_is_reported() -> None:
    async def serve(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, serve, 0)
        port = listeners[0].socket.getsockname()[1]
        async with HttpClient(f"http://127.0.0.1:{port}") as client:
            with pytest.raises(MetricsPagesError, match="not a metrics listener"):
                await MetricsListenerReader(client).take()
        nursery.cancel_scope.cancel()


async def test_a_listener_that_is_not_there_is_an_alarm_and_is_tried_again() -> None:
    async with open_broker(metrics_listener=HERE) as broker:
        assert broker.metrics is not None
        url = f"{broker.metrics.url}"
    async with HttpClient(url) as client, trio.open_nursery() as nursery:
        model = Model()
        source = NetworkSource(MetricsListenerReader(client), url)
        source.interval_seconds = 0.02
        await nursery.start(source.run, model, lambda: None)

        assert [url] == list(model.alarms)
        assert url in f"{model.apis.missing}"
        async with open_broker(metrics_listener=url):
            with trio.fail_after(5):
                while model.alarms:
                    await trio.lowlevel.checkpoint()
            assert "None" == f"{model.apis.missing}"
        nursery.cancel_scope.cancel()


async def test_of_a_broker_that_is_gone_only_what_it_had_counted_is_reported() -> None:
    async with open_broker(metrics_listener=HERE) as broker:
        assert broker.metrics is not None
        url = f"{broker.metrics.url}"
    http = HttpClient(url)
    source = NetworkSource(MetricsListenerReader(http), url)
    async with http, watching(source) as watched:
        source.focus("connections")
        async with (
            open_broker(metrics_listener=url) as broker,
            connect(broker.bootstrap_servers) as client,
        ):
            model = await watched.until(lambda model: "requests" in model.figures)
            await create_topic(client, "t")
            await watched.until(lambda model: model.connections and "CreateTopics" in model.apis)
            known, connections = set(model.figures), len(model.connections)
            requests = model.apis["CreateTopics"].requests
        await watched.until(lambda model: model.alarms)

        assert "requests" in known <= set(model.figures.reported())
        assert [] == list(model.figures)
        assert [url] == list(model.failing)
        assert None is model.about.uptime_seconds
        assert (requests, None, None) == (
            model.apis["CreateTopics"].requests,
            model.apis["CreateTopics"].rate,
            model.apis["CreateTopics"].p50_ms,
        )
        assert {None} == {row.request_rate for row in model.processors.values()}
        assert connections == len(model.connections)
        assert url in f"{model.connections.failure}"

        async with open_broker(metrics_listener=url):
            await watched.until(lambda model: not model.alarms)
            assert {} == model.failing
            assert {None} == {model.connections.failure, model.apis.failure}
            await watched.until(lambda model: "requests" in model.figures)


@pytest.mark.parametrize("odd", [None, 7, {"samples": 7}, {"samples": [{"labels": {}}]}], ids=str)
def test_a_metric_of_another_form_leaves_the_others_known(odd: object) -> None:
    files = {"samples": [{"labels": {}, "value": 5}]}
    page = {"now": 1.0, "metrics": {LOOP_LAG: odd, OPEN_FDS: files}}

    assert {OPEN_FDS: {(): 5}} == from_json(page).readings
    assert {} == from_json({"now": 1.0, "metrics": odd}).readings
    assert {} == from_json({"now": 1.0}).readings


@pytest.mark.parametrize("url", ["127.0.0.1:9404", "ftp://x:1", "http://x", "http://x:y"])
async def test_what_is_no_address_is_an_error(url: str) -> None:
    with pytest.raises(ConfigError, match="invalid metrics listener URL"):
        HttpClient(url)


async def test_a_kept_connection_that_was_closed_is_made_anew() -> None:
    connections = 0

    async def serve(stream: trio.SocketStream) -> None:
        nonlocal connections
        connections += 1
        await stream.receive_some()
        await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, serve, 0)
        port = listeners[0].socket.getsockname()[1]
        async with HttpClient(f"http://127.0.0.1:{port}") as client:
            assert (200, b"ok") == await client.request("GET", "/")
            assert (200, b"ok") == await client.request("GET", "/")
        assert 2 == connections
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("token", ["", "tökén-of-twenty-characters", "two\nlines-of-a-token"])
def test_a_token_that_is_none_is_refused(token: str) -> None:
    with pytest.raises(ConfigError, match="invalid metrics listener token"):
        HttpClient("http://127.0.0.1:9404", token=token)
