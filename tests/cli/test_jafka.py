"""``trionet jafka``: its ready line, its settings, and its end by a signal."""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen

import pytest

from support.jafka_wire import messages
from support.processes import SAME_TRIONET, first_line, running
from trionet.cli.main import main
from trionet.jafka._codec import encode_request
from trionet.jafka._requests import FetchRequest, ProducerRequest
from trionet.jafka._topics import CLEAN_STOP

READY = "trionet jafka ready: "
HELLO = messages(b"hello")


@contextmanager
def started(*arguments: str | Path) -> Iterator[tuple[Popen[bytes], str]]:
    command = [sys.executable, "-m", "trionet", "jafka", *map(str, arguments)]
    with running(command, env=SAME_TRIONET) as process:
        line = first_line(process)
        assert line.startswith(READY)
        yield process, line.removeprefix(READY)


def connect(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)))


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_that_it_is_ready_and_a_signal_ends_it_well(
    tmp_path: Path, number: signal.Signals
) -> None:
    options = ["--listen", "127.0.0.1:0", "--data", str(tmp_path)]
    with started(*options) as (process, address), connect(address) as sock:
        sock.sendall(encode_request(ProducerRequest("demo", 0, HELLO)))
        sock.sendall(encode_request(FetchRequest("demo", 0, 0, 100)))
        assert HELLO == sock.recv(100)[6:]
        process.send_signal(number)
        assert 0 == process.wait(10)
        assert b"" == sock.recv(1)

    assert (tmp_path / CLEAN_STOP).exists()
    assert HELLO == (tmp_path / "demo-0" / f"{0:020}.jafka").read_bytes()


@pytest.mark.slow
def test_settings_come_from_a_file_and_from_options(tmp_path: Path) -> None:
    """--set before --config, and --listen and --data before both."""
    config = tmp_path / "server.properties"
    config.write_text("brokerid=1\nport=1\nnum.partitions=5\nlog.dir=/nowhere\nlog.file.size=99\n")
    options = ["--set", "num.partitions=2", "--listen", "localhost:0"]
    options += ["--data", str(tmp_path / "data")]
    with started("--config", config, *options) as (_, address), connect(address) as sock:
        sock.sendall(encode_request(ProducerRequest("demo", 1, HELLO)))
        sock.sendall(encode_request(FetchRequest("demo", 2, 0, 100)))
        assert b"\0\0\0\2\0\3" == sock.recv(100)

    assert {"demo-0", "demo-1"} == {each.name for each in (tmp_path / "data").glob("demo-*")}


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--listen", "9092"], "must have the form HOST:PORT"),
        (["--listen", "localhost:x"], "must have the form HOST:PORT"),
        (["--set", "num.partition=2"], "the closest match is num.partitions"),
        (["--set", "num.partitions=0"], "allowed: an integer from 1"),
    ],
)
def test_what_is_not_allowed_is_said(
    arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 2 == main(["jafka", *arguments])
    assert why in capsys.readouterr().err


def test_a_port_that_is_taken_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert 1 == main(["jafka", "--listen", f"127.0.0.1:{port}"])

    assert "trionet jafka: " in capsys.readouterr().err
