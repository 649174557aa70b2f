"""The async operations that tests perform on a broker: topics, records, retention and waits."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

import attrs
import trio

from ...broker.run._upkeep import apply_retention as apply_retention_of
from ...errors import ApiError
from ...protocol import error_codes
from ._broker_internals import BrokerInternals
from ._record_files import read_records
from ._records import NewRecord, Record, Seed, append, assign_partitions, new_record

T = TypeVar("T")


@attrs.frozen
class Condition(Generic[T]):
    """A condition that a test waits for.

    Attributes:
        what: a description of the condition.
        poll: returns the result, or None while the condition is not met.
        so_far: returns a description of the current state.
    """

    what: str
    poll: Callable[[], T | None]
    so_far: Callable[[], str]


async def wait(inside: BrokerInternals, condition: Condition[T]) -> T:
    """Wait for a condition, and return its result. Always a checkpoint."""
    await trio.lowlevel.checkpoint()
    while (found := condition.poll()) is None:
        await inside.changes.park()
    return found


async def wait_with_timeout(inside: BrokerInternals, condition: Condition[T], seconds: float) -> T:
    """Wait for a condition with a timeout, and return its result.

    Raises:
        TimeoutError: the timeout expired; the message describes the current state.
    """
    with trio.move_on_after(seconds):
        return await wait(inside, condition)
    raise TimeoutError(
        f"timed out after {seconds} s waiting for {condition.what}; {condition.so_far()}"
    )


async def create_topic(
    inside: BrokerInternals, name: str, partitions: int | None, configs: Mapping[str, object]
) -> None:
    """Create a topic; the keys of configs may have underscores instead of dots."""
    await inside.cluster.create_topic(
        name,
        partitions=-1 if partitions is None else partitions,
        configs=tuple((key.replace("_", "."), _setting(value)) for key, value in configs.items()),
    )


def _setting(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


async def delete_topic(inside: BrokerInternals, name: str) -> None:
    """Delete a topic and its records."""
    topic = inside.cluster.topics.get(name)
    if topic is None:
        raise ApiError(error_codes.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name} does not exist")
    await inside.cluster.delete_topic(topic)


async def seed(inside: BrokerInternals, topic: str, records: Iterable[Seed]) -> list[Record]:
    """Append records to a topic, creating it if needed. Returns the appended records."""
    return await _store(inside, topic, [new_record(each) for each in records])


async def load(inside: BrokerInternals, path: str | os.PathLike[str]) -> dict[str, list[Record]]:
    """Append the records in a file to their topics. Returns the appended records by topic."""
    if inside.cluster.network.is_virtual:  # threads are not part of virtual time
        await trio.lowlevel.checkpoint()
        by_topic = read_records(path)
    else:
        by_topic = await trio.to_thread.run_sync(read_records, path)
    return {topic: await _store(inside, topic, records) for topic, records in by_topic.items()}


async def _store(inside: BrokerInternals, name: str, records: list[NewRecord]) -> list[Record]:
    state = inside.nodes[0].state
    topic = await inside.cluster.get_or_create_topic(name)
    stored: list[Record] = []
    for index, assigned in sorted(assign_partitions(records, topic.partitions).items()):
        log = state.get_log(name, index)
        if log is None:  # the topic was deleted meanwhile
            raise ApiError(error_codes.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name} does not exist")
        before = log.size
        stored += await append(log, assigned, state.now_ms())
        if log.must_flush:
            await log.flush()
        state.appended(log, log.size - before)
        inside.changed()
    return stored


async def apply_retention(inside: BrokerInternals) -> None:
    """Apply retention now, as the broker does periodically."""
    await trio.lowlevel.checkpoint()
    await apply_retention_of(inside.cluster)
