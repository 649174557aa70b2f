"""The records that wait for a handler, in the order in which they may start. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import Final, Literal, NamedTuple, TypeAlias

from ..._topic_partition import TopicPartition
from ..records._record import ConsumerRecord
from ._offset_tracker import OffsetTracker

Order: TypeAlias = Literal["key", "partition"]
"""Which records are handled one after another."""


class Job(NamedTuple):
    """A record to handle.

    Attributes:
        record: the record.
        partition: its partition.
        tracker: where to record that it has finished.
    """

    record: ConsumerRecord
    partition: TopicPartition
    tracker: OffsetTracker


Lane: TypeAlias = tuple[TopicPartition, bytes]
"""A partition, and a key or nothing."""


def _by_key(job: Job) -> Lane | None:
    key = job.record.key
    return None if key is None else (job.partition, key)


def _by_partition(job: Job) -> Lane | None:
    return job.partition, b""


def _unordered(_job: Job) -> Lane | None:
    return None


#: Returns the lane of a job; None for a job that follows no other. Keyed by order.
_LANES: Final[dict[Order | None, Callable[[Job], Lane | None]]] = {
    None: _unordered,
    "key": _by_key,
    "partition": _by_partition,
}


class Backlog:
    """The jobs that wait, and the lanes in which one has to follow another.

    A lane is a key or a partition, depending on the order. It is busy from the moment that its
    first job becomes ready until its last one has finished.

    Args:
        order: which records are handled one after another; None for no order.
    """

    def __init__(self, order: Order | None) -> None:
        self._lane_of = _LANES[order]
        self._ready: deque[Job] = deque()
        self._lanes: dict[Lane, deque[Job]] = {}
        self._waiting = 0

    def __len__(self) -> int:
        """Return the number of jobs that have not been started."""
        return len(self._ready) + self._waiting

    def add(self, jobs: Iterable[Job]) -> None:
        """Add jobs, those of one lane in the order in which they have to be handled."""
        for job in jobs:
            lane = self._lane_of(job)
            if lane is None:
                self._ready.append(job)
            elif lane in self._lanes:
                self._lanes[lane].append(job)
                self._waiting += 1
            else:
                self._lanes[lane] = deque()
                self._ready.append(job)

    def start(self) -> Job | None:
        """Take the next job that may start; None if there is none."""
        return self._ready.popleft() if self._ready else None

    def finish(self, job: Job) -> None:
        """Let the next job of its lane follow a job that has been started."""
        lane = self._lane_of(job)
        waiting = self._lanes.get(lane) if lane is not None else None
        if lane is None or waiting is None:
            return  # the latter if the partition was dropped
        if waiting:
            self._ready.append(waiting.popleft())
            self._waiting -= 1
        else:
            del self._lanes[lane]

    def drop(self, partitions: Collection[TopicPartition]) -> None:
        """Drop the jobs of these partitions that have not been started, and free their lanes."""
        self._ready = deque(job for job in self._ready if job.partition not in partitions)
        self._lanes = {
            lane: waiting for lane, waiting in self._lanes.items() if lane[0] not in partitions
        }
        self._waiting = sum(map(len, self._lanes.values()))
