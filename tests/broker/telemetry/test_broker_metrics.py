"""The metrics of a broker and its process, their listener, and who may read them."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import h11
import pytest
import trio
from prometheus_client.parser import text_string_to_metric_families

from support.calls import append, create_topic
from support.client import connect
from support.kafka_names import SELECTOR_METRICS, SERVER_METRICS
from support.leaks import nothing_left_behind
from support.openmetrics import openmetrics_families
from support.tls import certificate, client_context, write_pem
from support.wire import Peer
from trionet import Broker, ConfigError, open_broker
from trionet.broker.config._broker_config import BrokerConfig
from trionet.broker.telemetry import _broker_metrics
from trionet.broker.telemetry._broker_metrics import (
    KAFKA_METRICS,
    BrokerMetrics,
    MetricsSettings,
    metrics_settings,
)
from trionet.metrics._registry import Registry
from trionet.protocol.messages.api_versions import ApiVersionsRequest
from trionet.server.metrics._http_exchange import HttpRequest, Refused


@asynccontextmanager
async def measured(
    settings: Mapping[str, object] | None = None,
) -> AsyncIterator[tuple[Broker, BrokerMetrics]]:
    """A broker and its metrics, with a listener on a free port."""
    given = {"metrics.listener": "http://127.0.0.1:0", **(settings or {})}
    async with open_broker(given) as broker:
        assert broker.metrics is not None
        yield broker, broker.metrics


async def get(metrics: BrokerMetrics, path: str, *headers: str) -> str:
    """A page of the listener."""
    assert metrics.endpoint is not None
    with await Peer.connect(metrics.endpoint.port) as peer:
        lines = (f"GET {path} HTTP/1.1", "Host: localhost", *headers, "", "")
        await peer.send("\r\n".join(lines).encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += await peer.receive(1)
        client = h11.Connection(h11.CLIENT)
        client.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
        client.receive_data(head)
        response = client.next_event()
        assert isinstance(response, h11.Response)
        assert 200 == response.status_code
        return (await peer.receive(int(dict(response.headers)[b"content-length"]))).decode()


async def snapshot(metrics: BrokerMetrics, path: str = "/snapshot") -> Any:
    return json.loads(await get(metrics, path))


async def test_every_metric_of_kafkas_network_layer_is_reported() -> None:
    """What has no labels yet is reported as soon as it has."""
    names = {metric.name for metric in (*SERVER_METRICS, *SELECTOR_METRICS, *KAFKA_METRICS)}
    async with measured() as (broker, metrics):
        async with connect(broker.bootstrap_servers) as client:
            await client.call(ApiVersionsRequest(), 0)
            found = metrics.snapshot()

        assert set() == names - set(found)
        assert 0 == found["trionet_metrics_collector_errors_total"].of()


async def test_prometheus_reads_what_is_exposed() -> None:
    async with measured() as (broker, metrics), connect(broker.bootstrap_servers) as client:
        await create_topic(client, "t", partitions=3)
        await append(client, b"one", b"two")
        text = await get(metrics, "/metrics")
        openmetrics = await get(metrics, "/metrics", "Accept: application/openmetrics-text")

    assert {each.name for each in openmetrics_families(openmetrics)} == {
        each.name.removesuffix("_total") for each in text_string_to_metric_families(text)
    }
    found = {family.name: family for family in text_string_to_metric_families(text)}
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in found.values()
        for sample in family.samples
    }
    group = "kafka_server_socket_server_metrics_"
    assert 1 == sum(v for k, v in samples.items() if k[0] == f"{group}connection_count")
    assert 2 <= sum(v for k, v in samples.items() if k[0] == f"{group}response_total")
    assert 3 == samples["kafka_server_replicamanager_partitioncount",]
    assert 1 == samples["kafka_controller_kafkacontroller_globaltopiccount",]
    assert 0 < samples["trionet_log_bytes",]
    assert 0 < samples["process_cpu_seconds_total",]
    timed = "kafka_network_requestmetrics_totaltimems_count"
    assert 2 <= sum(value for name, value in samples.items() if name[0] == timed)
    assert "summary" == found["kafka_network_requestmetrics_totaltimems"].type


async def test_a_client_is_identified_by_what_it_calls_itself() -> None:
    """P2, P3: known from ApiVersions version 3 on; the connection that asks is unknown before."""
    software = "kafka_server_socket_server_metrics_connections_software"
    request = ApiVersionsRequest(client_software_name="tester", client_software_version="1.2")
    async with (
        measured() as (broker, metrics),
        connect(broker.bootstrap_servers) as new,
        connect(broker.bootstrap_servers) as old,
    ):
        await new.call(request, 4)
        await old.call(ApiVersionsRequest(), 0)
        rows = (await snapshot(metrics))["connections"]["rows"]
        kinds = [sample.labels[:2] for sample in metrics.snapshot()[software].samples]

    expected = {("tester", "1.2"), ("unknown", "unknown")}
    assert expected == {(row["software"], row["software_version"]) for row in rows}
    assert expected == set(kinds)


async def test_a_snapshot_reports_connections_queues_reasons_and_log_lines() -> None:
    async with measured() as (broker, metrics):
        logging.getLogger("trionet.test").warning("a line for %s", "the ring")
        async with connect(broker.bootstrap_servers) as client:
            await client.call(ApiVersionsRequest(), 0)
        async with connect(broker.bootstrap_servers) as client:
            await client.call(ApiVersionsRequest(), 0)
            await trio.testing.wait_all_tasks_blocked()
            found = await snapshot(metrics)

        assert 1 == found["version"]
        assert broker.cluster_id == found["cluster_id"]
        assert [str(endpoint) for endpoint in broker.endpoints] == found["listeners"]
        assert 0 < found["uptime_seconds"]
        assert (0, 500) == (found["queues"]["requests"], found["queues"]["requests_max"])
        assert {"PEER_CLOSED": 1} == found["closed"]
        assert (1, 1) == (found["connections"]["total"], found["recently_closed"]["total"])
        [closed] = found["recently_closed"]["rows"]
        assert ("PEER_CLOSED", 1) == (closed["reason"], closed["requests"])
        assert "a line for the ring" in [line["text"] for line in found["log"]["rows"]]
        assert "kafka_network_socketserver_networkprocessoravgidle_percent" in found["metrics"]


async def test_lists_are_read_page_by_page() -> None:
    async with measured() as (broker, metrics):
        for _ in range(5):
            async with connect(broker.bootstrap_servers) as client:
                await client.call(ApiVersionsRequest(), 0)
        await trio.testing.wait_all_tasks_blocked()

        first = await snapshot(metrics, "/snapshot/recently_closed?limit=3")
        second = await snapshot(
            metrics, f"/snapshot/recently_closed?limit=3&before={first['next']}"
        )

    assert [4, 3, 2] == [row["number"] for row in first["rows"]]
    assert ([1, 0], None) == ([row["number"] for row in second["rows"]], second["next"])


async def test_rates_go_on_without_being_read(autojump_clock: trio.testing.MockClock) -> None:
    name = "kafka_server_socket_server_metrics_request_rate"
    async with measured() as (broker, metrics), connect(broker.bootstrap_servers) as client:
        for _ in range(30):
            await client.call(ApiVersionsRequest(), 0)
        now = sum(sample.value for sample in metrics.snapshot()[name].samples)
        await trio.sleep(100)
        later = sum(sample.value for sample in metrics.snapshot()[name].samples)

    assert now == pytest.approx(1)
    assert 0 == later


async def test_a_listener_for_other_machines_has_a_certificate_and_a_token(tmp_path: Path) -> None:
    """Of its own or the broker's: as a listener of the name METRICS."""
    token = "0123456789abcdef"
    settings = {
        "metrics.listener": "https://127.0.0.1:0",
        "metrics.listener.token": token,
        "listener.name.metrics.ssl.keystore.type": "PEM",
        "listener.name.metrics.ssl.keystore.location": write_pem(
            tmp_path / "metrics.pem", certificate()
        ),
    }
    async with measured(settings) as (_, metrics):
        assert metrics.endpoint is not None
        answers = []
        for path, header in (
            ("/", ""),
            ("/", f"Authorization: Bearer {token}\r\n"),
            ("/health", ""),
            ("/ready", ""),
        ):
            stream = await trio.open_ssl_over_tcp_stream(
                "127.0.0.1",
                metrics.endpoint.port,
                ssl_context=client_context(),
                https_compatible=True,
            )
            async with stream:
                await stream.send_all(f"GET {path} HTTP/1.1\r\nHost: x\r\n{header}\r\n".encode())
                answers.append((await stream.receive_some())[:12])

    assert [b"HTTP/1.1 401", *[b"HTTP/1.1 200"] * 3] == answers


