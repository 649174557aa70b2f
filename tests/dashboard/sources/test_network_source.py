"""What a broker reports, and is asked to do, in this process and through its metrics listener."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from support.calls import append, create_topic
from support.client import connect
from support.tls import certificate, client_context, write_pem
from support.watching import watching
from trionet import Broker, ConfigError, TrionetError, open_broker, open_consumer
from trionet.broker.telemetry._broker_metrics import BrokerMetrics
from trionet.dashboard.model._model import Model
from trionet.dashboard.model._snapshot import (
    LOOP_LAG,
    MALFORMED,
    OPEN_FDS,
    BrokerSnapshot,
    from_json,
)
from trionet.dashboard.sources._http_client import HttpClient, HttpError, ResponseTooLargeError
from trionet.dashboard.sources._network_source import (
    LISTS,
    PAGE_BYTES_MAX,
    InProcessReader,
    MetricsListenerReader,
    MetricsPagesError,
    NetworkSource,
    NoSuchListError,
)
from trionet.testing import control


@asynccontextmanager
async def measured() -> AsyncIterator[tuple[Broker, BrokerMetrics]]:
    async with open_broker(metrics_listener="http://127.0.0.1:0") as broker:
        assert broker.metrics is not None
        yield broker, broker.metrics


@asynccontextmanager
async def busy_broker() -> AsyncIterator[tuple[InProcessReader, MetricsListenerReader]]:
    """Both tellers of a broker that has done something of everything."""
    async with (
        measured() as (broker, metrics),
        connect(broker.bootstrap_servers) as client,
        HttpClient(f"{metrics.url}") as http,
    ):
        await create_topic(client, "t", partitions=2)
        await append(client, b"one", b"two")
        logging.getLogger("trionet.broker").warning("something to be told")
        async with open_consumer(
            broker.bootstrap_servers, group_id="g", topics="t", auto_offset_reset="earliest"
        ) as consumer:
            await consumer.next_batch()
            yield InProcessReader(metrics), MetricsListenerReader(http)


@asynccontextmanager
async def measured_with_token() -> AsyncIterator[
    tuple[Broker, InProcessReader, MetricsListenerReader]
]:
    """Both tellers of a broker that may be changed through its metrics listener."""
    token = "sixteen-characters-at-least"
    settings = {"metrics_listener": "http://127.0.0.1:0", "metrics_listener_token": token}
    async with open_broker(**settings) as broker:  # type: ignore[arg-type] # both are text
        assert broker.metrics is not None
        async with HttpClient(f"{broker.metrics.url}", token=token) as http:
            yield broker, InProcessReader(broker.metrics), MetricsListenerReader(http)


def limits(told: BrokerSnapshot) -> list[dict[str, Any]]:
    """Its quotas without rates, which fall while time passes."""
    return [{**quota, "value": None} for quota in told.about["quotas"]]


async def test_both_report_the_same_of_a_broker() -> None:
    async with busy_broker() as (near, far):
        told, told_far = (await near.take()), (await far.take())

        for name in ("node_id", "cluster_id", "listeners", "closed"):
            assert told_far.about[name] == told.about[name]
        assert limits(told_far) == limits(told)
        assert set(told.about) - {"metrics"} <= set(told_far.about)
        assert set(told.readings) == set(told_far.readings)
        for name, numbers in told.readings.items():
            assert set(numbers) == set(told_far.readings[name]), name


async def test_models_of_both_show_the_same() -> None:
    async with busy_broker() as (near, far):
        models = []
        for reader in (near, far):
            model = Model()
            model.update_network(await reader.take(), 1.0)
            models.append(model)

        here, there = models
        assert {row.name: (row.requests, row.errors) for row in here.apis.values()} == {
            row.name: (row.requests, row.errors) for row in there.apis.values()
        }
        assert {"Produce", "Fetch", "JoinGroup"} <= set(here.apis)
        assert dict(here.close_reasons) == dict(there.close_reasons)
        assert list(here.figures) == list(there.figures)


async def test_both_report_the_tasks_of_the_loop() -> None:
    async with busy_broker() as (near, far):
        for reader in (near, far):
            rows, total = await reader.rows("tasks")
            assert total == len(rows)
            assert {"<init>", "socket-server", "node 1"} <= {row["name"] for row in rows}


@pytest.mark.parametrize("section", sorted({*LISTS.values()} - {"tasks", "faults"}))
async def test_lists_of_both_are_the_same(section: str) -> None:
    async with busy_broker() as (near, far):
        rows, total = await near.rows(section)
        rows_far, total_far = await far.rows(section)

        assert (total, len(rows)) == (total_far, len(rows_far))
        assert [_still(row) for row in rows] == [_still(row) for row in rows_far]
        assert rows or section == "recently_closed"


#: What goes on while one looks, as the consumer's fetches do.
GOES_ON = {
    "requests",
    "bytes_received",
    "bytes_sent",
    "request",
    "phase",
    "mute_state",
    "is_muted",
    "epoch",
    "positions",
}


def _still(value: Any) -> Any:
    """A row without what goes on while one looks."""
    if isinstance(value, Mapping):
        return {
            key: _still(each)
            for key, each in value.items()
            if not key.endswith("_seconds") and key not in GOES_ON
        }
    return [_still(each) for each in value] if isinstance(value, list) else value


async def test_a_broker_without_a_metrics_listener_is_watched_as_well() -> None:
    async with open_broker() as broker, connect(broker.bootstrap_servers) as client:
        await create_topic(client, "t")
        with broker.watch() as metrics:
            told = await InProcessReader(metrics).take()

        assert 1 == dict(told.readings)["kafka_controller_kafkacontroller_globaltopiccount"][()]
        assert {"CreateTopics"} <= {api["name"] for api in told.about["apis"]}


async def test_the_log_lines_since_one_watches_are_reported() -> None:
    async with open_broker() as broker:
        with broker.watch() as metrics, broker.watch() as others:
            logging.getLogger("trionet.broker").warning("something")
            rows, total = await InProcessReader(metrics).rows("log")
            assert "something" == rows[0]["text"]
            assert total == (await InProcessReader(others).rows("log"))[1]


async def test_a_connection_can_be_closed() -> None:
    async with (
        open_broker() as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        await create_topic(client, "t")
        with broker.watch() as metrics:
            reader = InProcessReader(metrics)
            [row] = (await reader.rows("connections"))[0]

            assert await reader.close_connection(row["id"])
            with trio.fail_after(5):
                while (await reader.rows("recently_closed"))[1] == 0:
                    await trio.lowlevel.checkpoint()
            [closed] = (await reader.rows("recently_closed"))[0]
            assert ("LOCAL_CLOSE", "closed by an operator") == itemgetter("reason", "detail")(
                closed
            )
            assert not await reader.close_connection(row["id"])


async def test_a_list_is_only_read_while_it_is_looked_at() -> None:
    async with open_broker() as broker, connect(broker.bootstrap_servers):
        with broker.watch() as metrics:
            model, news = Model(), trio.Event()
            source = NetworkSource(InProcessReader(metrics), "the broker")
            source.interval_seconds = 0.02
            source.focus("log")

            def changed() -> None:
                if len(model.connections) == 1:
                    news.set()

            async with trio.open_nursery() as nursery:
                model.changed = changed
                await nursery.start(source.run, model)
                assert 1 == model.figures["connections"]
                assert None is model.connections.updated_at
                source.focus("connections")
                with trio.fail_after(5):
                    await news.wait()
                nursery.cancel_scope.cancel()


async def test_both_report_the_requests_of_a_connection() -> None:
    async with busy_broker() as (near, far):
        [id, *_] = [row["id"] for row in (await near.rows("connections"))[0] if row["client_id"]]
        await near.requests(id, 10)
        assert await far.requests(id, 10) == []
        with trio.fail_after(10):
            while not (rows := await near.requests(id, 10)):  # noqa: ASYNC110 - there is no event
                await trio.sleep(0.01)
        assert rows[-1] in await far.requests(id, 100)


async def test_the_requests_of_a_connection_arrive_while_they_are_shown() -> None:
    async with open_broker() as broker, connect(broker.bootstrap_servers) as client:
        await create_topic(client, "t")
        with broker.watch() as metrics:
            reader = InProcessReader(metrics)
            [connection] = (await reader.rows("connections"))[0]
            source = NetworkSource(reader, "the broker")
            source.interval_seconds = 0.02
            source.focus("requests", connection["id"])
            async with watching(source) as watched:
                model = await watched.until(lambda model: model.requests.updated_at is not None)
                await append(client, b"one", b"two")
                await watched.until(lambda model: len(model.requests) >= 2)
                newest, oldest, *_ = model.requests.values()
                assert ("Produce", "Produce") == (newest.api, oldest.api)
                assert newest.number > oldest.number

                assert await reader.close_connection(connection["id"])
                await watched.until(lambda model: bool(model.closed))
                assert "LOCAL_CLOSE" == next(iter(model.closed.values())).reason
                source.focus("requests", "another")
                await watched.until(lambda model: model.requests_of == "another")
                assert 0 == len(model.requests)


async def test_faults_are_injected_and_removed_by_both() -> None:
    async with measured_with_token() as (broker, near, far):
        with pytest.raises(NoSuchListError):
            await near.rows("faults")
        with pytest.raises(NoSuchListError):
            await far.rows("faults")
        with pytest.raises(MetricsPagesError, match="not under test"):
            await far.order("/faults/inject", {"fault": "hold"})
        control(broker)

        await near.order("/faults/inject", {"fault": "hold", "apis": "Fetch"})
        await far.order("/faults/inject", {"fault": "delay 0.5", "apis": "Produce"})
        rows, total = await far.rows("faults")
        assert (2, ["delay for 0.5 s", "hold"]) == (total, [row["action"] for row in rows])
        await far.order("/faults/remove", {"number": "1"})
        assert "removed" == (await near.rows("faults"))[0][1]["state"]
        for reader in (near, far):
            with pytest.raises(MetricsPagesError, match="is not a fault"):
                await reader.order("/faults/inject", {"fault": "x"})


async def test_that_a_broker_is_not_under_test_is_said_where_faults_are_shown() -> None:
    async with open_broker() as broker:
        with broker.watch() as metrics:
            source = NetworkSource(InProcessReader(metrics), "the broker")
            source.focus("faults")
            async with watching(source) as watched:
                model = await watched.until(lambda model: model.faults.missing is not None)
                assert "this broker is not under test" in f"{model.faults.missing}"
                assert {} == model.alarms
                control(broker)
                await watched.until(lambda model: model.faults.updated_at is not None)
                assert None is model.faults.missing


class _Teller:
    """Tells of no connection what it requests."""

    async def requests(self, connection: str, count_max: int) -> Sequence[Mapping[str, Any]]:
        raise NotImplementedError


class _SlowTeller(_Teller):
    """Tells of a broker; its list of connections is long, and takes its time."""

    def __init__(self, metrics: BrokerMetrics) -> None:
        self._metrics = InProcessReader(metrics)
        self.asked = trio.Event()
        self.may_answer = trio.Event()

    async def take(self) -> BrokerSnapshot:
        return await self._metrics.take()

    async def rows(self, section: str) -> tuple[Sequence[Mapping[str, Any]], int]:
        if section != "connections":
            return await self._metrics.rows(section)
        [row], _ = await self._metrics.rows(section)
        self.asked.set()
        await self.may_answer.wait()
        return [{**row, "number": number} for number in range(5000)], 5000


class _WithoutLists(_Teller):
    """Tells of a broker, and of its lists something else."""

    def __init__(self, metrics: BrokerMetrics, rows: Any) -> None:
        self._metrics = InProcessReader(metrics)
        self.lists_rows = rows

    async def take(self) -> BrokerSnapshot:
        return await self._metrics.take()

    async def rows(self, section: str) -> tuple[Sequence[Mapping[str, Any]], int]:
        await trio.lowlevel.checkpoint()
        if isinstance(self.lists_rows, Exception):
            raise self.lists_rows
        if self.lists_rows is None:
            return await self._metrics.rows(section)
        return self.lists_rows, 1


@pytest.mark.parametrize(
    "rows", [TrionetError("status 500: no"), KeyError("rows"), [7], 7], ids=repr
)
@pytest.mark.parametrize("section", ["connections", "groups"])
async def test_a_list_that_cannot_be_read_takes_nothing_else_with_it(
    section: str, rows: object
) -> None:
    async with open_broker() as broker, connect(broker.bootstrap_servers):
        with broker.watch() as metrics:
            reader = _WithoutLists(metrics, rows)
            source = NetworkSource(reader, "the broker")
            source.focus(section)
            async with watching(source) as watched:
                model = await watched.until(lambda model: "requests" in model.figures)
                assert f"{section} of the broker could not be read" in model.alarms["the broker"]
                assert {None} == {model.apis.failure, model.log.failure, model.apis.missing}
                assert section == "groups" or None is not model.connections.failure
                reader.lists_rows = None
                await watched.until(lambda model: not model.alarms)
                assert None is model.connections.failure


class _Odd(_Teller):
    """Tells of a broker what it is given."""

    def __init__(self, about: dict[str, Any]) -> None:
        self.about = about

    async def take(self) -> BrokerSnapshot:
        await trio.lowlevel.checkpoint()
        return BrokerSnapshot(1.0, self.about, {})

    async def rows(self, section: str) -> tuple[Sequence[Mapping[str, Any]], int]:
        assert section == "connections"
        await trio.lowlevel.checkpoint()
        return [], 0


class _Asked(_Odd):
    """Tells of a connection what it requests from the first question on, as brokers do."""

    asked = 0

    async def rows(self, section: str) -> tuple[Sequence[Mapping[str, Any]], int]:
        await trio.lowlevel.checkpoint()
        return [], 0

    async def requests(self, connection: str, count_max: int) -> Sequence[Mapping[str, Any]]:
        await trio.lowlevel.checkpoint()
        self.asked += 1
        return []


async def test_that_no_request_has_finished_is_known_from_the_second_read_on() -> None:
    reader = _Asked({})
    source = NetworkSource(reader, "the broker")
    source.focus("requests", "c-1")
    async with watching(source) as watched:
        assert (1, None) == (reader.asked, watched.model.requests.updated_at)
        await watched.until(lambda model: model.requests.updated_at is not None)
        assert reader.asked >= 2


@pytest.mark.parametrize("about", [{"listeners": 5}, {"totals": {"requests": "many"}}], ids=str)
async def test_a_broker_whose_reports_have_another_form_is_an_alarm(
    about: dict[str, Any],
) -> None:
    reader = _Odd(about)
    async with watching(NetworkSource(reader, "the broker")) as watched:
        model = await watched.until(lambda model: bool(model.alarms))
        assert any("unknown format" in alarm for alarm in model.alarms.values())
        reader.about = {}
        await watched.until(lambda model: not model.alarms)


@pytest.mark.slow
async def test_a_list_does_not_wait_for_the_rest_of_another_one() -> None:
    async with open_broker() as broker, connect(broker.bootstrap_servers):
        with broker.watch() as metrics:
            model, reader = Model(), _SlowTeller(metrics)
            source = NetworkSource(reader, "the broker")
            source.interval_seconds = 0.2
            news = trio.Event()

            def changed() -> None:
                if model.log.updated_at is not None:
                    news.set()

            async with trio.open_nursery() as nursery:
                model.changed = changed
                await nursery.start(source.run, model)
                source.focus("connections")
                await reader.asked.wait()
                source.focus("log")
                reader.may_answer.set()
                with trio.fail_after(5):
                    await news.wait()
                nursery.cancel_scope.cancel()


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
        await nursery.start(source.run, model)

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
        assert (requests, None, None) == attrgetter("requests", "rate", "p50_ms")(
            model.apis["CreateTopics"]
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


@asynccontextmanager
async def reader_of(page: Callable[[str], bytes]) -> AsyncIterator[MetricsListenerReader]:
    """Reads what a server responds to each path."""

    async def respond(stream: trio.abc.Stream) -> None:
        while request := await stream.receive_some(65_536):
            body = page(request.split(b" ")[1].decode())
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            with suppress(trio.BrokenResourceError):  # it is too large for the client
                await stream.send_all(head + body)

    async def open_stream() -> trio.abc.Stream:
        await trio.lowlevel.checkpoint()
        ours, theirs = trio.testing.memory_stream_pair()
        nursery.start_soon(respond, theirs)
        return ours

    async with (
        trio.open_nursery() as nursery,
        HttpClient("http://127.0.0.1:1", connect=open_stream) as client,
    ):
        yield MetricsListenerReader(client)
        nursery.cancel_scope.cancel()


def page_of(rows: list[object], following: int | None) -> bytes:
    return json.dumps({"version": 1, "total": 9, "rows": rows, "next": following}).encode()


async def test_a_list_whose_pages_do_not_end_is_not_read_for_ever() -> None:
    async with reader_of(lambda _: page_of([{"number": 1}], 1)) as reader:
        with pytest.raises(MetricsPagesError, match="descending numbers"):
            await reader.rows("connections")


async def test_a_page_that_is_too_large_is_read_with_fewer_rows() -> None:
    paths = []

    def page(path: str) -> bytes:
        paths.append(path)
        limit = int(path.rpartition("limit=")[2])
        return page_of([{"number": n, "text": "x" * 10_000} for n in range(limit)], None)

    async with reader_of(page) as reader:
        rows, total = await reader.rows("log")

    assert ["/snapshot/log?limit=500", "/snapshot/log?limit=62"] == paths
    assert (62, 62) == (len(rows), max(total, len(rows)))


async def test_a_row_that_is_always_too_large_is_an_error() -> None:
    async with reader_of(lambda _: page_of([{"text": "x" * PAGE_BYTES_MAX}], None)) as reader:
        with pytest.raises(ResponseTooLargeError, match="response exceeds"):
            await reader.rows("log")


@pytest.mark.parametrize(
    "page",
    [
        b'{"version": 1, "total": "9", "rows": [], "next": null}',
        b'{"version": 1, "total": 9, "rows": {}, "next": null}',
        b'{"version": 1, "total": 9, "rows": [5], "next": null}',
        b'{"version": 1, "total": 9, "rows": [], "next": [1]}',
        b'{"version": 1}',
    ],
)
async def test_a_page_in_another_form_is_one_that_a_source_handles(page: bytes) -> None:
    async with reader_of(lambda _: page) as reader:
        with pytest.raises(MALFORMED):
            await reader.rows("log")
