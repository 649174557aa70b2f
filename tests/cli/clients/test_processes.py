"""Client commands as processes of their own: terminals, pipes, signals, and no broker."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import pytest

from support.command_runs import Run
from support.processes import SAME_TRIONET
from trionet.testing import ThreadedBroker as Broker

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "-m", "trionet"]
ENVIRONMENT = {**os.environ, **SAME_TRIONET, "TERM": "xterm"}
DRAWN_ANEW = "\x1b[H\x1b[J"
NOBODY = ["-b", "127.0.0.1:1"]


def start(
    *arguments: str, stdout: int | IO[str] = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        check=False,
        text=True,
        env=ENVIRONMENT,
        timeout=60,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
    )


@contextmanager
def on_terminal(*arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A command on a terminal of its own, and the terminal."""
    terminal, inside = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        env=ENVIRONMENT,
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
    )
    os.close(inside)
    try:
        yield process, terminal
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


def shown(terminal: int, until: str | None = None, times: int = 1) -> str:
    """What a terminal shows, up to some text, or to the end of who writes."""
    text = ""
    while until is None or text.count(until) < times:
        try:
            data = os.read(terminal, 4096)
        except OSError:  # Linux: nobody has it open any more
            break
        if not data:
            break
        text += data.decode()
    return text


def test_without_a_broker_it_says_so_and_ends() -> None:
    done = start("topics", "list", *NOBODY, "-X", "default.api.timeout.ms=300")

    assert (1, "") == (done.returncode, done.stdout)
    assert "connection refused" in done.stderr
    assert "the call did not succeed within default.api.timeout.ms (0.3 s)" in done.stderr
    assert "Traceback" not in done.stderr


def test_ctrl_c_ends_a_command_that_waits() -> None:
    process = subprocess.Popen(
        [*COMMAND, "topics", "list", *NOBODY, "-X", "default.api.timeout.ms=60000"],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stderr is not None
        first = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()

    assert "connection refused" in first
    assert (130, "") == (process.returncode, rest)


def test_a_reader_that_goes_away_is_no_error_to_report() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = start("config", "keys", "broker", "-a", stdout=writer)
    finally:
        os.close(writer)

    assert (0, "") == (done.returncode, done.stderr)


@pytest.mark.parametrize(("answer", "status", "left"), [("y\n", 0, []), ("\n", 1, ["orders"])])
def test_it_is_asked_on_a_terminal_before_something_is_destroyed(
    answer: str, status: int, left: list[str], trionet_broker: Broker, run: Run
) -> None:
    trionet_broker.create_topic("orders")
    b = ["-b", trionet_broker.bootstrap_servers]

    with on_terminal("topics", "delete", "orders", *b) as (process, terminal):
        asked = shown(terminal, "[y/N] ")
        os.write(terminal, answer.encode())
        rest = shown(terminal)
        ended = process.wait()

    assert asked.endswith("trionet topics delete: delete topic orders and all records? [y/N] ")
    assert status == ended
    assert ("nothing was changed" in rest) == bool(left)
    assert left == [row[0] for row in run("topics", "list", *b).rows]


def test_ctrl_c_is_an_answer_too(trionet_broker: Broker) -> None:
    trionet_broker.create_topic("orders")
    b = ["-b", trionet_broker.bootstrap_servers]

    with on_terminal("topics", "delete", "orders", *b) as (process, terminal):
        shown(terminal, "[y/N] ")
        process.send_signal(signal.SIGINT)
        rest = shown(terminal)

        assert 130 == process.wait()
    assert "Traceback" not in rest


def test_a_name_cannot_do_anything_to_a_terminal_that_watches(
    trionet_broker: Broker, run: Run
) -> None:
    trionet_broker.create_topic("orders")
    b = ["-b", trionet_broker.bootstrap_servers]
    evil = "evil\x1b[2J\x07\u202ename"
    assert 0 == run("groups", "reset", evil, "-t", "orders", "--to-latest", "--execute", *b).status
    watch = ["groups", "describe", evil, "--watch", "--interval", "0.1"]

    with on_terminal(*watch, *b) as (process, terminal):
        text = shown(terminal, DRAWN_ANEW, times=3)
        process.send_signal(signal.SIGINT)

        assert 130 == process.wait()
    assert "evil\\u001b[2J\\u0007\\u202ename" in text
    # A header is bold.
    bare = text.replace(DRAWN_ANEW, "").replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert bare.replace("\r\n", "").isprintable()
