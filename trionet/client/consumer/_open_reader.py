"""Readers: consumers that read topics up to their present end, without a group."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from operator import attrgetter
from typing import Final, Unpack

from ...errors import ConfigError
from ...net._network import SYSTEM, Network
from .._argument_checks import integer, topic_names
from ..config._keywords import ConsumerKeywords
from ..security._settings import TokenProvider
from ._consumer import Consumer
from ._open_consumer import open_consumer
from ._range import BEGINNING, END, assign_range, existing_partitions, place
from ._settings import ConsumerSettings, consumer_settings
from .records._record import ConsumerRecord

#: If retention removes the next record in the meantime, reading continues with the first that is
#: left. And reading must not create topics.
_DEFAULTS: Final = {"auto.offset.reset": "earliest", "allow.auto.create.topics": "false"}


# Rejected: an async generator, `async for record in read(...)`, which would need no block. It would
# hold the consumer's nursery, whose tasks and connection would outlive a loop left by `break`.
@asynccontextmanager
async def open_reader(
    bootstrap_servers: str | Iterable[str],
    topics: str | Iterable[str],
    config: Mapping[str, object] | ConsumerSettings | None = None,
    *,
    partitions: Iterable[int] = (),
    start: int | datetime | None = None,
    end: int | datetime | None = None,
    network: Network = SYSTEM,
    token_provider: TokenProvider | None = None,
    **keywords: Unpack[ConsumerKeywords],
) -> AsyncIterator[Consumer]:
    """Open a consumer that reads topics from their beginning to their present end.

    It has no group and commits nothing. The end is the end of each partition when the block
    starts; what is written later is not read. ``async for`` ends there, also if the last offsets
    hold no records, as after compaction or a transaction. With ``isolation.level=read_committed``,
    the end is the start of the first open transaction, if there is one.

    Records of one partition come in the order of their offsets, and partitions are interleaved.
    Memory is bounded by ``fetch.max.bytes``.

    Args:
        bootstrap_servers: see :func:`.open_consumer`.
        topics: the name of a topic, or several names.
        config: see :func:`.open_consumer`.
        partitions: the numbers of the partitions to read in each topic; by default, all of them.
        start: where to start in each partition: an offset, a negative number to count back from
            the end, or a time (the first record at or after it). By default, the beginning. An
            offset that the log does not have is moved to the nearest one that it has.
        end: where to stop, exclusive, in the same forms. By default, and at most, the present end.
        network: see :func:`.open_consumer`.
        token_provider: see :func:`.open_consumer`.
        keywords: see :func:`.open_consumer`.

    Raises:
        ApiError: a topic or partition does not exist, with the code ``UNKNOWN_TOPIC_OR_PARTITION``;
            or a broker rejected a request. While records are read, see :meth:`.Consumer.stop_at`.
        CallTimedOutError: there was no response within ``default.api.timeout.ms``.
        ConfigError: see :func:`.open_consumer`; or ``group.id`` is set.
        ValueError: a topic name is empty, or a time has no timezone.
        TypeError: an argument is of the wrong type.
    """
    names = topic_names(topics, is_subscription=False)
    numbers = _numbers(partitions)
    first, stop = place(start, BEGINNING, "start"), place(end, END, "end")
    settings = _settings(config, keywords, token_provider)
    async with open_consumer(bootstrap_servers, settings, network=network) as consumer:
        found = await existing_partitions(consumer, dict.fromkeys(names), numbers)
        await assign_range(consumer, found, first, stop)
        yield consumer


async def read_topic(
    bootstrap_servers: str | Iterable[str],
    topic: str,
    config: Mapping[str, object] | ConsumerSettings | None = None,
    *,
    partitions: Iterable[int] = (),
    start: int | datetime | None = None,
    end: int | datetime | None = None,
    network: Network = SYSTEM,
    token_provider: TokenProvider | None = None,
    **keywords: Unpack[ConsumerKeywords],
) -> list[ConsumerRecord]:
    """Return the records of a topic from its beginning to its present end.

    All of them are held in memory; :func:`open_reader` reads topics of any size.

    Args:
        bootstrap_servers: see :func:`.open_consumer`.
        topic: the name of the topic.
        config: see :func:`.open_consumer`.
        partitions: see :func:`open_reader`.
        start: see :func:`open_reader`.
        end: see :func:`open_reader`.
        network: see :func:`.open_consumer`.
        token_provider: see :func:`.open_consumer`.
        keywords: see :func:`.open_consumer`.

    Returns:
        The records, ordered by partition and offset.

    Raises:
        CorruptRecordError: a record cannot be read.
        TrionetError: see :func:`open_reader`.

    Cancellation: safe at any point.
    """
    found: list[ConsumerRecord] = []
    async with open_reader(
        bootstrap_servers,
        topic,
        config,
        partitions=partitions,
        start=start,
        end=end,
        network=network,
        token_provider=token_provider,
        **keywords,
    ) as reader:
        async for batch in reader.batches():
            found += batch
    found.sort(key=attrgetter("partition", "offset"))
    return found


def _numbers(partitions: Iterable[int]) -> set[int]:
    if not isinstance(partitions, Iterable):
        raise TypeError(
            f"invalid partitions {partitions!r}: expected partition numbers, such as [0, 1]"
        )
    return {integer("a number in partitions", each) for each in partitions}


def _settings(
    config: Mapping[str, object] | ConsumerSettings | None,
    keywords: Mapping[str, object],
    token_provider: TokenProvider | None,
) -> ConsumerSettings:
    if not isinstance(config, ConsumerSettings):
        config = {**_DEFAULTS, **(config or {})}
    settings = consumer_settings(config, keywords, token_provider)
    if settings.group is not None:
        raise ConfigError(
            f"group.id = {settings.group.group_id!r} has no effect when a topic is read to its"
            " end without a group; leave it out, or use open_consumer() to consume in a group"
        )
    return settings
