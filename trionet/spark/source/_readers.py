"""The readers that Spark calls, for batch and streaming queries. Imports pyspark.

The readers are pickled for the tasks. Modules needed only by a task for reading (pyarrow, numpy)
are imported where they are used: Spark starts one process for planning and others for reading.

A stream is planned in micro-batches (the connector: KafkaMicroBatchStream). Spark's checkpoint
records the end of each micro-batch, but not the start of the first. The connector therefore writes
the initial offsets to its own file in the checkpoint, but a Python source does not know the path of
the checkpoint. Instead, the end of the first micro-batch also names the start of the query (see
:func:`.with_start`). Recomputing the start after a failure is not an alternative: "latest" would
have advanced, and so may "earliest", without a trace of the records in between.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final, TypeVar, TypeVarTuple

import attrs
import trio
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from ..._util._logging import get_logger
from ...client._topic_partition import TopicPartition
from ...errors import TrionetError
from ...protocol._config_types import LONG_MAX
from .._offset_limits import (
    EARLIEST,
    LATEST,
    DataLossError,
    OffsetChangedError,
    Offsets,
    PlainOffsets,
    SpecificOffsets,
    from_plain,
    start_in,
    to_plain,
    with_start,
)
from .._options import SourceOptions
from .._planning import OffsetRange, TriggerDelay, rate_limited, stream_plan, verify_available_now
from .._sentence_first import put_first, sentence_first
from ._offset_reader import OffsetReader, batch_ranges, on_driver

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

logger = get_logger("trionet.spark")

#: Spark requests the latest offsets about fifty times a second; the cluster is queried less often.
LATEST_INTERVAL_SECONDS: Final = 0.05

#: Only a file in the checkpoint, which a Python source cannot find, records the start of a query of
#: the connector.
_START_UNKNOWN: Final = (
    "the first micro-batch of this query is repeated as an empty one, since startingOffsets is"
    " latest; if the query was started by Spark's Kafka connector, stop it and set startingOffsets"
    " to the last line of the file sources/0/0 in its checkpoint"
)


class MicroBatches:
    """Plans the micro-batches of one run of a query.

    Args:
        options: the options of the source.
        reader: queries the cluster.
    """

    def __init__(self, options: SourceOptions, reader: OffsetReader) -> None:
        self._options = options
        self._reader = reader
        self._initial: Offsets | None = None
        # Whether the initial offsets were latest, and so cannot be determined a second time.
        self._is_initial_latest = False
        # The partitions that start with the earliest record, or the earliest at or after a time.
        self._from_earliest: set[TopicPartition] = set()
        # Whether the run ends where it first finds the ends (Trigger.AvailableNow), and where.
        self._ends_at_first = False
        self._last_end: Offsets | None = None
        self._ends: Offsets | None = None
        self._queried_at = float("-inf")
        # The topics of this run, and the last known ids (KIP-516) of those of which it holds
        # offsets. A topic that is deleted keeps its id, by which it is recognized as recreated.
        self._topics: set[str] = set()
        self._topic_ids: dict[str, bytes] = {}
        self._has_planned = False
        # The end of the micro-batch that an earlier run has planned and this one repeats.
        self._repeated_end: Offsets | None = None
        min_offsets = options.min_offsets_per_trigger
        self._delay = (
            None
            if min_offsets is None
            else TriggerDelay(min_offsets, options.max_trigger_delay_seconds)
        )

    @property
    def ends(self) -> Offsets | None:
        """The ends of the partitions when they were last queried; None before the first query."""
        return self._ends

    @property
    def is_first(self) -> bool:
        """Whether :meth:`end` is about to plan the first micro-batch of the query."""
        return self._initial is not None and not self._has_planned

    def fix_end(self) -> None:
        """End the run where the first :meth:`end` finds the ends (``Trigger.AvailableNow``).

        As in the connector, that is after the start is known, and so is never before it.
        """
        self._ends_at_first = True

    async def initial(self) -> Offsets:
        """Return the start offsets of a new query; repeated calls return the same offsets.

        Raises:
            OffsetsMismatchError: the specified offsets or timestamps do not match the partitions
                that the query reads, or there is no record at or after a starting timestamp.
            TrionetError: the cluster cannot be queried.
        """
        if self._initial is not None:
            await trio.lowlevel.checkpoint()
            return self._initial
        starting = self._options.starting
        offsets = await self._reader.limit(starting, await self._partitions(), is_start=True)
        self._is_initial_latest = LATEST in offsets.values()
        is_specific = isinstance(starting, SpecificOffsets)
        self._from_earliest = {
            each
            for each, offset in offsets.items()
            if offset == EARLIEST or (offset >= 0 and not is_specific)
        }
        self._initial = await self._reader.resolved(offsets)
        return self._initial

    async def end(self, start: Offsets, is_only: bool) -> Offsets:
        """Return the end offsets of the next micro-batch; ``start`` if it is to be empty.

        Args:
            start: the start offsets of the micro-batch.
            is_only: whether the micro-batch is the only one of its run (``Trigger.Once``); it then
                has no size limits.

        Raises:
            DataLossError: a topic has been recreated, and ``failOnDataLoss`` is true.
            TrionetError: the cluster cannot be queried.
        """
        self._topics |= {each.topic for each in start}
        self._has_planned = True
        self._forget_topics_without_offsets(start)
        ends = await self._latest(start)
        if is_only:
            return ends
        earliest = await self._starts_of_new(start, ends)
        is_complete = self._last_end is not None  # no more records will be added to the run
        if self._delay is not None and not is_complete:
            now = trio.current_time()
            if self._delay.waits(start, ends, earliest, now):
                return start
        limit = self._options.max_offsets_per_trigger
        return ends if limit is None else rate_limited(limit, start, ends, earliest)

    async def ranges(
        self, start: Offsets, end: Offsets, stored_start: Offsets | None
    ) -> list[OffsetRange]:
        """Return the range of each task of a micro-batch.

        Args:
            start: the start offsets of the micro-batch.
            end: the end offsets of the micro-batch.
            stored_start: the start that the end of the query's first micro-batch names; None for
                the others, and for one that the connector has planned.

        Raises:
            DataLossError: records have been deleted, and ``failOnDataLoss`` is true.
            OffsetsMismatchError: the micro-batch does not match the end of a run with
                ``Trigger.AvailableNow``.
            TrionetError: the cluster cannot be queried.
        """
        if not self._has_planned:  # Spark found it in the log of its checkpoint
            self._has_planned, self._repeated_end = True, end
        is_repeated = end == self._repeated_end
        if stored_start is not None:
            start = stored_start
        elif is_repeated and self._initial is not None:
            # The connector's first micro-batch is repeated. Its start was determined again, and may
            # now be later than its end, or have other partitions.
            start = {each: min(start[each], end[each]) for each in start.keys() & end.keys()}
            if self._is_initial_latest:
                logger.warning("%s", _START_UNKNOWN)
        if self._last_end is not None and not is_repeated and start != end:
            verify_available_now(end, self._last_end, await self._latest_of_all())
        earliest = await self._starts_of_new(start, end)
        gone = start.keys() - end.keys()
        ranges, losses = stream_plan(
            start,
            end,
            earliest,
            min_partitions=self._options.min_partitions,
            max_records=self._options.max_records_per_partition,
            topic_ids=self._reader.topic_ids,
            dropped=gone.difference(self._options.subscription.select(gone)),
        )
        for loss in losses:
            self._report(loss)
        if stored_start is None or is_repeated:  # an earlier run may have read its records
            return ranges
        return [
            attrs.evolve(each, may_start_late=each.topic_partition in self._from_earliest)
            for each in ranges
        ]

    async def _latest(self, start: Offsets) -> Offsets:
        if self._last_end is not None:
            await trio.lowlevel.checkpoint()
            return self._last_end
        await trio.sleep_until(self._queried_at + LATEST_INTERVAL_SECONDS)
        self._ends = await self._latest_of_all(start)
        self._queried_at = trio.current_time()
        if self._ends_at_first:
            self._last_end = self._ends
        return self._ends

    async def _latest_of_all(self, known: Offsets | None = None) -> Offsets:
        return await self._reader.latest(await self._partitions(), known)

    async def _partitions(self) -> list[TopicPartition]:
        """Return the current partitions, without deleted ones; report recreated topics."""
        partitions = await self._reader.partitions(self._topics)
        found = self._reader.topic_ids
        for topic in sorted(found.keys() & self._topic_ids.keys()):
            if found[topic] != self._topic_ids[topic]:
                self._report(
                    OffsetChangedError(
                        f"the topic {topic} was recreated while the query was running, and the"
                        " query continues at its offsets in the old topic"
                    )
                )
        self._topic_ids |= found
        self._topics |= {each.topic for each in partitions}
        return partitions

    def _forget_topics_without_offsets(self, start: Offsets) -> None:
        """Forget the ids of topics of which the run holds no offsets: they may be recreated."""
        held = {each.topic for each in start.keys() | (self._last_end or {}).keys()}
        self._topic_ids = {topic: id for topic, id in self._topic_ids.items() if topic in held}

    def _report(self, loss: DataLossError) -> None:
        """Raise a data loss, or log it if ``failOnDataLoss`` is false."""
        if self._options.fail_on_data_loss:
            raise loss
        logger.warning("%s", loss)

    async def _starts_of_new(
        self, start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]
    ) -> Offsets:
        new = end.keys() - start.keys()
        if not new:
            await trio.lowlevel.checkpoint()
            return {}
        return await self._reader.earliest(new)


class BatchReader(DataSourceReader):
    """Plans a batch on the driver; pickled copies read it in the tasks.

    Spark plans once per ``load()``. Each task resolves earliest and latest again, so that reading
    a table again includes the records that have arrived in the meantime.

    Args:
        options: the options of the source.
    """

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        """Return one partition per task, with its range of offsets."""
        reader = OffsetReader(self._options)
        ranges = on_driver(self._options, batch_ranges, self._options, reader)
        return [InputPartition(each) for each in ranges]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Read the records of one range; called in a task."""
        from ._range_reader import read_partition

        return read_partition(self._options, partition)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches on the driver; pickled copies read them in the tasks.

    Args:
        options: the options of the source.
    """

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    @cached_property
    def _run(self) -> MicroBatches:
        """The planner of this run; created only on the driver, because it cannot be pickled."""
        return MicroBatches(self._options, OffsetReader(self._options))

    @sentence_first()
    def _call(self, afn: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
        return on_driver(self._options, afn, *args)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """End the run at the ends that the first :meth:`latestOffset` finds."""
        self._run.fix_end()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the read limit, which Spark only shows in the plan.

        The limit is never ``ReadAllAvailable``, by which :meth:`latestOffset` recognizes
        ``Trigger.Once``. No class of Spark combines minimum, maximum and delay. The options apply
        in any case.
        """
        if self._options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        if self._options.min_offsets_per_trigger is not None:
            return ReadMinRows(self._options.min_offsets_per_trigger)
        return ReadMaxRows(LONG_MAX)

    def initialOffset(self) -> PlainOffsets:  # noqa: N802
        """Return the start offsets of a new query."""
        return to_plain(self._call(self._run.initial))

    def latestOffset(self, start: PlainOffsets, limit: ReadLimit) -> PlainOffsets:  # noqa: N802
        """Return the end offsets of the next micro-batch: ``start`` itself if it would be empty.

        Spark runs the first one in any case; its end names its start.
        """
        is_first = self._run.is_first
        is_only = isinstance(limit, ReadAllAvailable)
        offsets = from_plain(start)
        end = self._call(self._run.end, offsets, is_only)
        if is_first:
            return with_start(end, offsets)
        return start if end == offsets else to_plain(end)

    def reportLatestOffset(self) -> PlainOffsets | None:  # noqa: N802
        """Return the ends that :meth:`latestOffset` last found, without querying the cluster."""
        ends = self._run.ends
        return None if ends is None else to_plain(ends)

    def partitions(self, start: PlainOffsets, end: PlainOffsets) -> list[InputPartition]:
        """Return one partition per task of a micro-batch, with its range of offsets."""
        # The end stays the position of the query until there are new records.
        stored_start = start_in(end) if start_in(start) is None else None
        offsets = from_plain(start), from_plain(end)
        ranges = self._call(self._run.ranges, *offsets, stored_start)
        return [InputPartition(each) for each in ranges]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Read the records of one range; called in a task."""
        from ._range_reader import read_partition

        return read_partition(self._options, partition)

    def commit(self, end: PlainOffsets) -> None:
        """Do nothing: Spark stores the offsets, so none are committed to the cluster."""

    def stop(self) -> None:
        """Do nothing: Spark ends the process, which closes all connections."""


class InvalidStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Raises an error from each method that plans a stream.

    ``python_streaming_source_runner`` calls ``reader.stop()`` even if ``streamReader`` has raised:
    users would see its UnboundLocalError, not what they have to change.

    Args:
        error: the error of the options.
    """

    def __init__(self, error: TrionetError) -> None:
        put_first(error)
        self._error = error

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Raise the error."""
        raise self._error

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Raise the error."""
        raise self._error

    def initialOffset(self) -> PlainOffsets:  # noqa: N802
        """Raise the error."""
        raise self._error

    def latestOffset(self, *_arguments: object) -> PlainOffsets:  # noqa: N802
        """Raise the error."""
        raise self._error

    def partitions(self, *_arguments: object) -> list[InputPartition]:
        """Raise the error."""
        raise self._error

    def read(self, *_arguments: object) -> Iterator[Any]:
        """Raise the error."""
        raise self._error
