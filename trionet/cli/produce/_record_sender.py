"""Sends records through a producer and keeps track of the outcome of each.

The exit status must show whether every record was written, and failures must be reported in the
order of the input. A separate task therefore waits for deliveries in the order in which they were
enqueued, while reading and sending continue. Handling each acknowledgement on arrival would be
simpler, but would report records of different partitions out of order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

import attrs
import trio

from trionet._util._text import counted
from trionet._util._wall_clock import now_ms
from trionet.errors import ApiError, CallTimedOutError, RecordTooLargeError, TrionetError

from ..clients._first_response import connect, is_connected, timeout_error
from ..records._lines import NO_TIMESTAMP, Input, InputError, RecordColumns, Shape
from ..terminal._pipes import write_all
from ..terminal._progress import Progress

if TYPE_CHECKING:
    from trionet.client.consumer.records._record import ConsumerBatch
    from trionet.client.producer._deliveries import Deliveries
    from trionet.client.producer._producer import Producer
    from trionet.client.producer._settings import ProducerSettings

OUTPUT: Final = 1
#: The maximum number of failed records that are reported individually.
REPORTED_MAX: Final = 10


@attrs.frozen(kw_only=True)
class ProduceOptions:
    """The options of ``trionet produce``.

    Attributes:
        servers: the bootstrap servers.
        settings: the settings of the producer.
        topic: the topic for records that do not name one; None if all do.
        partition: the partition for records that do not name one; None to let the partitioner
            choose.
        lines: the files that contain records, where ``-`` is standard input.
        files: the files to send as one record each.
        input: parses records from the input.
        shape: the properties common to all records that are whole files.
        records_max: the maximum number of records to send; None for all.
        keeps_going: whether to continue after a record fails.
        timeout_seconds: the time limit for the topic's metadata.
        waits: whether to wait that long even if nothing listens there.
        tee: the delimiter written after each sent value; None to write no values.
        written: formats acknowledged records; None for no output.
        progress: the counts.
        shows_bar: whether to show progress as a bar (True) or as lines (False); None for neither.
        is_quiet: whether to report only errors.
        report: prints a message.
    """

    servers: str
    settings: ProducerSettings
    topic: str | None
    partition: int | None
    lines: Sequence[str]
    files: Sequence[str]
    input: Input
    shape: Shape
    records_max: int | None
    keeps_going: bool
    timeout_seconds: float
    waits: bool
    tee: bytes | None
    written: Callable[[ConsumerBatch], bytes] | None
    progress: Progress
    shows_bar: bool | None
    is_quiet: bool
    report: Callable[[str], None]


class _InFlight(NamedTuple):
    """Records enqueued in the producer."""

    topic: str
    records: RecordColumns
    deliveries: Deliveries


class RecordSender:
    """Sends records, reporting those that fail and printing those that are written.

    Args:
        producer: the producer to use.
        options: the options of the command.

    Attributes:
        failed: the number of records that failed or whose outcome is unknown.
        unsent: the number of records that were read, but not passed to the producer.
        when_failed: called for each such record, unless ``keeps_going``.
    """

    def __init__(self, producer: Producer, options: ProduceOptions) -> None:
        self._producer = producer
        self._options = options
        self._partitions: dict[str, int] = {}
        self._in_flight: deque[_InFlight] = deque()
        self._reported = 0
        self._is_reporting = False
        self._has_records = trio.Event()
        self._all_done = trio.Event()
        self.when_failed: Callable[[], object] = lambda: None
        self.failed = self.unsent = self._remaining = 0

    @property
    def may_go_on(self) -> bool:
        """Whether to send more records."""
        return self._options.keeps_going or not self.failed

    @property
    def in_flight(self) -> int:
        """The number of records with an unknown outcome."""
        return sum(len(each.deliveries) for each in self._in_flight)

    async def connect(self) -> None:
        """Wait for a broker.

        Raises:
            CallTimedOutError: no broker responded in time.
            TrionetError: every broker refuses the connection, or rejects this client.
        """
        options = self._options
        with trio.move_on_after(options.timeout_seconds) as late:
            await connect(self._producer, option="-m 60", waits=options.waits)
        if late.cancelled_caught:
            raise timeout_error(
                options.servers, options.timeout_seconds, self._producer, option="-m"
            )

    async def look_up(self, topic: str) -> int:
        """Return the number of partitions of a topic, which is cached by the first call.

        Raises:
            CallTimedOutError: no metadata arrived in time.
            TrionetError: the topic name is invalid, or access is denied.
        """
        await trio.lowlevel.checkpoint()
        if topic not in self._partitions:
            with self._within_timeout(
                f"metadata for topic {topic}", "check the address (-b) and the topic name, or"
            ):
                self._partitions[topic] = await self._producer.key_partitions(topic)
        return self._partitions[topic]

    async def init_transactions(self) -> None:
        """Fence other producers with the same ``transactional.id``.

        Raises:
            CallTimedOutError: no coordinator responded in time.
            TrionetError: the producer may have no transactions.
        """
        id = self._options.settings.transactional_id
        with self._within_timeout(f"coordinator of transactional id {id!r}", "wait, or"):
            await self._producer.init_transactions()

    @contextmanager
    def _within_timeout(self, what: str, advice: str) -> Iterator[None]:
        servers, seconds = self._options.servers, self._options.timeout_seconds
        with trio.move_on_after(seconds) as late:
            yield
        if late.cancelled_caught:
            if not is_connected(self._producer):
                raise timeout_error(servers, seconds, self._producer, option="-m")
            raise CallTimedOutError(
                f"no {what} from {servers} within {seconds:g} s: {advice} raise the limit with -m"
            )

    async def send(self, records: RecordColumns) -> int:
        """Enqueue records in the producer.

        Returns:
            The number of accepted records. Records that cannot be sent are reported as failed.

        Raises:
            TrionetError: the producer has failed.

        Cancellation: adds the records that are neither enqueued nor rejected to ``unsent``.
        """
        self._remaining = len(records.values)
        try:
            return await self._send(records)
        except trio.Cancelled:
            self.unsent += self._remaining
            raise

    async def _send(self, records: RecordColumns) -> int:
        await trio.lowlevel.checkpoint()
        topic = self._options.topic if records.topic is None else records.topic
        partition = self._partition_of(records)
        try:
            if not topic:
                raise InputError("no topic")
            count = await self.look_up(topic)
            if partition is not None and partition >= count > 0:
                raise InputError(
                    f"partition {partition} does not exist; topic {topic} has "
                    f"{counted(count, 'partition')}"
                )
        except (ApiError, CallTimedOutError, InputError, ValueError) as error:
            for number in records.numbers:
                self.reject(number, error)
                if not self.may_go_on:
                    break
            return 0
        try:
            await self._enqueue(topic, records)
        except (RecordTooLargeError, ValueError):
            return await self._one_by_one(topic, records)
        return len(records.values)

    def _partition_of(self, records: RecordColumns) -> int | None:
        return self._options.partition if records.partition is None else records.partition

    async def _enqueue(self, topic: str, records: RecordColumns) -> None:
        deliveries = await self._producer.enqueue_batch(
            topic,
            records.values,
            keys=records.keys,
            headers=records.headers,
            partition=self._partition_of(records),
            timestamps=records.timestamps and _timestamps(records.timestamps),
        )
        self._remaining -= len(records.values)
        self._in_flight.append(_InFlight(topic, records, deliveries))
        self._has_records.set()

    async def _one_by_one(self, topic: str, records: RecordColumns) -> int:
        """Send the records of a batch one by one; without ``-E``, stop at the first invalid one."""
        await trio.lowlevel.checkpoint()
        count = 0
        for place in range(len(records.values)):
            try:
                await self._enqueue(topic, records.some(place, place + 1))
                count += 1
            except (RecordTooLargeError, ValueError) as error:
                self._remaining -= 1
                self.reject(records.numbers[place], error)
                if not self.may_go_on:
                    break
        return count

    def reject(self, number: int | None, error: Exception) -> None:
        """Count and report a record that was not sent or not written.

        Args:
            number: the number of the record; None if the error names the record.
            error: the reason for the failure.
        """
        self.failed += 1
        if not self._options.keeps_going:
            self.when_failed()
        if self._reported < REPORTED_MAX:
            self._reported += 1
            self._options.report(str(error) if number is None else f"record {number}: {error}")

    async def finish(self) -> None:
        """Wait until :meth:`watch_outcomes` has processed the outcome of every record.

        Raises:
            TrionetError: the producer has failed.
        """
        await trio.lowlevel.checkpoint()
        failure: TrionetError | None = None
        try:
            await self._producer.flush()
        except TrionetError as error:
            failure = error  # the outcomes are known all the same
        if self._in_flight or self._is_reporting:
            self._all_done = trio.Event()
            await self._all_done.wait()
        if failure is not None:
            raise failure

    async def watch_outcomes(self) -> None:
        """Report failed records and print written records in order, as their outcomes arrive.

        Raises:
            OutputError, BrokenPipeError: the output cannot be written.
        """
        while True:
            while self._in_flight:
                batch = self._in_flight[0]
                await batch.deliveries.wait()
                self._in_flight.popleft()
                self._is_reporting = True
                self._failures(batch)
                await self._print_written(batch)
                self._is_reporting = False
            self._all_done.set()
            self._has_records = trio.Event()
            await self._has_records.wait()

    def give_up(self) -> None:
        """Count the remaining outcomes once the producer is closed, and the unsent records."""
        self.failed += self.unsent
        while self._in_flight:
            self._failures(self._in_flight.popleft())

    async def _print_written(self, batch: _InFlight) -> None:
        await trio.lowlevel.checkpoint()
        if self._options.written is not None:
            text = b"".join(map(self._options.written, _acknowledged(batch)))
            await write_all(OUTPUT, text)

    def _failures(self, batch: _InFlight) -> None:
        failures = batch.deliveries.failures()
        self._options.progress.records += len(batch.deliveries) - len(failures)
        for place, error in failures:
            self.reject(batch.records.numbers[place], error)


def _timestamps(timestamps: list[int]) -> list[int]:
    """Replace missing timestamps with the current time.

    Kafka's tools that copy topics do the same (ConnectUtils.checkAndConvertTimestamp).
    """
    if min(timestamps) > NO_TIMESTAMP:
        return timestamps
    now = now_ms()
    return [now if each == NO_TIMESTAMP else each for each in timestamps]


def _acknowledged(batch: _InFlight) -> list[ConsumerBatch]:
    """Return the written records as a consumer would receive them."""
    # Imported here because the consumer is slow to import and this is rarely used.
    from trionet.client.consumer.records._record import ConsumerBatch

    found = []
    records = batch.records
    for place, delivery in enumerate(batch.deliveries):
        try:
            written = delivery.result()
        except TrionetError:
            continue
        found.append(
            ConsumerBatch(
                topic=written.topic,
                partition=written.partition,
                offsets=[written.offset],
                timestamps=[written.timestamp],
                keys=[None if records.keys is None else records.keys[place]],
                values=[records.values[place]],
                headers=[() if records.headers is None else records.headers[place]],
                timestamp_type=0,
                leader_epoch=-1,
            )
        )
    return found
