"""Three real Apache Kafka nodes, each broker and controller, that may be stopped and killed."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from support.kafka_node import KafkaFolder, memory_folder, new_cluster_id
from support.ports import free_ports, wait_for_api_versions
from support.processes import stop

NODES = 3
_HEAP = "512m"
#: What a loss of one node leaves able to work, and a run is not to wait for long.
_SETTINGS = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.num.partitions": "3",
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "5000",
    "auto.create.topics.enable": "false",
    # Leaders move when a run wants it.
    "auto.leader.rebalance.enable": "false",
}


class KafkaCluster:
    """Nodes 1 to `NODES`.

    Args:
        folders: of the nodes, by their ids.

    Attributes:
        bootstrap_servers: all of them.
    """

    def __init__(self, folders: Mapping[int, KafkaFolder]) -> None:
        self._folders = folders
        self._running: dict[int, tuple[contextlib.ExitStack, subprocess.Popen[bytes]]] = {}
        self.bootstrap_servers = ",".join(each.bootstrap_servers for each in folders.values())

    @property
    def node_ids(self) -> list[int]:
        return list(self._folders)

    @property
    def running_ids(self) -> list[int]:
        return list(self._running)

    def start(self, *node_ids: int) -> None:
        """Start nodes at the same time; they serve afterwards."""
        for node_id in node_ids:
            stack = contextlib.ExitStack()
            self._running[node_id] = stack, stack.enter_context(self._folders[node_id].process())
        for node_id in node_ids:
            wait_for_api_versions(self._folders[node_id].port, self._running[node_id][1])

    def stop(self, node_id: int) -> None:
        """A controlled shutdown: leaders move away first (SIGTERM)."""
        stack, process = self._running.pop(node_id)
        with stack:
            stop(process, 60)

    def kill(self, node_id: int) -> None:
        """SIGKILL."""
        stack, process = self._running.pop(node_id)
        with stack:
            process.kill()

    def close(self) -> None:
        """Kill what runs: the folders go, too."""
        for node_id in self.running_ids:
            self.kill(node_id)


@contextlib.contextmanager
def kafka_cluster(settings: Mapping[str, str] | None = None) -> Iterator[KafkaCluster]:
    """A running cluster of `NODES` nodes with empty logs, in memory where that can be.

    Raises `Unavailable` when there is no Java or no jars.
    """
    cluster_id = new_cluster_id()
    ports = free_ports(2 * NODES)
    pairs = dict(enumerate(zip(ports[::2], ports[1::2], strict=True), 1))
    voters = ",".join(f"{node_id}@127.0.0.1:{port}" for node_id, (_, port) in pairs.items())
    with tempfile.TemporaryDirectory(prefix="trionet-kafka-", dir=memory_folder()) as name:
        folders = {}
        for node_id, pair in pairs.items():
            path = Path(name) / str(node_id)
            path.mkdir()
            own = {"node.id": str(node_id), "controller.quorum.voters": voters}
            folders[node_id] = KafkaFolder(
                path,
                {**_SETTINGS, **own, **(settings or {})},
                ports=pair,
                cluster_id=cluster_id,
                heap=_HEAP,
            )
        cluster = KafkaCluster(folders)
        try:
            cluster.start(*cluster.node_ids)
            yield cluster
        finally:
            cluster.close()
