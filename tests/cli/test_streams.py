"""What commands do if a standard stream is closed, full, or a pipe whose other end is closed.

A part of `python3 tests streams`, which runs every command.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from streams.__main__ import REDIRECTIONS, SECONDS, Done, started_with
from support.ports import free_ports, wait_for_api_versions
from support.processes import SAME_TRIONET, running
from trionet.testing import ThreadedBroker as Broker

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full"),
]


def run(condition: str, *arguments: str, stdin: bytes = b"") -> Done:
    return started_with(condition, [sys.executable, "-m", "trionet", *arguments], stdin)


@pytest.mark.parametrize(
    ("condition", "status", "message"),
    [
        ("stdout closed", 1, "trionet config keys: standard output is closed\n"),
        (
            "stdout full",
            1,
            "trionet config keys: cannot write to standard output: No space left on device\n",
        ),
        ("stdout ended", 0, ""),
    ],
)
def test_output_is_written_or_the_command_has_failed_unless_its_reader_has_enough(
    condition: str, status: int, message: str
) -> None:
    done = run(condition, "config", "keys", "broker")

    assert (status, message) == (done.status, done.err)


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_can_be_written_in_part_is_a_failure(
    unbuffered: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    command = [sys.executable, "-m", "trionet", "config", "keys", "broker", "--all", "--json"]

    # The system takes the first blocks of the text, and no more.
    limited = ["sh", "-c", 'ulimit -f 8; exec "$@" >part', "sh", *command]
    done = subprocess.run(
        limited,
        capture_output=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, **SAME_TRIONET, "PYTHONDONTWRITEBYTECODE": "1"},
        timeout=SECONDS,
    )

    assert (1, b"") == (done.returncode, done.stdout)
    assert b"cannot write to standard output: File too large" in done.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["completion", "bash"]])
def test_help_that_cannot_be_written_is_a_failure(arguments: Sequence[str]) -> None:
    done = run("stdout full", *arguments)

    assert 1 == done.status
    assert "cannot write to standard output: No space left on device\n" in done.err


@pytest.mark.parametrize("condition", [each for each in REDIRECTIONS if "stderr" in each])
def test_messages_that_cannot_be_written_change_nothing(
    condition: str, trionet_broker: Broker
) -> None:
    b = ["-b", trionet_broker.bootstrap_servers]

    sent = run(condition, "produce", *b, "orders", stdin=b"a\nb\n")
    read = run(condition, "consume", *b, "orders", "-e")
    missing = run(condition, "topics", "describe", *b, "nowhere")

    assert (0, b"") == (sent.status, sent.out)
    assert (0, b"a\nb\n") == (read.status, read.out)
    assert (1, b"") == (missing.status, missing.out)


@pytest.mark.parametrize("condition", ["stdout closed", "stdout full"])
def test_records_that_cannot_be_written_are_a_failure(
    condition: str, trionet_broker: Broker
) -> None:
    b = ["-b", trionet_broker.bootstrap_servers]

    sent = run(condition, "produce", *b, "orders", stdin=b"a\n")
    copied = run(condition, "produce", *b, "orders", "-T", stdin=b"b\n")
    read = run(condition, "consume", *b, "orders", "-e")

    assert [0, 1, 1] == [sent.status, copied.status, read.status]
    assert "standard output" in copied.err
    assert "standard output" in read.err


def test_a_copy_of_what_is_sent_that_loses_its_reader_is_a_failure(trionet_broker: Broker) -> None:
    b = ["-b", trionet_broker.bootstrap_servers]

    done = run("stdout ended", "produce", *b, "orders", "-T", stdin=b"a\n")

    assert 1 == done.status
    assert "the reader of standard output exited before all was written" in done.err


def test_a_malformed_frame_is_known_although_the_reader_has_exited() -> None:
    assert 1 == run("stdout ended", "decode", stdin=b"00").status
    assert 0 == run("stdout ended", "decode", "--list").status


def test_nor_is_it_a_failure_of_coloured_output_that_its_reader_has_exited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    frame = b"0000000e 0012 0000 00000007 0004 73686f70"

    assert 0 == run("stdout ended", "decode", stdin=frame).status
    assert 1 == run("stdout ended", "decode", stdin=b"00").status


def test_a_failure_is_known_although_the_reader_of_the_results_has_exited(
    trionet_broker: Broker,
) -> None:
    trionet_broker.create_topic("orders")
    b = ["-b", trionet_broker.bootstrap_servers]

    done = run("stdout ended", "topics", "describe", *b, "orders", "nowhere")

    assert 1 == done.status
    assert "nowhere" in done.err


def test_skipped_records_are_known_although_the_reader_has_exited(trionet_broker: Broker) -> None:
    b = ["-b", trionet_broker.bootstrap_servers]
    run("", "produce", *b, "orders", stdin=b"x\nab\n")
    consume = ("consume", *b, "orders", "-e", "-E")

    assert 1 == run("stdout ended", *consume, "-s", "value=short").status
    assert 0 == run("stdout ended", *consume).status


@pytest.mark.parametrize(
    "arguments",
    [
        ["produce", "orders"],
        ["decode"],
        ["broker", "--add-scram", "alice", "--data", "."],
        ["topics", "trim", "--from-file", "-"],
        ["configs", "users", "set", "alice"],
    ],
)
def test_a_closed_standard_input_is_said_to_be_closed(
    arguments: Sequence[str], tmp_path: Path
) -> None:
    done = run("stdin closed", *[str(tmp_path) if each == "." else each for each in arguments])

    assert 2 == done.status
    assert "standard input is closed" in done.err


def test_a_broker_whose_address_cannot_be_written_does_not_start() -> None:
    done = run("stdout full", "broker", "--listen", "127.0.0.1:0", "--memory")

    assert 1 == done.status
    assert "trionet broker: cannot write to standard output: No space left on device" in done.err


@pytest.mark.parametrize("condition", ["stdout closed", "stderr closed", "stdin closed"])
def test_a_broker_without_a_standard_stream_serves(condition: str) -> None:
    [port] = free_ports(1)
    command = [sys.executable, "-m", "trionet", "broker", "--listen", f"127.0.0.1:{port}"]
    with running(
        ["sh", "-c", f'exec "$@" {REDIRECTIONS[condition]}', "sh", *command], env=SAME_TRIONET
    ) as process:
        wait_for_api_versions(port, process)
        process.terminate()

        assert 0 == process.wait(SECONDS)
