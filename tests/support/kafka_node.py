"""One real Apache Kafka broker (KRaft, broker and controller in one process) on 127.0.0.1."""

from __future__ import annotations

import base64
import contextlib
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from support.kafka_jars import class_path, java
from support.kafka_tools import STORAGE, kafka_tool
from support.ports import free_ports, wait_for_api_versions
from support.processes import running


def memory_folder() -> Path | None:
    """A folder in memory where the system has one; None is the default temporary folder."""
    shm = Path("/dev/shm")
    return shm if shm.is_dir() else None


def new_cluster_id() -> str:
    """As Kafka's own tool makes them: 22 characters of Base64."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


class KafkaFolder:
    """A formatted data directory with fixed ports: a broker in it can be stopped and started again.

    Args:
        path: an existing folder.
        settings: of the broker.
        ports: for clients and for controllers; None takes free ones.
        cluster_id: of the cluster; None makes a new one.
        heap: of the Java machine.
        classes: a folder of more Java classes, for plugins.
    """

    def __init__(
        self,
        path: Path,
        settings: Mapping[str, str] | None = None,
        *,
        ports: Sequence[int] | None = None,
        cluster_id: str | None = None,
        heap: str = "1g",
        classes: Path | None = None,
    ) -> None:
        self.path = path
        self._class_path = class_path() if classes is None else f"{class_path()}:{classes}"
        self._heap = heap
        self.port, controller_port = ports or free_ports(2)
        self.bootstrap_servers = f"127.0.0.1:{self.port}"
        self.controllers = f"127.0.0.1:{controller_port}"
        self.data = path / "data"
        self._properties = path / "server.properties"
        lines = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
            "listeners": f"PLAINTEXT://{self.bootstrap_servers},"
            f"CONTROLLER://127.0.0.1:{controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": str(self.data),
            "group.initial.rebalance.delay.ms": "0",
            **{
                f"{topic}.{key}": "1"
                for topic in ("transaction.state.log", "share.coordinator.state.topic")
                for key in ("replication.factor", "min.isr")
            },
            "offsets.topic.replication.factor": "1",
            **(settings or {}),
        }
        self._properties.write_text("".join(f"{key}={lines[key]}\n" for key in lines))
        kafka_tool(
            STORAGE,
            "format",
            f"--cluster-id={cluster_id or new_cluster_id()}",
            f"--config={self._properties}",
        )

    def process(self) -> contextlib.AbstractContextManager[subprocess.Popen[bytes]]:
        """A process of the broker, from the moment it is started."""
        heap = (f"-Xms{self._heap}", f"-Xmx{self._heap}", "-XX:+UseG1GC")
        command = [java(), *heap, "-cp", self._class_path, "kafka.Kafka", str(self._properties)]
        return running(command, stop_seconds=30)

    @contextlib.contextmanager
    def broker(self) -> Iterator[subprocess.Popen[bytes]]:
        """The running broker, from the moment it responds to an ApiVersions request."""
        with self.process() as process:
            wait_for_api_versions(self.port, process)
            yield process


@contextlib.contextmanager
def kafka_folder(
    settings: Mapping[str, str] | None = None,
    *,
    ports: Sequence[int] | None = None,
    classes: Path | None = None,
) -> Iterator[KafkaFolder]:
    """A formatted data directory in memory (/dev/shm where there is one), removed at the end.

    Raises `Unavailable` when there is no Java or no jars.
    """
    with tempfile.TemporaryDirectory(prefix="trionet-kafka-", dir=memory_folder()) as name:
        yield KafkaFolder(Path(name), settings, ports=ports, classes=classes)


@contextlib.contextmanager
def kafka_node(
    settings: Mapping[str, str] | None = None,
    *,
    ports: Sequence[int] | None = None,
    classes: Path | None = None,
) -> Iterator[tuple[str, int]]:
    """One running broker with an empty log: its bootstrap server and its process id."""
    with kafka_folder(settings, ports=ports, classes=classes) as folder, folder.broker() as process:
        yield folder.bootstrap_servers, process.pid
