"""``trionet produce`` and ``consume`` as processes: signals, pipes that close, a terminal."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.command_line import SECONDS, CommandLine, ended, feed, lines_from, started
from support.processes import SAME_TRIONET
from trionet.testing import broker


@pytest.fixture
def trionet(bootstrap: str, capfdbinary: pytest.CaptureFixture[bytes]) -> CommandLine:
    return CommandLine(bootstrap, capfdbinary)


def test_a_record_is_written_when_it_comes_and_a_signal_ends_it(trionet: CommandLine) -> None:
    topic = trionet.topic()
    trionet.write(topic, [b"a"])

    with started(trionet, "consume", "-G", topic, topic) as process:
        assert [b"a\n"] == lines_from(process, 1)
        trionet.write(topic, [b"b"])
        assert [b"b\n"] == lines_from(process, 1)
        process.send_signal(signal.SIGTERM)
        status, out, err = ended(process)

    assert (143, b"") == (status, out)
    assert "2 records" in err
    assert b"" == trionet.consume("-G", topic, topic, "-e").out


def test_an_output_without_a_reader_is_given_up_after_a_signal(trionet: CommandLine) -> None:
    topic = trionet.topic()
    trionet.write(topic, [b"%01000d" % number for number in range(10_000)])

    larger = ("-X", "max.partition.fetch.bytes=20000000")
    with started(trionet, "consume", "-G", topic, topic, *larger) as process:
        assert 1001 == len(lines_from(process, 1)[0])
        process.send_signal(signal.SIGINT)
        status = process.wait(SECONDS)
        assert process.stderr is not None
        err = process.stderr.read().decode()

    assert 1 == status
    assert "the output is not being read: " in err
    assert b"0" * 1000 == trionet.consume("-G", topic, topic, "-c", "1").out.rstrip()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_reported(trionet: CommandLine) -> None:
    topic = trionet.topic()
    trionet.write(topic, [b"a"])

    with (
        Path("/dev/full").open("wb") as full,
        started(trionet, "consume", topic, stdout=full) as process,
    ):
        status, _, err = ended(process)

    assert 1 == status
    assert "trionet consume: cannot write to standard output: No space left on device" in err


def test_input_that_is_closed_or_none_is_reported(trionet: CommandLine) -> None:
    topic = trionet.topic()

    command = f'"$@" -b {trionet.bootstrap} <&-'
    arguments = [sys.executable, "-m", "trionet", "produce", topic]
    done = subprocess.run(
        ["sh", "-c", command, "sh", *arguments],
        check=False,
        capture_output=True,
        env={**os.environ, **SAME_TRIONET},
        timeout=SECONDS,
    )

    assert (2, b"trionet produce: standard input is closed\n") == (done.returncode, done.stderr)


def test_a_broker_that_dies_is_reported_with_what_was_not_written(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    settings = ["-X", "delivery.timeout.ms=1500", "-X", "request.timeout.ms=1000"]
    options = ["-o", r"%o\n", "-X", "linger.ms=0", *settings]
    with broker() as running:
        trionet = CommandLine(running.bootstrap_servers, capfdbinary)
        with started(trionet, "produce", trionet.topic(), *options) as process:
            feed(process, b"a\n")
            assert [b"0\n"] == lines_from(process, 1)
            running.stop(running.node_ids[0])
            feed(process, b"b\nc\n")
            status, out, err = ended(process)

    assert (1, b"") == (status, out)
    assert "record 2: " in err
    assert "2 records failed or may not have been written" in err


def test_a_signal_ends_it_soon_though_nothing_is_acknowledged(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    """Not after delivery.timeout.ms, two minutes, which is more than the test waits for."""
    with broker() as running:
        running.faults.swallow("Produce", times=None)
        trionet = CommandLine(running.bootstrap_servers, capfdbinary)
        with started(trionet, "produce", trionet.topic(), "-T", "-X", "linger.ms=0") as process:
            feed(process, b"a\nb\n")
            assert [b"a\n", b"b\n"] == lines_from(process, 2)
            process.send_signal(signal.SIGTERM)
            status, _, err = ended(process)

    assert 1 == status
    assert "waiting for 2 records, as long as records are acknowledged each second" in err
    assert "2 records failed or may not have been written" in err


def test_a_signal_ends_the_wait_for_memory(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    small = ("-X", "buffer.memory=2000", "-X", "batch.size=1000", "-X", "max.request.size=1000")
    with broker() as running:
        running.faults.swallow("Produce", times=None)
        trionet = CommandLine(running.bootstrap_servers, capfdbinary)
        with started(trionet, "produce", trionet.topic(), "-X", "linger.ms=0", *small) as process:
            feed(process, b"x" * 400 + b"\n")
            running.wait_for_requests("Produce")
            feed(process, b"".join(b"%0400d\n" % number for number in range(20)))
            process.send_signal(signal.SIGTERM)
            status, _, err = ended(process)

    assert 1 == status
    assert "failed or may not have been written" in err


def test_a_signal_counts_each_record_once_though_some_of_a_batch_are_sent(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    """A record that is too large makes the command send the batch one by one."""
    small = ("-X", "buffer.memory=2000", "-X", "batch.size=1000", "-X", "max.request.size=1000")
    lines = [b"%0400d\n" % number for number in range(20)]
    with broker() as running:
        running.faults.swallow("Produce", times=None)
        trionet = CommandLine(running.bootstrap_servers, capfdbinary)
        options = ("-E", "-X", "linger.ms=0", *small)
        with started(trionet, "produce", trionet.topic(), *options) as process:
            feed(process, b"".join([b"first\n", b"x" * 1500 + b"\n", *lines]))
            running.wait_for_requests("Produce")
            process.send_signal(signal.SIGTERM)
            status, _, err = ended(process)

    assert 1 == status
    assert "trionet produce: 22 records failed or may not have been written" in err


def test_a_second_signal_says_once_what_was_not_written(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    """The command has looked at each record itself; the producer's block does not say it again."""
    with broker() as running:
        trionet = CommandLine(running.bootstrap_servers, capfdbinary)
        topic = trionet.topic()
        with started(trionet, "produce", topic, "-T", "-X", "linger.ms=0") as process:
            feed(process, b"a\n")
            assert [b"a\n"] == lines_from(process, 1)
            running.stop(running.node_ids[0])
            feed(process, b"b\nc\n")
            assert [b"b\n", b"c\n"] == lines_from(process, 2)
            process.send_signal(signal.SIGTERM)
            assert process.stderr is not None
            while b"a second signal stops at once" not in (line := process.stderr.readline()):
                assert line  # not the end
            process.send_signal(signal.SIGTERM)
            status, _, err = ended(process)

    assert 1 == status
    assert "2 records failed or may not have been written" in err
    assert "looked at" not in err