async def test_a_broker_is_ready_until_it_stops() -> None:
    async with measured() as (_, metrics):
        find_page = metrics.find_page()
        assert ["ok\n"] == [*find_page(HttpRequest("/ready", {})).parts]
        await metrics._server.stop()
        with pytest.raises(Refused, match="stopping"):
            find_page(HttpRequest("/ready", {}))
        assert ["ok\n"] == [*find_page(HttpRequest("/health", {})).parts]


async def test_excluded_metrics_are_left_out() -> None:
    excluded = "kafka_network_requestmetrics_*timems, kafka_network_requestmetrics_requestbytes"
    async with measured() as (_, metrics):
        everything = await get(metrics, "/metrics")
    async with measured({"metrics.listener.exclude": excluded}) as (_, metrics):
        some = await get(metrics, "/metrics")

    assert "kafka_network_requestmetrics_localtimems" not in some
    assert "kafka_network_requestmetrics_messageconversionstimems" not in some
    assert "kafka_network_requestchannel_requestqueuesize" in some
    assert len(everything) > 5 * len(some)


@pytest.mark.parametrize("pattern", ["a b", "a{b}", "kafka.network:type=*", "/.*/"])
def test_only_patterns_of_names_can_be_left_out(pattern: str) -> None:
    with pytest.raises(ConfigError, match=r"metrics\.listener\.exclude = .* allowed: names"):
        read(metrics_listener_exclude=pattern)


