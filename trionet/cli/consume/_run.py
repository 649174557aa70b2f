"""What ``trionet consume`` does once it is known what is wanted."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import attrs
import trio

from trionet._util._counted import counted
from trionet._util._single_error import raise_single_error
from trionet.client._topic_partition import TopicPartition
from trionet.client.consumer._open_consumer import open_consumer
from trionet.errors import CallTimedOutError, CorruptRecordError, TrionetError

from ..clients._connection_errors import unreached
from ..records._packing import PackError
from ..terminal._pipes import widen, write_all
from ..terminal._progress import Progress, keep_showing
from ..terminal._signals import SIGNALS, Stop, watch_signals
from ._bounds import Ends, NoSuchTopicError, bounds, chosen_partitions, outside, part
from ._ranges import From, Span

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin
    from trionet.client.consumer._consumer import Consumer
    from trionet.client.consumer.records._record import ConsumerBatch

OUTPUT: Final = 1
#: Between two looks at whether the end is reached, while no records come.
IDLE_SECONDS: Final = 0.05
#: So long what is being written may take after a signal, before it is given up.
LAST_WRITE_SECONDS: Final = 1.0


@attrs.frozen(kw_only=True)
class Consumption:
    """What is wanted.

    Attributes:
        servers: where to begin.
        settings: of the consumer.
        admin_settings: of a client that lists topics, for patterns.
        topics: names; or patterns, with ``is_pattern``.
        is_pattern: whether they are patterns.
        partitions: their numbers; empty means all.
        group: whether a group divides the partitions.
        span: what is read of each partition.
        stops: whether it ends where the logs end.
        records_max: so many are read; None for all.
        keeps_going: whether a record that cannot be read is left out.
        render: makes text of records.
        known_seconds: how long a first answer may take.
        tells_lag: whether the lag of each partition is told at the end.
        progress: counts.
        shows_bar: whether a bar or lines tell of progress; None if nothing does.
        is_quiet: whether only errors are told.
        tell: writes a line for people.
    """

    servers: str
    settings: dict[str, object]
    admin_settings: dict[str, object]
    topics: Sequence[str]
    is_pattern: bool
    partitions: Collection[int]
    group: bool
    span: Span
    stops: bool
    records_max: int | None
    keeps_going: bool
    render: Callable[[ConsumerBatch], bytes]
    known_seconds: float
    tells_lag: bool
    progress: Progress
    shows_bar: bool | None
    is_quiet: bool
    tell: Callable[[str], None]


async def consume(wanted: Consumption) -> int:
    """Write what is read; returns the exit status."""
    stop = Stop()
    run = _Run(wanted, stop)
    wanted.progress.begin()
    with raise_single_error(), trio.open_signal_receiver(*SIGNALS) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch_signals, signals, stop, nursery.cancel_scope)
            if wanted.shows_bar is not None:
                nursery.start_soon(_show, wanted, wanted.shows_bar)
            await run.run()
            nursery.cancel_scope.cancel(reason="all is read")
    if not wanted.is_quiet:
        wanted.tell(wanted.progress.line())
    return run.failed or stop.status


async def _show(wanted: Consumption, is_bar: bool) -> None:
    await keep_showing(wanted.progress, wanted.tell, is_bar=is_bar)


class OutputStalledError(TrionetError):
    """After a signal, whoever reads the output took no more of it."""


class UnreadableError(TrionetError):
    """A key or a value is not of the type that was asked for."""


class _Made(NamedTuple):
    """What was made of records of a batch.

    Attributes:
        text: what is written.
        taken: how many of the batch are done with then.
        records: how many of those are in the text; the others could not be read.
        error: why the next one cannot be read; None if it was not tried.
    """

    text: bytes
    taken: int
    records: int
    error: UnreadableError | None = None


class _Run:
    """One run of the command.

    Attributes:
        failed: 1 if a record could not be read, else 0.
    """

    def __init__(self, wanted: Consumption, stop: Stop) -> None:
        self._wanted = wanted
        self._stop = stop
        self._left = wanted.records_max
        self._ends: Ends | None = None
        self._is_assigned = False
        self.failed = 0

    async def run(self) -> None:
        """Read and write until the end, a signal, or an error."""
        wanted = self._wanted
        widen(OUTPUT)
        with self._stop.ending_waits() as begun:
            topics = await self._topics()
        if begun.cancelled_caught:
            return
        async with open_consumer(
            wanted.servers,
            wanted.settings,
            topics=self._subscription(topics),
            on_assigned=self._assigned,
        ) as consumer:
            with self._stop.ending_waits():
                if wanted.group:
                    await self._look_for(consumer, topics)
                else:
                    await self._assign(consumer, topics)
            if self._stop.number is None:
                await self._read(consumer)
            if wanted.tells_lag:
                self._tell_lag(consumer)

    def _subscription(self, topics: Sequence[str]) -> Sequence[str] | re.Pattern[str] | None:
        """What a group subscribes to; None without one."""
        if not self._wanted.group:
            return None
        if self._wanted.is_pattern:
            return re.compile("|".join(f"(?:{each})" for each in topics))
        return topics

    def _assigned(self, _partitions: Collection[TopicPartition]) -> None:
        self._is_assigned = True

    async def _topics(self) -> Sequence[str]:
        """The names of topics; of a group's pattern, the patterns themselves."""
        await trio.lowlevel.checkpoint()
        wanted = self._wanted
        if not wanted.is_pattern:
            return wanted.topics
        from trionet.client.admin._opening import open_admin  # it is large, and hardly ever needed

        patterns = [re.compile(each) for each in wanted.topics]
        found: list[str] = []
        async with open_admin(wanted.servers, wanted.admin_settings) as admin:
            with trio.move_on_after(wanted.known_seconds) as late:
                names = await admin.list_topics()
                found = [name for name in sorted(names) if any(p.fullmatch(name) for p in patterns)]
            if late.cancelled_caught:
                raise self._unreached(admin)
        if not found and (wanted.stops or not wanted.group):
            raise NoSuchTopicError(f"no topic matches {' or '.join(wanted.topics)}")
        return wanted.topics if wanted.group else found

    def _unreached(self, client: Admin | Consumer) -> CallTimedOutError:
        wanted = self._wanted
        return unreached(wanted.servers, wanted.known_seconds, client, longer="-m")

    async def _look_for(self, consumer: Consumer, topics: Sequence[str]) -> None:
        """A group waits for topics that may still come, but not for an address that is wrong."""
        await trio.lowlevel.checkpoint()
        wanted = self._wanted
        if wanted.is_pattern:
            return  # they were looked for to find out which match
        missing: list[str] = []
        with trio.move_on_after(wanted.known_seconds) as late:
            await trio.lowlevel.checkpoint()
            missing = [topic for topic in topics if not await consumer.partitions_of(topic)]
        if late.cancelled_caught:
            raise self._unreached(consumer)
        if missing and wanted.stops:
            raise NoSuchTopicError(f"there is no topic {missing[0]}")

    async def _assign(self, consumer: Consumer, topics: Sequence[str]) -> None:
        wanted = self._wanted
        with trio.move_on_after(wanted.known_seconds) as late:
            partitions = await chosen_partitions(consumer, topics, wanted.partitions)
            found = await bounds(consumer, partitions, wanted.span, stops=wanted.stops)
            firsts = await consumer.beginning_offsets(partitions)
        if late.cancelled_caught:
            raise self._unreached(consumer)
        consumer.assign(partitions)
        for each, its in found.items():
            if its.start is not None:
                consumer.seek(each, its.start)
            if text := outside(wanted.span, each, its, firsts[each]):
                wanted.tell(text)
        self._ends = Ends.of(found)
        if self._ends is not None:
            consumer.pause(*(each for each in partitions if each not in self._ends.left))
            if wanted.span.start.base is not From.STORED:
                wanted.progress.records_total = sum(
                    end - (found[each].start or 0) for each, end in self._ends.left.items()
                )

    # Reading.

    async def _read(self, consumer: Consumer) -> None:
        await trio.lowlevel.checkpoint()
        while self._stop.number is None and self._left != 0:
            try:
                batch = await self._next(consumer)
            except CorruptRecordError as error:
                if not self._wanted.keeps_going:
                    raise
                self.failed = 1
                self._wanted.tell(str(error))
                consumer.seek(TopicPartition(error.topic, error.partition), error.offset + 1)
                continue
            if batch is None:
                return
            count = len(batch) if self._ends is None else self._ends.count(batch)
            made = self._made(part(batch, 0, count))
            await self._write(batch, made)
            partition = batch.topic_partition
            if made.taken < len(batch):  # only now: what was not written is not finished
                consumer.seek(partition, batch.offsets[made.taken])
            if made.error is not None:
                raise made.error
            if self._ends is not None and partition not in self._ends.left:
                consumer.pause(partition)

    async def _next(self, consumer: Consumer) -> ConsumerBatch | None:
        """The next batch; None at the end, and after a signal."""
        await trio.lowlevel.checkpoint()
        with self._stop.ending_waits():
            while not self._is_over(consumer):
                with trio.move_on_after(IDLE_SECONDS if self._ends_somewhere else float("inf")):
                    return await consumer.next_batch()
        return None

    @property
    def _ends_somewhere(self) -> bool:
        return self._ends is not None or (self._wanted.group and self._wanted.stops)

    def _is_over(self, consumer: Consumer) -> bool:
        if self._ends is not None:
            self._ends.look(consumer.position)
            return not self._ends.left
        if not (self._wanted.group and self._wanted.stops and self._is_assigned):
            return False
        return all(consumer.lag(each) == 0 for each in consumer.assignment)

    def _made(self, batch: ConsumerBatch) -> _Made:
        """The text of as many of these records as are wanted still."""
        wanted = batch if self._left is None else part(batch, 0, self._left)
        try:
            return _Made(self._wanted.render(wanted), len(wanted), len(wanted))
        except PackError:
            return self._made_one_by_one(batch)

    def _made_one_by_one(self, batch: ConsumerBatch) -> _Made:
        """The same where some cannot be read: up to the first of those, or without them."""
        texts: list[bytes] = []
        for place, offset in enumerate(batch.offsets):
            if len(texts) == self._left:
                return _Made(b"".join(texts), place, len(texts))
            try:
                texts.append(self._wanted.render(part(batch, place, place + 1)))
            except PackError as cause:
                where = f"{batch.topic} [{batch.partition}] at offset {offset}"
                error = UnreadableError(f"{where}: {cause}")
                if not self._wanted.keeps_going:
                    return _Made(b"".join(texts), place, len(texts), error)
                self.failed = 1
                self._wanted.tell(str(error))
        return _Made(b"".join(texts), len(batch), len(texts))

    async def _write(self, batch: ConsumerBatch, made: _Made) -> None:
        with self._stop.ending_waits(LAST_WRITE_SECONDS) as waiting:
            await write_all(OUTPUT, made.text)
        if waiting.cancelled_caught:
            raise OutputStalledError(
                f"nobody reads the output: {counted(made.taken, 'record')} from offset "
                f"{batch.offsets[0]} of {batch.topic} [{batch.partition}] on may not have been "
                "written"
            )
        self._wanted.progress.records += made.records
        self._wanted.progress.size += len(made.text)
        if self._left is not None:
            self._left -= made.records

    def _tell_lag(self, consumer: Consumer) -> None:
        for each in sorted(consumer.assignment):
            lag = consumer.lag(each)
            behind = "how far behind is not known" if lag is None else f"{lag:,} behind"
            self._wanted.tell(
                f"{each.topic} [{each.partition}] at {consumer.position(each)}, {behind}"
            )
