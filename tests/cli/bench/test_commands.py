"""`trionet bench`, as its users see it, against a running broker and a running server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import trionet
from support.processes import SAME_TRIONET
from trionet.cli.main import main
from trionet.testing import ThreadedBroker

pytestmark = pytest.mark.slow


@pytest.fixture
def broker() -> Iterator[ThreadedBroker]:
    with trionet.testing.broker(topics={"orders": 3}) as broker:
        yield broker


def bench(
    broker: ThreadedBroker | None, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, dict[str, Any]]:
    """The exit status of a benchmark, and what it prints as JSON."""
    servers = [] if broker is None else ["-b", broker.bootstrap_servers]
    status = main(["bench", *arguments, *servers, "--json", "--reporting-interval=0"])
    return status, json.loads(capsys.readouterr().out or "{}")


def test_records_are_written_and_timed(
    broker: ThreadedBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    status, found = bench(broker, capsys, "produce", "orders", "--records=2500", "--record-size=9")

    values = broker.values("orders")
    assert (0, 2500, 9 * 2500, 0) == (status, found["records"], found["bytes"], found["failed"])
    assert 2500 == len(values) == sum(each["count"] for each in found["histogram"])
    assert {9} == {len(value) for value in values if value is not None}
    assert (
        0 < found["latency_ms"]["p50"] <= found["latency_ms"]["p99"] <= found["latency_ms"]["max"]
    )


def test_values_come_from_a_file_and_settings_and_metrics_are_the_clients(
    broker: ThreadedBroker, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "values").write_text("one;two;;three;", "utf-8")
    arguments = ["--payload-file", str(tmp_path / "values"), "--payload-delimiter=;"]

    status, found = bench(
        broker,
        capsys,
        *("produce", "orders", "--records=4", "--partition=2", *arguments),
        *("-X", "compression.type=zstd", "-X", "client.id=till", "--print-metrics"),
    )

    assert (0, 4, 14) == (status, found["records"], found["bytes"])
    assert [b"one", b"two", b"three", b"one"] == broker.values("orders", 2)
    assert 4 == found["metrics"]["record-send-total"]
    assert broker.requests("Produce")[0].client_id == "till"


def test_records_at_a_rate_take_their_time(
    broker: ThreadedBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    status, found = bench(
        broker, capsys, "produce", "orders", "--records=30", "--throughput=100", "-X", "linger.ms=0"
    )

    assert (0, 30) == (status, found["records"])
    assert found["seconds"] >= 0.3  # 30 intervals, not the 29 between the records


def test_records_to_warm_up_are_written_and_not_counted(
    broker: ThreadedBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    _, found = bench(broker, capsys, "produce", "orders", "--records=10", "--warmup-records=1000")

    assert (10, 1010) == (found["records"], len(broker.values("orders")))


def test_records_that_are_refused_have_failed(
    broker: ThreadedBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.faults.fail("Produce", "TOPIC_AUTHORIZATION_FAILED", times=None)

    status, found = bench(broker, capsys, "produce", "orders", "--records=10")

    assert (1, 0, 10) == (status, found["records"], found["failed"])
    assert {} == found["latency_ms"]


def test_what_is_there_is_read_and_the_run_ends(
    broker: ThreadedBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.seed("orders", [(f"key {number}", "a value") for number in range(1000)])

    status, found = bench(broker, capsys, "consume", "orders", "--print-metrics")

    size = sum(len(f"key {number}") + len("a value") for number in range(1000))
    assert (0, 1000, size) == (status, found["records"], found["bytes"])
    assert 0 < found["first_record_seconds"] <= found["seconds"]
    assert 1000 == found["metrics"]["records-consumed-total"]


def test_an_empty_topic_is_read_at_once(
    broker: ThreadedBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    status, found = bench(broker, capsys, "consume", "orders")

    assert (0, 0) == (status, found["records"])


def test_a_group_goes_on_where_it_was(
    broker: ThreadedBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.seed("orders", [trionet.testing.Record(0, 0, None, b"x", (), 0)] * 10)

    first = bench(broker, capsys, "consume", "orders", "-G", "bar", "--records=10")
    second = bench(broker, capsys, "consume", "orders", "-G", "bar", "--records=1", "--timeout=0.3")

    assert [(0, 10), (1, 0)] == [(status, found["records"]) for status, found in (first, second)]
    assert 10 == broker.group("bar").offsets["orders", 0]


def test_fewer_records_than_were_asked_for_are_reported(
    broker: ThreadedBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.seed("orders", ["one"])
    arguments = ["consume", "orders", "--records=2", "--timeout=0.2", "--reporting-interval=0"]

    status = main(["bench", *arguments, "-b", broker.bootstrap_servers])

    told = capsys.readouterr()
    assert 1 == status
    assert told.out.startswith("1 record, 3 bytes in ")
    assert "1 of 2 records arrived" in told.err


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (["consume", "nothing"], 2, "topic nothing does not exist"),
        (["consume", "orders", "-p", "3"], 2, "topic orders has 3 partitions"),
        (["consume", "orders", "-p", "0", "-G", "bar"], 2, "--partition cannot be combined"),
        (["produce", "orders", "--payload-file", "/nowhere"], 2, "No such file"),
        (["produce", "orders", "-X", "acks=2"], 2, "acks"),
        (["echo", "127.0.0.1"], 2, "HOST:PORT: invalid server '127.0.0.1'; expected host:port"),
        (["echo", "127.0.0.1:1"], 1, "nothing listens at 127.0.0.1:1 (connection refused)"),
        (["echo", "127.0.0.1:1", "--serve", "127.0.0.1:0"], 2, "--serve cannot be combined"),
    ],
)
def test_what_cannot_be_is_one_line(
    arguments: list[str],
    status: int,
    told: str,
    broker: ThreadedBroker,
    capsys: pytest.CaptureFixture[str],
) -> None:
    servers = [] if arguments[0] == "echo" else ["-b", broker.bootstrap_servers]

    actual = main(["bench", *arguments, *servers])

    [line] = capsys.readouterr().err.splitlines()
    assert (status, True) == (actual, told in line)


@pytest.mark.parametrize("option", ["--records=0", "--duration=0", "--throughput=-1"])
def test_a_load_that_cannot_be_is_wrong_usage(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["bench", "produce", "orders", option])

    assert 2 == stopped.value.code
    assert option.partition("=")[0] in capsys.readouterr().err


def test_the_bare_server_is_asked_in_a_process_of_its_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, found = bench(None, capsys, "echo", "--requests=500", "--connections=4")

    assert (0, 500, 50_000) == (status, found["requests"], found["bytes"])


def test_a_signal_ends_a_run_with_what_there_is_by_then(broker: ThreadedBroker) -> None:
    command = [sys.executable, "-m", "trionet", "bench", "produce", "orders"]
    command += ["-b", broker.bootstrap_servers, "--throughput=100", "--duration=60", "--json"]
    with subprocess.Popen(
        [*command, "--reporting-interval=0.2"],
        env={**os.environ, **SAME_TRIONET},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=30)

    found = json.loads(printed)
    assert "records/s" in line
    assert 128 + signal.SIGINT == process.returncode
    assert 0 < found["records"] == len(broker.values("orders"))


def test_a_group_commits_what_was_counted_and_no_more(
    broker: ThreadedBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.seed("orders", ["a value"] * 1000)

    status, found = bench(broker, capsys, "consume", "orders", "--group=till", "--records=7")

    assert (0, 7) == (status, found["records"])
    assert 7 == sum(broker.group("till").offsets.values())
