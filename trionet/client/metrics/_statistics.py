"""A snapshot of a client's metrics, keyed by Kafka's metric names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TypeVar

from ...metrics._families import Snapshot
from .._topic_partition import TopicPartition

K = TypeVar("K")

NODE = ("node-id",)
TOPIC = ("topic",)
PARTITION = ("topic", "partition")
#: The labels of a client-wide value whose metric also has values per topic.
WHOLE = ("",)


class ClientStatistics(Mapping[str, float]):
    """A snapshot of all of a client's metrics, as a mapping from Kafka's metric names to values.

    ``statistics["request-total"]`` is the value for the whole client, and
    ``statistics.nodes[1]["request-total"]`` is the value for one node. Rates and averages cover the
    configured sampling windows, including the current one.

    Args:
        snapshot: the client's metric families.

    Attributes:
        nodes: the metrics of each node, keyed by node id.
        topics: the metrics of each topic, keyed by topic name.
        partitions: the metrics of each partition.
        snapshot: the metric families, with all names and kinds;
            :func:`trionet.metrics._prometheus.exposition` formats it for Prometheus.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        whole: dict[str, float] = {}
        nodes: dict[int, dict[str, float]] = {}
        topics: dict[str, dict[str, float]] = {}
        partitions: dict[TopicPartition, dict[str, float]] = {}
        for family in snapshot.values():
            name = family.metric.kafka.rpartition(",")[2]
            if not name:
                continue
            for sample in family.samples:
                match sample.labels:
                    case ():
                        whole[name] = sample.value
                    case (node,) if family.metric.labels == NODE:
                        nodes.setdefault(int(node), {})[name] = sample.value
                    case ("", *_):
                        whole[name] = sample.value
                    case (topic,) | (topic, ""):
                        topics.setdefault(topic, {})[name] = sample.value
                    case (topic, partition):
                        of = TopicPartition(topic, int(partition))
                        partitions.setdefault(of, {})[name] = sample.value
        self._whole = whole
        self.nodes: Mapping[int, Mapping[str, float]] = _frozen(nodes)
        self.topics: Mapping[str, Mapping[str, float]] = _frozen(topics)
        self.partitions: Mapping[TopicPartition, Mapping[str, float]] = _frozen(partitions)

    def __getitem__(self, name: str) -> float:
        return self._whole[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._whole)

    def __len__(self) -> int:
        return len(self._whole)

    def __repr__(self) -> str:
        return f"ClientStatistics({self._whole})"


def _frozen(parts: Mapping[K, dict[str, float]]) -> Mapping[K, Mapping[str, float]]:
    return MappingProxyType({key: MappingProxyType(part) for key, part in parts.items()})