@contextlib.contextmanager
def terminal() -> Iterator[tuple[int, int]]:
    ours, theirs = pty.openpty()
    try:
        yield ours, theirs
    finally:
        os.close(ours)
        os.close(theirs)


def read_until(descriptor: int, what: bytes) -> bytes:
    found = b""
    while what not in found:
        found += os.read(descriptor, 1000)
    return found


def test_a_terminal_is_given_nothing_that_it_might_obey(trionet: CommandLine) -> None:
    topic = trionet.topic()
    trionet.write(topic, [b"\x1b[31mred", b"end"])

    for options, expected in (
        ((), b"\\u001b[31mred\r\n"),
        (("--raw",), b"\x1b[31mred\r\n"),
    ):
        arguments = ("consume", "-q", topic, "-e", *options)
        with (
            terminal() as (ours, theirs),
            started(trionet, *arguments, stdout=theirs) as process,
        ):
            shown = read_until(ours, b"end\r\n")
            status, _, _ = ended(process)

        assert 0 == status
        assert shown.startswith(expected)


def test_a_bar_is_shown_on_a_terminal_and_taken_away(trionet: CommandLine) -> None:
    topic = trionet.topic()

    with (
        terminal() as (ours, theirs),
        started(trionet, "produce", topic, stderr=theirs) as process,
    ):
        feed(process, b"a\n")
        shown = read_until(ours, b"1 record, 2 B in ")
        assert process.stdin is not None
        process.stdin.close()
        status = process.wait(SECONDS)
        rest = read_until(ours, b"trionet produce: 1 record, 2 B in ")

    assert 0 == status
    assert b"\x1b[" in shown + rest


def test_lines_report_progress_where_it_is_wanted(trionet: CommandLine) -> None:
    with started(trionet, "produce", trionet.topic(), "--progress") as process:
        feed(process, b"a\n")
        assert process.stderr is not None
        line = process.stderr.readline()
        _, _, err = ended(process)

    assert line.startswith(b"trionet produce: 1 record, 2 B in 1.")
    assert "1 record, 2 B in" in err
