"""A broker shows its inside to its user's other processes, with nothing set; and to nobody else."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from support.client import connect
from support.processes import SAME_TRIONET
from trionet import open_broker
from trionet.dashboard.sources._http_client import HttpClient
from trionet.jafka import open_jafka_broker, open_jafka_client
from trionet.net._local_socket import is_served, paths_for
from trionet.protocol.messages.api_versions import ApiVersionsRequest
from trionet.testing import MemoryNetwork

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no Unix sockets")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "trionet"


@asynccontextmanager
async def client_of(address: str, kind: str = "kafka") -> AsyncIterator[HttpClient]:
    host, _, port = address.rpartition(":")
    [path] = [path for path in paths_for(kind, host, int(port)) if is_served(path)]
    opening = partial(trio.open_unix_socket, path)
    async with HttpClient("http://localhost:1", connect=opening) as http:
        yield http


async def get(http: HttpClient, path: str = "/snapshot") -> Any:
    status, body = await http.request("GET", path)
    assert 200 == status, body
    return json.loads(body)


async def test_it_serves_all_that_the_metrics_listener_does() -> None:
    async with open_broker() as broker, client_of(broker.bootstrap_servers) as http:
        logging.getLogger("trionet.test").warning("logged before anyone looked")
        async with connect(broker.bootstrap_servers) as client:
            await client.call(ApiVersionsRequest(), 0)
            found = await get(http)
            _, text = await http.request("GET", "/metrics")

    assert broker.cluster_id == found["cluster_id"]
    assert 1 == found["connections"]["total"]
    assert "logged before anyone looked" == found["log"]["rows"][0]["text"]
    assert b"trionet_build_info" in text


async def test_its_user_may_close_connections_without_a_token() -> None:
    async with (
        open_broker() as broker,
        client_of(broker.bootstrap_servers) as http,
        connect(broker.bootstrap_servers) as client,
    ):
        await client.call(ApiVersionsRequest(), 0)
        [row] = (await get(http))["connections"]["rows"]
        status, _ = await http.request("POST", f"/connections/close?id={row['id']}")
        again, _ = await http.request("POST", f"/connections/close?id={row['id']}")

    assert (200, 404) == (status, again)


async def test_what_is_there_goes_with_the_broker(folder: Path) -> None:
    async with open_broker(listeners="A://127.0.0.1:0,B://127.0.0.1:0", **MAPPED) as broker:
        ports = {endpoint.port for endpoint in broker.endpoints}
        assert {f"kafka-127.0.0.1:{port}.sock" for port in ports} == names(folder)

    assert set() == names(folder)


MAPPED: dict[str, Any] = {
    "listener_security_protocol_map": "A:PLAINTEXT,B:PLAINTEXT",
    "inter_broker_listener_name": "A",
}


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def is_made(folder: Path) -> bool:
    return folder.exists()


async def test_each_node_shows_itself() -> None:
    async with open_broker(brokers=2) as broker:
        for node in broker.node_ids:
            [endpoint] = broker.endpoints_of(node)
            async with client_of(endpoint.address) as http:
                assert node == (await get(http))["node_id"]


async def test_a_stopped_node_shows_nothing_and_a_restarted_one_again() -> None:
    async with open_broker(brokers=2) as broker:
        address = broker.endpoints_of(2)[0].address
        await broker.stop(2)
        assert not any(map(is_served, paths_for("kafka", "127.0.0.1", int(address.split(":")[1]))))
        await broker.start(2)
        async with client_of(address) as http:
            assert 2 == (await get(http))["node_id"]


async def test_a_setting_turns_it_off(folder: Path) -> None:
    async with (
        open_broker(metrics_local_enable=False),
        open_jafka_broker(metrics_local_enable=False),
    ):
        assert not is_made(folder)


async def test_a_jafka_broker_shows_itself_as_one(folder: Path) -> None:
    async with open_jafka_broker() as broker, client_of(broker.address, "jafka") as http:
        assert "jafka" == (await get(http))["protocol"]

    assert set() == names(folder)


async def test_a_jafka_brokers_metrics_listener_shows_the_same() -> None:
    settings = {"metrics.listener": "http://127.0.0.1:0"}
    async with (
        open_jafka_broker(settings) as broker,
        HttpClient(str(broker.metrics_url)) as listener,
        client_of(broker.address, "jafka") as local,
        open_jafka_client(broker.address) as client,
    ):
        await client.produce("t", [b"before"])
        await client.offsets("t", 0, -1, 1)
        [connection] = (await get(listener))["connections"]["rows"]
        path = f"/snapshot/requests?connection={connection['id']}"
        await get(listener, path)
        await client.offsets("t", 0, -1, 1)

        assert 1 == (await get(local, path))["total"]


async def test_in_virtual_time_there_is_none(folder: Path, autojump_clock: object) -> None:
    async with open_broker(network=MemoryNetwork(seed=1)):
        assert not is_made(folder)


def make_link(folder: Path) -> None:
    folder.symlink_to(folder.parent)


async def test_a_folder_that_is_not_to_be_trusted_keeps_no_broker_from_starting(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_link(folder)
    async with open_broker() as broker, connect(broker.bootstrap_servers) as client:
        await client.call(ApiVersionsRequest(), 0)

    [line] = [record.getMessage() for record in caplog.records if "dashboard" in record.msg]
    assert f"PLAINTEXT://{broker.bootstrap_servers}: `trionet dashboard` on this machine" in line
    assert f"{folder}: not a folder, and links are not followed" in line
    assert "metrics.local.enable = false turns this off" in line


async def test_a_bug_of_ours_ends_it_and_not_the_broker(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "trionet.server.metrics._http_exchange", None)
    async with open_broker() as broker, connect(broker.bootstrap_servers) as client:
        async with client_of(broker.bootstrap_servers) as http:
            with pytest.raises(Exception, match="connection closed"):
                await http.request("GET", "/snapshot")
        await client.call(ApiVersionsRequest(), 0)

    assert "serving metrics on a local socket" in caplog.text


PROGRAM = """
import sys, trio, trionet
async def main():
    async with trionet.open_broker() as broker:
        before = {"h11", "trionet.broker.telemetry._broker_metrics"} & set(sys.modules)
        print(before, flush=True)
trio.run(main)
"""


@pytest.mark.slow
def test_a_start_loads_none_of_it() -> None:
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=SAME_TRIONET, capture_output=True, text=True, check=True)

    assert "set()" == done.stdout.strip()


# Log lines.


async def test_warnings_are_still_printed_where_logging_is_not_set_up(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # pytest has set it up
    async with open_broker(), open_broker():
        logging.getLogger("trionet.broker").warning("printed once")

    assert "printed once\n" == capsys.readouterr().err


async def test_a_program_that_shows_its_log_sees_each_line_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [logging.StreamHandler(sys.stderr)])
    async with open_broker():
        logging.getLogger("trionet.broker").warning("printed once")

    assert "printed once\n" == capsys.readouterr().err
