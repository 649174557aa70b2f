"""What docs/howto/run-in-docker.md has a container run works as a process of this machine.

Nothing here needs Docker: the commands of the Dockerfile and of the compose file are taken as they
are, but for ports, the data directory and the Python that runs them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from support.ports import free_ports
from support.processes import SAME_TRIONET, child_of, first_line, running
from test_docs import BLOCKS

PAGE = "docs/howto/run-in-docker.md"
DATA = "/var/lib/trionet"
FILES = {block.file: block.text for block in BLOCKS if block.page == PAGE and block.file}
DOCKERFILE = FILES["Dockerfile"].replace("\\\n", " ")
COMPOSE: dict[str, Any] = yaml.safe_load(FILES["compose.yaml"])
# Those of the page: two listeners, and that of the metrics.
PORTS = ("9092", "9094", "9404")
# Runs a program as process 1, as a container does; a killed one takes it along.
AS_PROCESS_1 = ("unshare", "--pid", "--fork", "--kill-child")


def can_unshare() -> bool:
    """Whether a process 1 may be made here: mostly by root alone."""
    if shutil.which("unshare") is None:
        return False
    tried = subprocess.run([*AS_PROCESS_1, "true"], capture_output=True, check=False)
    return tried.returncode == 0


def instruction(name: str) -> list[str]:
    """The arguments of an instruction in the exec form, in which no shell takes part."""
    [found] = re.findall(rf"^{name} +(\[.*\])$", DOCKERFILE, re.MULTILINE)
    arguments: list[str] = json.loads(found)
    return arguments


ENTRYPOINT = instruction("ENTRYPOINT")
DEFAULT = instruction("CMD")
HEALTH = instruction("HEALTHCHECK .* CMD")


class Machine:
    """Stands for a container: free ports and a folder in the place of those of the page."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = dict(zip(PORTS, map(str, free_ports(len(PORTS))), strict=True))

    def here(self, command: Sequence[str]) -> list[str]:
        """A command of the page, as it can run here."""
        programs = {"trionet": [sys.executable, "-m", "trionet"], "python": [sys.executable]}
        words = [self._here(word) for word in command[1:]]
        return [*programs[command[0]], *words]

    def _here(self, word: str) -> str:
        word = word.replace(DATA, str(self.folder))
        return re.sub("|".join(PORTS), lambda found: self.ports[found[0]], word)

    @contextmanager
    def broker(
        self, arguments: Sequence[str], before: Sequence[str] = ()
    ) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
        """The broker of the image with such arguments, and its ready line."""
        command = [*before, *self.here([*ENTRYPOINT, *arguments])]
        with running(command, env=SAME_TRIONET) as process:
            yield process, first_line(process)

    def is_healthy(self) -> bool:
        checked = subprocess.run(self.here(HEALTH), capture_output=True, timeout=30, check=False)
        return checked.returncode == 0


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def brokers_seen_by(port: str) -> list[str]:
    """The addresses to which a client connects that has asked a listener for them."""
    metadata = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"}).list_topics(timeout=10)
    return [f"{each.host}:{each.port}" for each in metadata.brokers.values()]


@pytest.mark.slow
@pytest.mark.interop
def test_the_image_serves_programs_outside_is_healthy_and_stops_at_sigterm(
    machine: Machine,
) -> None:
    with machine.broker(DEFAULT) as (process, ready):
        assert f"trionet broker ready: PLAINTEXT://0.0.0.0:{machine.ports['9092']}" == ready
        assert [f"localhost:{machine.ports['9092']}"] == brokers_seen_by(machine.ports["9092"])
        assert machine.is_healthy()
        process.terminate()

        assert 0 == process.wait(timeout=30)

    assert (machine.folder / ".kafka_cleanshutdown").exists()
    assert not machine.is_healthy()


@pytest.mark.slow
def test_the_image_keeps_nothing_if_asked_to(machine: Machine) -> None:
    with machine.broker(["--memory", *DEFAULT]):
        assert [] == list(machine.folder.iterdir())


@pytest.mark.slow
@pytest.mark.skipif(not can_unshare(), reason="unshare is not installed, or may not do this")
def test_the_broker_stops_as_process_1(machine: Machine) -> None:
    """Which ignores every signal that it does not ask for."""
    with machine.broker(DEFAULT, AS_PROCESS_1) as (process, _):
        os.kill(child_of(process), signal.SIGTERM)

        assert 0 == process.wait(timeout=30)


@pytest.mark.slow
@pytest.mark.interop
def test_each_client_of_the_compose_file_is_given_an_address_that_it_can_reach(
    machine: Machine,
) -> None:
    kafka, app = COMPOSE["services"]["kafka"], COMPOSE["services"]["app"]
    with machine.broker(kafka["command"]):
        inside, outside = machine.ports["9092"], machine.ports["9094"]
        assert [f"kafka:{inside}"] == brokers_seen_by(inside)
        assert [f"localhost:{outside}"] == brokers_seen_by(outside)

        producer = Producer({"bootstrap.servers": f"localhost:{outside}"})
        producer.produce("orders", b"one coffee")
        assert 0 == producer.flush(10)
        servers = {"TRIONET_BOOTSTRAP_SERVERS": f"localhost:{outside}"}
        with running(machine.here(app["entrypoint"]), env=SAME_TRIONET | servers) as consumer:
            assert "one coffee" == first_line(consumer)

    assert {"TRIONET_BOOTSTRAP_SERVERS": "kafka:9092"} == app["environment"]


def test_names_in_the_compose_file_are_those_of_the_image_and_of_its_services() -> None:
    kafka, app = COMPOSE["services"]["kafka"], COMPOSE["services"]["app"]

    assert [f"127.0.0.1:{PORTS[1]}:{PORTS[1]}"] == kafka["ports"]
    assert [f"{name}:{DATA}" for name in COMPOSE["volumes"]] == kafka["volumes"]
    assert {"kafka": {"condition": "service_healthy"}} == app["depends_on"]
    assert f"VOLUME {DATA}\n" in DOCKERFILE
    assert f"log.dirs={DATA}" in ENTRYPOINT
