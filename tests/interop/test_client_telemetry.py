"""A real Kafka takes our client's metrics, and a plugin of it reads them (KIP-714)."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import trio

import trionet
from support.cache import Unavailable, require_program
from support.kafka_jars import class_path
from support.kafka_node import kafka_node
from trionet.client.admin import ConfigResource, ConfigResourceType
from trionet.client.network._open_client import ClientSettings
from trionet.client.network._telemetry import TelemetrySettings
from trionet.protocol._wire import uuid_text
from trionet.protocol.messages.describe_cluster import DescribeClusterRequest

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]

PLUGIN = Path(__file__).parent.parent / "support" / "telemetry" / "TelemetryPlugin.java"
INTERVAL_MS = 1000
REQUESTS = "org.apache.kafka.network.client.request.total"
SETTINGS = ClientSettings(telemetry=TelemetrySettings(is_enabled=True, labels={"client_rack": "r"}))


class Line(NamedTuple):
    """One number that the plugin was told."""

    client: str
    is_last: bool
    name: str
    kind: str
    value: float


def _lines(file: Path) -> list[Line]:
    if not file.exists():
        return []
    rows = [row.split("\t") for row in file.read_text().splitlines()]
    return [Line(row[0], row[1] == "true", row[2], row[3], float(row[4])) for row in rows]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A broker, and the file that its plugin writes."""
    folder = tmp_path_factory.mktemp("plugin")
    file = folder / "told"
    try:
        compiler = require_program("javac", "compiles a plugin of Kafka")
        command = [compiler, "-cp", class_path(), "-d", str(folder), str(PLUGIN)]
        subprocess.run(command, check=True, timeout=120)
        settings = {"metric.reporters": "TelemetryPlugin", "telemetry.file": str(file)}
        with kafka_node(settings, classes=folder) as (bootstrap, _):
            trio.run(_subscribe, bootstrap)
            yield bootstrap, file
    except Unavailable as reason:
        pytest.skip(str(reason))


async def _subscribe(bootstrap: str) -> None:
    """Have the broker ask all clients for some of their metrics."""
    wanted = {"metrics": "org.apache.kafka.network.client.", "interval.ms": str(INTERVAL_MS)}
    everyone = ConfigResource(ConfigResourceType.CLIENT_METRICS, "all")
    async with trionet.open_admin(bootstrap) as admin:
        (await admin.incremental_alter_configs({everyone: wanted})).checked()


async def test_a_plugin_learns_of_our_requests(told: tuple[str, Path]) -> None:
    """N33: sums and gauges, compressed, and the last numbers when the client is closed."""
    bootstrap, file = told
    async with (
        trionet.open_network_client(bootstrap, SETTINGS) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        await client.until_updated()
        node = client.metadata.cluster.nodes[1]
        with trio.fail_after(60):
            await trio.lowlevel.checkpoint()
            while len({line.value for line in _lines(file) if line.name == REQUESTS}) < 3:
                assert (await client.request(node, DescribeClusterRequest())).cluster_id
                await trio.sleep(0.1)
        assert client.telemetry is not None
        assert client.telemetry.client_instance_id is not None
        name = uuid_text(client.telemetry.client_instance_id)
        nursery.cancel_scope.cancel()
    with trio.fail_after(20):
        await trio.lowlevel.checkpoint()
        while not any(line.is_last for line in _lines(file)):  # noqa: ASYNC110 - Kafka writes it
            await trio.sleep(0.1)
    found = _lines(file)

    assert {name} == {line.client for line in found}
    assert "GAUGE" in {line.kind for line in found}
    assert all(line.name.startswith("org.apache.kafka.network.client.") for line in found)