async def test_a_certificate_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    settings = {
        "metrics.listener": "https://127.0.0.1:0",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(tmp_path / "nothing.pem"),
    }

    with nothing_left_behind(), pytest.raises(ConfigError, match=r"nothing\.pem"):
        async with measured(settings):
            pass


async def test_a_setting_that_is_not_allowed_is_an_error_before_anything_is_opened(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    settings = {"log.dirs": str(data), "metrics.listener": "http://0.0.0.0:0"}

    with nothing_left_behind(), pytest.raises(ConfigError, match="from other machines"):
        async with measured(settings):
            pass

    assert not data.exists()


async def test_an_address_in_use_is_an_error() -> None:
    async with measured() as (_, metrics):
        assert metrics.url is not None
        with pytest.raises(OSError, match="cannot listen on METRICS://"):
            async with measured({"metrics.listener": metrics.url}):
                pass


async def test_nothing_is_left_when_the_broker_has_stopped() -> None:
    with nothing_left_behind():
        async with measured() as (_, metrics):
            await get(metrics, "/")


async def test_without_the_setting_there_are_no_metrics() -> None:
    async with open_broker() as broker:
        assert None is broker.metrics


async def test_what_was_said_of_the_settings_is_in_the_log_that_is_shown() -> None:
    async with measured({"group.share.max.size": 10}) as (_, metrics):
        texts = [line.text for line in metrics.log.page(1000)]

    assert "settings not applied by this version: group.share.max.size=10" in texts


async def test_the_log_is_listened_to_only_while_the_broker_runs() -> None:
    handlers = list(logging.getLogger("trionet").handlers)

    async with measured() as (_, metrics):
        assert metrics.log in logging.getLogger("trionet").handlers
    with pytest.raises(ConfigError):
        async with measured({"listeners": "SSL://127.0.0.1:0"}):
            pass

    assert handlers == logging.getLogger("trionet").handlers


TOKEN = "a token of 24 characters".replace(" ", "-")


def read(**settings: object) -> MetricsSettings:
    return metrics_settings(BrokerConfig.from_settings(settings))


def test_without_a_listener_there_is_none() -> None:
    assert MetricsSettings(None, None, (), 2, 30.0) == read()


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("http://127.0.0.1:9404", "127.0.0.1", 9404),
        ("HTTP://localhost:0", "localhost", 0),
        ("http://[::1]:9404", "::1", 9404),
        ("http://127.8.9.1:1", "127.8.9.1", 1),
    ],
)
def test_this_machine_needs_neither_tls_nor_a_token(url: str, host: str, port: int) -> None:
    settings = read(metrics_listener=url)

    assert settings.endpoint is not None
    assert (host, port) == (settings.endpoint.host, settings.endpoint.port)
    assert (None, False) == (settings.token, settings.is_secure)


