"""The unit of docs/howto/run-under-systemd.md is valid, and forbids nothing that a broker does."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
import trio
from confluent_kafka import Producer

from support.eventually import eventually
from support.ports import free_ports
from support.processes import SAME_TRIONET, child_of, first_line, running
from support.traced import strace_works
from test_docs import BLOCKS
from trionet.broker.log.compaction._cleaner import PROCESS_BYTES_MIN

PAGE = "docs/howto/run-under-systemd.md"
FILES = {block.file: block.text for block in BLOCKS if block.page == PAGE and block.file}
UNIT = FILES["trionet.service"]
TRIONET = "/opt/trionet/bin/trionet"
DATA = "/var/lib/trionet"
RECORD_BYTES = 900_000
# A line of strace: the number of the thread, a call and its arguments.
CALL = re.compile(r"^\d+ +(\w+)\((.*)", re.MULTILINE)

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed"
)


def setting(name: str) -> str:
    [found] = re.findall(rf"^{name}=(.*)$", UNIT, re.MULTILINE)
    assert isinstance(found, str)
    return found


@pytest.mark.slow
@needs_systemd
@pytest.mark.parametrize("is_awaited", [False, True])
def test_systemd_accepts_the_unit(tmp_path: Path, is_awaited: bool) -> None:
    [drop_in] = [block.text for block in BLOCKS if block.page == PAGE and "Post=" in block.text]
    text = f"{UNIT}\n{drop_in if is_awaited else ''}"
    path = tmp_path / "trionet.service"
    path.write_text(text.replace(TRIONET, sys.executable), "utf-8")

    checked = subprocess.run(
        ["systemd-analyze", "verify", str(path)], capture_output=True, text=True, check=False
    )

    assert (0, "", "") == (checked.returncode, checked.stdout, checked.stderr)


class Machine:
    """Free ports and folders in the place of those of the page."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        kafka, metrics = free_ports(2)
        self.servers = f"127.0.0.1:{kafka}"
        self.metrics = f"http://127.0.0.1:{metrics}"
        settings = FILES["server.properties"].replace(DATA, str(folder / "data"))
        settings = settings.replace("127.0.0.1:9092", self.servers)
        settings = settings.replace("http://127.0.0.1:9404", self.metrics)
        self.settings = folder / "server.properties"
        self.settings.write_text(settings, "utf-8")
        (folder / "run").mkdir(mode=0o700)
        self.environment = {**SAME_TRIONET, "XDG_RUNTIME_DIR": str(folder / "run")}

    @contextmanager
    def broker(self, *before: str) -> Iterator[subprocess.Popen[bytes]]:
        """The command of the unit, when it is ready."""
        program, *words = setting("ExecStart").split()
        assert TRIONET == program
        words = [word.replace("/etc/trionet", str(self.folder)) for word in words]
        command = [*before, sys.executable, "-m", "trionet", *words]
        with running(command, env=self.environment) as process:
            assert f"trionet broker ready: PLAINTEXT://{self.servers}" == first_line(process)
            yield process

    async def has_cleaned(self) -> bool:
        """Whether a log has been cleaned."""
        return await trio.Path(self.folder / "data" / "cleaner-offset-checkpoint").exists()

    def run(self, *words: str, text: str = "") -> str:
        """What a command prints that runs as the same user."""
        done = subprocess.run(
            [sys.executable, "-m", "trionet", *words],
            env={**os.environ, **self.environment},
            input=text,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert 0 == done.returncode, done.stderr
        return done.stdout


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.slow
def test_the_dashboard_of_the_user_sees_the_inside_and_sigterm_is_the_end(machine: Machine) -> None:
    with machine.broker() as process:
        seen = machine.run("dashboard", machine.servers, "--once", "--view", "connections")
        assert "trionet-dashboard" in seen, seen
        process.terminate()

        assert 0 == process.wait(timeout=float(setting("TimeoutStopSec")))


@pytest.mark.slow
@needs_systemd
@pytest.mark.skipif(not strace_works(), reason="strace is not installed, or may not trace")
def test_a_broker_does_nothing_that_the_unit_forbids(machine: Machine) -> None:
    """A process that cleans logs included."""
    trace = machine.folder / "trace"
    with machine.settings.open("a") as file:
        file.write("log.cleaner.backoff.ms=100\n")
    with machine.broker("strace", "-f", "-qq", "-o", str(trace)) as process:
        write_much_to_clean(machine)
        machine.run("topics", "create", "orders", "-b", machine.servers)
        machine.run("produce", "orders", "-b", machine.servers, text="one coffee\n")
        read = machine.run("consume", "-b", machine.servers, "-G", "bar", "orders", "-e")
        machine.run("dashboard", machine.servers, "--once")
        trio.run(eventually, machine.has_cleaned, bool)
        os.kill(child_of(process), signal.SIGTERM)
        assert 0 == process.wait(timeout=float(setting("TimeoutStopSec")))

    calls = set(CALL.findall(trace.read_text("utf-8")))
    names = {name for name, _ in calls}
    sockets = {arguments.partition(",")[0] for name, arguments in calls if name == "socket"}

    assert "one coffee\n" == read
    assert 1 < len([name for name, _ in calls if name == "execve"])
    assert {"flock", "mmap", "fsync", "sendto"} <= names
    assert set() == names - allowed(setting("SystemCallFilter"))
    assert sockets <= set(setting("RestrictAddressFamilies").split())
    # What MemoryDenyWriteExecute refuses.
    assert [] == [call for call in calls if call[0] == "mmap" and "PROT_WRITE|PROT_EXEC" in call[1]]
    assert [] == [call for call in calls if call[0] == "mprotect" and "PROT_EXEC" in call[1]]


def write_much_to_clean(machine: Machine) -> None:
    """More than is cleaned in a thread."""
    settings = ("cleanup.policy=compact", "segment.bytes=1048576", "min.cleanable.dirty.ratio=0.1")
    options = [word for setting in settings for word in ("-s", setting)]
    machine.run("topics", "create", "table", *options, "-b", machine.servers)
    producer = Producer({"bootstrap.servers": machine.servers})
    for _ in range(3 * PROCESS_BYTES_MIN // RECORD_BYTES):
        producer.produce("table", bytes(RECORD_BYTES), key=b"7")
    assert 0 == producer.flush(30)


@cache
def allowed(group: str) -> frozenset[str]:
    """The system calls of a group, and of those in it."""
    listed = subprocess.run(
        ["systemd-analyze", "syscall-filter", "--no-pager", group],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    names = [line.strip() for line in listed.splitlines()[1:] if not line.strip().startswith("#")]
    return frozenset(name for each in names if each for name in expanded(each))


def expanded(name: str) -> frozenset[str]:
    return allowed(name) if name.startswith("@") else frozenset((name,))
