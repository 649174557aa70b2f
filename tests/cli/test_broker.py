from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.calls import batch, fetch_request, only_partition, produce_request, values_of
from support.client import BlockingClient
from support.ports import free_ports
from support.processes import SAME_TRIONET, first_line, running
from support.tls import certificate, write_pem
from trionet.cli.main import main
from trionet.protocol.error_codes import UNKNOWN_TOPIC_OR_PARTITION
from trionet.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from trionet.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

READY = "trionet broker ready: "
BROKER = 4

# The file that comes with Apache Kafka 4 (config/server.properties), shortened to its settings.
SERVER_PROPERTIES = """\
############################# Server Basics #############################
# The role of this server. Setting this puts us in KRaft mode
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093

############################# Socket Server Settings #############################
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,\\
    SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600

############################# Log Basics #############################
log.dirs={data}
num.partitions=1
num.recovery.threads.per.data.dir=2

############################# Internal Topic Settings  #############################
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1

############################# Log Retention Policy #############################
log.retention.hours=168
#log.retention.bytes=1073741824
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


class Running:
    """A broker that has said that it is ready."""

    def __init__(self, process: subprocess.Popen[bytes], line: str, errors: Path) -> None:
        self.process = process
        self.line = line
        self.address = line.removeprefix(f"{READY}PLAINTEXT://")
        self._errors = errors

    def stop(self, signal_number: int) -> tuple[int, str]:
        """Its exit status, and what else it has printed."""
        self.process.send_signal(signal_number)
        status = self.process.wait(10)
        assert self.process.stdout is not None
        return status, self.process.stdout.read().decode()

    @property
    def log(self) -> str:
        """What it has written to stderr."""
        return self._errors.read_text()


@contextmanager
def started(tmp_path: Path, *arguments: str | Path) -> Iterator[Running]:
    errors = tmp_path / "stderr"
    script = f'exec "$@" 2>>{errors}'
    command = ["sh", "-c", script, "sh", sys.executable, "-m", "trionet", "broker", *arguments]
    with running(command, env=SAME_TRIONET) as process:
        yield Running(process, first_line(process), errors)


def refused(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """What a broker prints that does not start."""
    return subprocess.run(
        [sys.executable, "-m", "trionet", "broker", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **SAME_TRIONET},
    )


def produce(address: str, value: bytes) -> None:
    with BlockingClient(address) as client:
        client.call(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
        [topic] = client.call(produce_request("t", batch(value)), 9).responses
        assert 0 == topic.partition_responses[0].error_code


def read(address: str) -> list[bytes | None]:
    with BlockingClient(address) as client:
        return values_of(only_partition(client.call(fetch_request({"t": {0: 0}}), 12)))


def setting(address: str, key: str) -> str:
    """What a running broker says that one of its settings is."""
    resource = DescribeConfigsResource(
        resource_type=BROKER, resource_name="1", configuration_keys=[key]
    )
    with BlockingClient(address) as client:
        [result] = client.call(DescribeConfigsRequest(resources=[resource]), 4).results
    [entry] = result.configs
    value: str = entry.value
    return value


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_that_it_is_ready_and_a_signal_ends_it_well(
    tmp_path: Path, number: signal.Signals
) -> None:
    with started(tmp_path, "--listen", "127.0.0.1:0") as broker:
        produce(broker.address, b"a")
        status, printed = broker.stop(number)

    assert re.fullmatch(rf"{READY}PLAINTEXT://127\.0\.0\.1:[1-9]\d*", broker.line)
    assert (0, "") == (status, printed)
    assert f"{number.name}: stopping" in broker.log
    assert "Traceback" not in broker.log


def test_a_signal_waits_for_the_responses_that_are_owed(tmp_path: Path) -> None:
    with started(tmp_path, "--listen", "127.0.0.1:0") as broker:
        produce(broker.address, b"a")
        with BlockingClient(broker.address) as client:
            request = fetch_request({"t": {0: 1}}, max_wait_ms=60_000)
            client.send(request, 12)
            client.socket.settimeout(0.2)
            with pytest.raises(TimeoutError):
                client.receive()
            status, _ = broker.stop(signal.SIGTERM)

            assert 0 == status
            assert b"\x00\x00\x00" == client.socket.recv(3)


def test_port_0_in_every_listener_is_reported_in_the_ready_line(tmp_path: Path) -> None:
    arguments = [
        "--set",
        "listeners=INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
        "--set",
        "listener.security.protocol.map=INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
    ]
    with started(tmp_path, *arguments) as broker:
        pass

    address = r"127\.0\.0\.1:[1-9]\d*"
    assert re.fullmatch(rf"{READY}INSIDE://{address},OUTSIDE://{address}", broker.line)


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [(["--faults"], 0, "[]"), ([], 1, "this broker is not under test")],
    ids=["--faults", "without"],
)
def test_faults_are_for_brokers_that_are_started_for_them(
    tmp_path: Path, arguments: list[str], status: int, said: str
) -> None:
    with started(tmp_path, "--listen", "127.0.0.1:0", *arguments) as broker:
        command = ["dashboard", broker.address, "--view", "faults", "--once", "--format", "json"]
        done = subprocess.run(
            [sys.executable, "-m", "trionet", *command],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **SAME_TRIONET},
        )

    assert status == done.returncode
    assert said in done.stdout + done.stderr


def test_several_brokers_are_reported_in_the_ready_line(tmp_path: Path) -> None:
    with started(tmp_path, "--listen", "127.0.0.1:0", "--brokers", "3") as broker:
        addresses = broker.line.removeprefix(f"{READY}PLAINTEXT://").split(",PLAINTEXT://")
        client = BlockingClient(addresses[2])
        told = client.call(MetadataRequest(topics=[]), 12)
        client.socket.close()
        broker.stop(signal.SIGTERM)

    assert addresses == [f"{each.host}:{each.port}" for each in told.brokers]
    assert [1, 2, 3] == [each.node_id for each in told.brokers]


def test_records_in_a_folder_outlive_the_process(tmp_path: Path) -> None:
    data = tmp_path / "data"
    arguments: list[str | Path] = ["--listen", "127.0.0.1:0", "--data", data]
    with started(tmp_path, *arguments) as broker:
        produce(broker.address, b"a")
        broker.stop(signal.SIGTERM)

    with started(tmp_path, *arguments) as broker:
        assert [b"a"] == read(broker.address)


def test_memory_wins_over_the_folder_of_a_configuration_file(tmp_path: Path) -> None:
    data = tmp_path / "data"
    properties = tmp_path / "server.properties"
    properties.write_text(f"log.dirs={data}\nlisteners=PLAINTEXT://127.0.0.1:0\n")

    with started(tmp_path, "--config", properties, "--memory") as broker:
        produce(broker.address, b"a")

    assert not data.exists()


def test_a_real_kafkas_server_properties_starts(tmp_path: Path) -> None:
    [port] = free_ports(1)
    data = tmp_path / "kraft-combined-logs"
    properties = tmp_path / "server.properties"
    properties.write_text(SERVER_PROPERTIES.format(port=port, data=data))

    with started(tmp_path, "--config", properties) as broker:
        produce(broker.address, b"a")

        assert f"{READY}PLAINTEXT://127.0.0.1:{port}" == broker.line
        assert "8" == setting(broker.address, "num.io.threads")
        assert (data / "t-0").is_dir()
    without_meaning = re.search(r"settings without effect on a single node: (.*)", broker.log)
    assert without_meaning is not None
    assert {
        "offsets.topic.replication.factor",
        "process.roles",
    } <= set(without_meaning[1].split(", "))


def test_single_settings_win_over_the_file_and_listen_over_both(tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text("num.partitions=2\nlisteners=PLAINTEXT://127.0.0.1:1\n")
    arguments = ["--set", "num.partitions=5", "--set", "num.io.threads = 3"]

    with started(tmp_path, "--config", properties, *arguments, "--listen", "127.0.0.1:0") as broker:
        assert "5" == setting(broker.address, "num.partitions")
        assert "3" == setting(broker.address, "num.io.threads")
    assert not broker.line.endswith(":1")


@pytest.mark.parametrize(
    ("arguments", "error_codes"),
    [
        ([], [0, 0]),
        (["--set", "auto.create.topics.ready.at.once=false"], [UNKNOWN_TOPIC_OR_PARTITION, 0]),
    ],
)
def test_a_new_topic_is_in_the_first_response_unless_kafkas_hiccup_is_wanted(
    tmp_path: Path, arguments: list[str], error_codes: list[int]
) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])

    with (
        started(tmp_path, "--listen", "127.0.0.1:0", *arguments) as broker,
        BlockingClient(broker.address) as client,
    ):
        responses = [client.call(request, 9).topics for _ in error_codes]

    assert error_codes == [topic.error_code for [topic] in responses]


def test_listen_names_a_protocol_if_it_is_not_the_plain_one(tmp_path: Path) -> None:
    pem = write_pem(tmp_path / "broker.pem", certificate())
    arguments = ["--set", "ssl.keystore.type=PEM", "--set", f"ssl.keystore.location={pem}"]

    for protocol in ("SSL", "PLAINTEXT"):
        with started(tmp_path, *arguments, "--listen", f"{protocol}://127.0.0.1:0") as broker:
            assert re.fullmatch(rf"{READY}{protocol}://127\.0\.0\.1:[1-9]\d*", broker.line)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "num.partition=3"], r"num\.partition: unknown key.* num\.partitions\b"),
        (["--set", "num.io.threads=many"], r"num\.io\.threads"),
        (["--set", "num.io.threads=0"], r"num\.io\.threads"),
        (["--set", "no equals sign"], r"must have the form KEY=VALUE"),
        (["--set", "=3"], r"must have the form KEY=VALUE"),
        (["--listen", "127.0.0.1"], r"127\.0\.0\.1"),
        (["--listen", "SSL://127.0.0.1"], r"--listen SSL://127\.0\.0\.1: must have the form"),
        (["--listen", "TLS://127.0.0.1:0"], r"TLS://127\.0\.0\.1:0"),
        (
            ["--listen", "0.0.0.0:0"],
            r"set advertised\.listeners.*: --set advertised\.listeners=PLAINTEXT://localhost:0\)",
        ),
        (["--config", "/no/such/file"], r"/no/such/file"),
        (["--config", "/dev/zero"], r"cannot read /dev/zero: it is a device"),
        (["--set", "sasl.enabled.mechanisms"], r"KEY=VALUE"),
        (["--brokers", "0", "--listen", "127.0.0.1:0"], r"brokers = 0 is not allowed; "),
        *(
            (["--set", f"{key}=x", "--listen", "127.0.0.1:0"], rf"without TLS or SASL, but {key} ")
            for key in (
                "ssl.keystore.location",
                "sasl.enabled.mechanisms",
                "listener.name.x.ssl.client.auth",
                "listener.name.x.plain.sasl.jaas.config",
            )
        ),
    ],
)
def test_wrong_settings_are_one_sentence_and_status_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(["broker", *arguments])

    printed = capsys.readouterr()
    assert (2, "") == (status, printed.out)
    assert re.search(rf"\Atrionet broker: .*{message}.*\n\Z", printed.err)


def test_all_wrong_lines_of_a_file_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text("num.partitions=many\nlog.retention.hour=1\n")

    status = main(["broker", "--config", str(properties), "--listen", "127.0.0.1:0"])

    assert 2 == status
    one, two = capsys.readouterr().err.splitlines()
    assert one.startswith("trionet broker: num.partitions = 'many' is not allowed")
    assert two.startswith("trionet broker: log.retention.hour: unknown key; ")


def test_memory_and_a_folder_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["broker", "--memory", "--data", "x"])

    assert 2 == stopped.value.code
    assert "--data" in capsys.readouterr().err


def test_an_address_in_use_is_one_sentence_and_status_1(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"

        status = main(["broker", "--listen", address])

    assert 1 == status
    expected = (
        rf"trionet broker: .*cannot listen on PLAINTEXT://{re.escape(address)}: .*; another program"
        r" has this port: --listen HOST:PORT takes another one, 0 a free one\n"
    )
    assert re.fullmatch(expected, capsys.readouterr().err)


def test_a_folder_in_use_is_one_sentence_and_status_2(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with started(tmp_path, "--listen", "127.0.0.1:0", "--data", data):
        second = refused("--listen", "127.0.0.1:0", "--data", data)

    assert (2, "") == (second.returncode, second.stdout)
    assert re.fullmatch(rf"trionet broker: .*{data} is in use.*\n", second.stderr)


def test_missing_records_are_lines_of_the_log_or_status_1(tmp_path: Path) -> None:
    data = tmp_path / "data"
    listen: tuple[str | Path, ...] = ("--listen", "127.0.0.1:0", "--data", data)
    with started(tmp_path, *listen) as broker:
        produce(broker.address, b"a")
        broker.stop(signal.SIGTERM)
    (data / "t-0" / f"{0:020d}.log").unlink()
    done = refused(*listen, "--set", "log.missing.records.allowed=false")
    with started(tmp_path, *listen) as broker:
        assert [] == read(broker.address)

    assert (1, "") == (done.returncode, done.stdout)
    report = "ERROR t-0: 1 record is missing, offset 0, "
    assert report in done.stderr
    assert report in broker.log
    last = done.stderr.splitlines()[-1]
    assert last.startswith("trionet broker: records of t-0 are missing, ")
    assert last.endswith("log.missing.records.allowed=true to continue without these records")
    assert "Traceback" not in done.stderr + broker.log


def test_a_damaged_database_is_one_sentence_and_status_1(tmp_path: Path) -> None:
    data = tmp_path / "data"
    listen: tuple[str | Path, ...] = ("--listen", "127.0.0.1:0", "--data", data)
    with started(tmp_path, *listen) as broker:
        produce(broker.address, b"a")
        broker.stop(signal.SIGTERM)
    database = data / "trionet.sqlite"
    content = bytearray(database.read_bytes())
    content[100:200] = b"\xff" * 100
    database.write_bytes(content)
    done = refused(*listen)

    assert (1, "") == (done.returncode, done.stdout)
    assert re.fullmatch(rf"trionet broker: .*{database}.*\n", done.stderr)


def test_the_log_level_is_chosen(tmp_path: Path) -> None:
    arguments = ["--listen", "127.0.0.1:0", "--log-level", "error"]
    with started(tmp_path, *arguments) as broker:
        status, _ = broker.stop(signal.SIGTERM)

    assert (0, "") == (status, broker.log)