@pytest.mark.parametrize("host", ["0.0.0.0", "", "192.0.2.1", "[::]", "metrics.example"])
def test_other_machines_need_tls_and_a_token(host: str) -> None:
    settings = read(metrics_listener=f"https://{host}:9404", metrics_listener_token=TOKEN)

    assert settings.is_secure
    assert TOKEN == settings.token


@pytest.mark.parametrize("host", ["0.0.0.0", "", "192.0.2.1", "[::]", "metrics.example"])
@pytest.mark.parametrize(("scheme", "token"), [("http", TOKEN), ("https", None), ("http", None)])
def test_what_other_machines_could_read_is_refused(
    host: str, scheme: str, token: str | None
) -> None:
    with pytest.raises(ConfigError, match=r"can be reached from other machines.*use .*https"):
        read(metrics_listener=f"{scheme}://{host}:9404", metrics_listener_token=token)


@pytest.mark.parametrize(
    "url",
    ["127.0.0.1:9404", "ftp://127.0.0.1:1", "http://127.0.0.1", "http://127.0.0.1:x", "http:"],
)
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match=r"metrics\.listener = .* allowed: http://HOST:PORT"):
        read(metrics_listener=url)


@pytest.mark.parametrize("token", ["short", "with a space in the middle", "ä" * 20])
def test_a_token_that_can_be_guessed_or_not_sent_is_refused_and_not_quoted(token: str) -> None:
    with pytest.raises(ConfigError, match=r"metrics\.listener\.token is not allowed") as refused:
        read(metrics_listener="http://127.0.0.1:0", metrics_listener_token=token)

    assert token not in str(refused.value)


def test_the_token_does_not_show() -> None:
    settings = read(metrics_listener="https://[::]:0", metrics_listener_token=TOKEN)

    assert TOKEN not in repr(settings)


def test_the_windows_of_rates_are_kafkas_settings() -> None:
    settings = read(metrics_num_samples=3, metrics_sample_window_ms=10_000)

    assert (3, 10.0) == (settings.samples, settings.sample_seconds)


def numbers() -> dict[str, float]:
    registry = Registry()
    registry.register(_broker_metrics.collect_process)
    return {name: family.of() for name, family in registry.snapshot(0).items()}


@pytest.mark.skipif(sys.platform != "linux", reason="told by Linux")
def test_time_memory_and_descriptors_are_reported(tmp_path: Path) -> None:
    before = numbers()
    with (tmp_path / "file").open("w"):
        after = numbers()

    assert 0 < before["process_cpu_seconds_total"] <= after["process_cpu_seconds_total"]
    assert 1_000_000 < after["process_resident_memory_bytes"] < 100_000_000_000
    assert before["process_open_fds"] + 1 == after["process_open_fds"] < after["process_max_fds"]


def test_what_the_system_does_not_report_is_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(_broker_metrics, "_STATM", str(tmp_path / "nothing"))

    found = numbers()

    assert "process_resident_memory_bytes" not in found
    assert 0 == found["trionet_metrics_collector_errors_total"]
    assert {"process_cpu_seconds_total", "process_max_fds"} <= set(found)
