"""What a test has a broker do that takes a while, in the broker's own loop."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

import attrs
import trio

from ...broker.run._upkeep import apply_retention as apply_retention_of
from ...errors import ApiError
from ...protocol import error_codes
from ._broker_internals import Inside
from ._record_files import read_records
from ._records import NewRecord, Record, Seed, append, new_record, place

T = TypeVar("T")


@attrs.frozen
class Awaited(Generic[T]):
    """Something that a test waits for.

    Attributes:
        what: in words.
        poll: gives it, or None as long as it is not there.
        so_far: what there is meanwhile, in words.
    """

    what: str
    poll: Callable[[], T | None]
    so_far: Callable[[], str]


async def until(inside: Inside, awaited: Awaited[T]) -> T:
    """Wait for it. Always a checkpoint."""
    await trio.lowlevel.checkpoint()
    while (found := awaited.poll()) is None:
        await inside.changes.park()
    return found


async def until_at_most(inside: Inside, awaited: Awaited[T], seconds: float) -> T:
    """Wait for it, but not for ever.

    Raises:
        TimeoutError: it has not come; says what has.
    """
    with trio.move_on_after(seconds):
        return await until(inside, awaited)
    raise TimeoutError(f"{awaited.what}: not within {seconds} s; {awaited.so_far()}")


async def create_topic(
    inside: Inside, name: str, partitions: int | None, configs: Mapping[str, object]
) -> None:
    """Make a topic, with settings by dotted keys or with underscores."""
    await inside.cluster.create_topic(
        name,
        partitions=-1 if partitions is None else partitions,
        configs=tuple((key.replace("_", "."), _setting(value)) for key, value in configs.items()),
    )


def _setting(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


async def delete_topic(inside: Inside, name: str) -> None:
    """Delete a topic and its records."""
    topic = inside.cluster.topics.get(name)
    if topic is None:
        raise ApiError(error_codes.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
    await inside.cluster.delete_topic(topic)


async def seed(inside: Inside, topic: str, records: Iterable[Seed]) -> list[Record]:
    """Put records into a topic, which is made if it is not there; what they are there."""
    return await _store(inside, topic, [new_record(each) for each in records])


async def load(inside: Inside, path: str | os.PathLike[str]) -> dict[str, list[Record]]:
    """Put the records of a file into their topics."""
    if inside.cluster.network.is_virtual:  # where a thread would take its time, and not this run's
        await trio.lowlevel.checkpoint()
        by_topic = read_records(path)
    else:
        by_topic = await trio.to_thread.run_sync(read_records, path)
    return {topic: await _store(inside, topic, records) for topic, records in by_topic.items()}


async def _store(inside: Inside, name: str, records: list[NewRecord]) -> list[Record]:
    state = inside.nodes[0].state
    topic = await inside.cluster.get_or_create_topic(name)
    stored: list[Record] = []
    for index, placed in sorted(place(records, topic.partitions).items()):
        log = state.get_log(name, index)
        if log is None:  # the topic was deleted meanwhile
            raise ApiError(error_codes.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
        before = log.size
        stored += await append(log, placed, state.now_ms())
        if log.must_flush:
            await log.flush()
        state.appended(log, log.size - before)
        inside.changed()
    return stored


async def apply_retention(inside: Inside) -> None:
    """Remove what is too old or too much by now, as the broker does from time to time."""
    await trio.lowlevel.checkpoint()
    await apply_retention_of(inside.cluster)
