"""Implements ``trionet consume``: reads topics and writes the records to standard output."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import attrs
import trio

from trionet._util._text import counted
from trionet.client._topic_partition import TopicPartition
from trionet.client.consumer._open_consumer import open_consumer
from trionet.client.consumer._range import END, assign_range, existing_partitions, unknown_topic
from trionet.errors import CallTimedOutError, CorruptRecordError, TrionetError

from ..arguments._topic_partitions import assignment_text
from ..arguments._values import matching
from ..clients._first_response import Client, connect, timeout_error
from ..records._packing import PackError
from ..terminal._pipes import widen, write_all
from ..terminal._progress import Progress, run_showing
from ..terminal._signals import Stop
from ._range import Span, outside, part

if TYPE_CHECKING:
    from trionet.client.consumer._consumer import Consumer
    from trionet.client.consumer._range import Place
    from trionet.client.consumer.records._record import ConsumerBatch

OUTPUT: Final = 1
#: The interval at which an idle consumer checks whether the end has been reached.
IDLE_SECONDS: Final = 0.05
#: The time limit for a pending write after a signal.
LAST_WRITE_SECONDS: Final = 1.0


@attrs.frozen(kw_only=True)
class ConsumeOptions:
    """The options of ``trionet consume``.

    Attributes:
        servers: the bootstrap servers.
        settings: the settings of the consumer.
        admin_settings: the settings of the admin client that lists topics for patterns.
        topics: the topic names, or patterns.
        is_pattern: whether the topics are patterns.
        partitions: the partition numbers; empty for all.
        group: the group that assigns the partitions; None to read without a group.
        span: the range to read in each partition.
        stops: whether to stop at the current end offsets.
        records_max: the maximum number of records to read; None for all.
        keeps_going: whether to skip records that cannot be decoded.
        render: formats a batch of records.
        timeout_seconds: the time limit for the first response.
        waits: whether to wait that long even if nothing listens there.
        shows_lag: whether to report the lag of each partition at the end.
        progress: the counts.
        shows_bar: whether to show progress as a bar (True) or as lines (False); None for neither.
        is_quiet: whether to report only errors.
        report: prints a message.
    """

    servers: str
    settings: dict[str, object]
    admin_settings: dict[str, object]
    topics: Sequence[str]
    is_pattern: bool
    partitions: Collection[int]
    group: str | None
    span: Span
    stops: bool
    records_max: int | None
    keeps_going: bool
    render: Callable[[ConsumerBatch], bytes]
    timeout_seconds: float
    waits: bool
    shows_lag: bool
    progress: Progress
    shows_bar: bool | None
    is_quiet: bool
    report: Callable[[str], None]


async def consume(options: ConsumeOptions) -> int:
    """Read and write records, and return the exit status."""
    stop = Stop()
    run = _Run(options, stop)
    try:
        await run_showing(run.run, stop, options.progress, options.report, is_bar=options.shows_bar)
    except BrokenPipeError:
        if not run.failed:
            raise
        return run.failed  # skipped records are known although the reader has exited
    if not options.is_quiet:
        options.report(options.progress.line())
    return run.failed or stop.status


class OutputStalledError(TrionetError):
    """Raised when standard output stays blocked after a signal."""


class UnreadableError(TrionetError):
    """Raised when a key or a value cannot be decoded as the requested type."""


class _Rendered(NamedTuple):
    """The rendered records of a batch.

    Attributes:
        text: the output.
        done: the number of processed records of the batch, including skipped records.
        records: the number of records in the text.
        error: why the next record cannot be decoded; None if rendering did not stop early.
    """

    text: bytes
    done: int
    records: int
    error: UnreadableError | None = None


class _Run:
    """One run of the command.

    Attributes:
        failed: 1 if a corrupt or undecodable record was skipped, otherwise 0.
    """

    def __init__(self, options: ConsumeOptions, stop: Stop) -> None:
        self._options = options
        self._stop = stop
        self._left = options.records_max
        self._is_assigned = False
        self.failed = 0

    async def run(self) -> None:
        """Read and write until the end, a signal, or an error."""
        options = self._options
        widen(OUTPUT)
        with self._stop.ending_waits() as begun:
            topics = await self._topics()
        if begun.cancelled_caught:
            return
        async with open_consumer(
            options.servers,
            options.settings,
            topics=self._subscription(topics),
            on_assigned=self._assigned,
            on_revoked=partial(self._report_of_group, "revoked"),
            on_lost=partial(self._report_of_group, "lost"),
        ) as consumer:
            with self._stop.ending_waits():
                if options.group is not None:
                    await self._check_topics(consumer, topics)
                else:
                    await self._assign(consumer, topics)
            if self._stop.number is None:
                if options.group is not None and not options.is_quiet:
                    options.report(f"waiting for group {options.group} to assign partitions")
                await self._read(consumer)
            if options.shows_lag:
                self._report_lag(consumer)

    def _subscription(self, topics: Sequence[str]) -> Sequence[str] | re.Pattern[str] | None:
        """Return the subscription of the group, or None without a group."""
        if self._options.group is None:
            return None
        if self._options.is_pattern:
            return re.compile("|".join(f"(?:{each})" for each in topics))
        return topics

    def _assigned(self, partitions: Collection[TopicPartition]) -> None:
        self._is_assigned = True
        self._report_of_group("assigned", partitions)

    def _report_of_group(self, verb: str, partitions: Collection[TopicPartition]) -> None:
        if not self._options.is_quiet:
            named = assignment_text(partitions) or "no partitions"
            self._options.report(f"group {self._options.group} {verb} {named}")

    async def _topics(self) -> Sequence[str]:
        """Return the topic names, or the patterns themselves if a group subscribes to them."""
        await trio.lowlevel.checkpoint()
        options = self._options
        if not options.is_pattern:
            return options.topics
        from trionet.client.admin._admin import open_admin  # slow to import, rarely needed

        found: list[str] = []
        async with open_admin(options.servers, options.admin_settings) as admin:
            with trio.move_on_after(options.timeout_seconds) as late:
                await self._connect(admin)
                found = matching(options.topics, await admin.list_topics())
            if late.cancelled_caught:
                raise self._timeout_error(admin)
        if not found and (options.stops or options.group is None):
            raise unknown_topic(f"no topic matches {' or '.join(options.topics)}")
        return found if options.group is None else options.topics

    async def _connect(self, client: Client) -> None:
        await connect(client, option="-m 60", waits=self._options.waits)

    def _timeout_error(self, client: Client) -> CallTimedOutError:
        options = self._options
        return timeout_error(options.servers, options.timeout_seconds, client, option="-m")

    async def _check_topics(self, consumer: Consumer, topics: Sequence[str]) -> None:
        """Check that a broker is reachable and, if reading stops at the end, that topics exist.

        Otherwise, missing topics may be created later.
        """
        await trio.lowlevel.checkpoint()
        options = self._options
        if options.is_pattern:
            return  # already checked when the patterns were resolved
        missing: list[str] = []
        with trio.move_on_after(options.timeout_seconds) as late:
            await self._connect(consumer)
            missing = [each for each in topics if not await consumer.partitions_of(each)]
        if late.cancelled_caught:
            raise self._timeout_error(consumer)
        if missing and options.stops:
            raise unknown_topic(f"topic {missing[0]} does not exist")

    async def _assign(self, consumer: Consumer, topics: Sequence[str]) -> None:
        options = self._options
        with trio.move_on_after(options.timeout_seconds) as late:
            await self._connect(consumer)
            partitions = await existing_partitions(consumer, topics, options.partitions)
            found = await assign_range(consumer, partitions, options.span.start, self._end())
        if late.cancelled_caught:
            raise self._timeout_error(consumer)
        for each, its in found.items():
            if text := outside(options.span, each, its):
                options.report(text)
        # The number of records is not known if reading starts at committed offsets.
        sizes = [each.size for each in found.values() if each.size is not None]
        if len(sizes) == len(found):
            options.progress.records_total = sum(sizes)

    def _end(self) -> Place | None:
        """Return where to stop; None to read on."""
        options = self._options
        return END if options.span.end is None and options.stops else options.span.end

    # Reading.

    async def _read(self, consumer: Consumer) -> None:
        await trio.lowlevel.checkpoint()
        while self._stop.number is None and self._left != 0:
            try:
                batch = await self._next(consumer)
            except CorruptRecordError as error:
                if not self._options.keeps_going:
                    raise
                self.failed = 1
                self._options.report(str(error))
                consumer.seek(TopicPartition(error.topic, error.partition), error.offset + 1)
                continue
            if batch is None:
                return
            rendered = self._render(batch)
            await self._write(batch, rendered)
            if rendered.done < len(batch):  # after the write, so that no unwritten record commits
                consumer.seek(batch.topic_partition, batch.offsets[rendered.done])
            consumer._finish()  # noqa: SLF001 -- of this package; it may be the last
            if rendered.error is not None:
                raise rendered.error

    async def _next(self, consumer: Consumer) -> ConsumerBatch | None:
        """Return the next batch, or None at the end of the range or after a signal."""
        await trio.lowlevel.checkpoint()
        # The end for a group is known only by the lag, which may become zero without a record.
        idle_seconds = IDLE_SECONDS if self._stops_by_lag else float("inf")
        with self._stop.ending_waits():
            while not (self._stops_by_lag and self._has_no_lag(consumer)):
                with trio.move_on_after(idle_seconds):
                    return await anext(consumer.batches(), None)
        return None

    @property
    def _stops_by_lag(self) -> bool:
        return self._options.group is not None and self._options.stops

    def _has_no_lag(self, consumer: Consumer) -> bool:
        return self._is_assigned and all(consumer.lag(each) == 0 for each in consumer.assignment)

    def _render(self, batch: ConsumerBatch) -> _Rendered:
        """Render the records of a batch, up to the remaining ``--count``."""
        records = batch if self._left is None else part(batch, 0, self._left)
        try:
            return _Rendered(self._options.render(records), len(records), len(records))
        except PackError:
            return self._render_one_by_one(batch)

    def _render_one_by_one(self, batch: ConsumerBatch) -> _Rendered:
        """Render records up to the first undecodable one, or skip undecodable records with -E."""
        texts: list[bytes] = []
        for place, offset in enumerate(batch.offsets):
            if len(texts) == self._left:
                return _Rendered(b"".join(texts), place, len(texts))
            try:
                texts.append(self._options.render(part(batch, place, place + 1)))
            except PackError as cause:
                where = f"{batch.topic} [{batch.partition}] at offset {offset}"
                error = UnreadableError(f"{where}: {cause}")
                if not self._options.keeps_going:
                    return _Rendered(b"".join(texts), place, len(texts), error)
                self.failed = 1
                self._options.report(str(error))
        return _Rendered(b"".join(texts), len(batch), len(texts))

    async def _write(self, batch: ConsumerBatch, rendered: _Rendered) -> None:
        with self._stop.ending_waits(LAST_WRITE_SECONDS) as waiting:
            await write_all(OUTPUT, rendered.text)
        if waiting.cancelled_caught:
            raise OutputStalledError(
                f"the output is not being read: {counted(rendered.done, 'record')} starting at "
                f"offset {batch.offsets[0]} of {batch.topic} [{batch.partition}] may not have been "
                "written"
            )
        self._options.progress.records += rendered.records
        self._options.progress.size += len(rendered.text)
        if self._left is not None:
            self._left -= rendered.records

    def _report_lag(self, consumer: Consumer) -> None:
        for each in sorted(consumer.assignment):
            lag = consumer.lag(each)
            shown = "unknown" if lag is None else f"{lag:,}"
            self._options.report(
                f"{each.topic} [{each.partition}] at {consumer.position(each)}, lag {shown}"
            )
