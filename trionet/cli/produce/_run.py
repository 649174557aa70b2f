"""Implements ``trionet produce``: reads records from the sources and sends them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import attrs
import trio

from trionet._util._raising import raise_single_error
from trionet._util._text import counted
from trionet.client.producer._open_producer import open_producer
from trionet.errors import TrionetError

from ..records._columns import Input, RecordColumns
from ..records._lines import Shape
from ..records._packing import PackError
from ..records._splitting import InputError
from ..terminal._pipes import write_all
from ..terminal._progress import Progress, keep_showing
from ..terminal._signals import SIGNALS, Stop, watch_signals
from ._sending import RecordSender
from ._sources import Chunk, EndOfFile, Sources, WholeFile, open_chunks

if TYPE_CHECKING:
    from trionet.client.consumer.records._record import ConsumerBatch
    from trionet.client.producer._hooks import Acknowledgement
    from trionet.client.producer._settings import ProducerSettings

OUTPUT: Final = 1


@attrs.frozen(kw_only=True)
class ProduceOptions:
    """The options of ``trionet produce``.

    Attributes:
        servers: the bootstrap servers.
        settings: the settings of the producer.
        topic: the topic for records that do not name one; None if all do.
        partition: the partition for records that do not name one; None to let the partitioner
            choose.
        sources: the files to read.
        input: parses records from the input.
        shape: the properties common to all records that are whole files.
        records_max: the maximum number of records to send; None for all.
        keeps_going: whether to continue after a record fails.
        timeout_seconds: the time limit for the topic's metadata.
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
    sources: Sources
    input: Input
    shape: Shape
    records_max: int | None
    keeps_going: bool
    timeout_seconds: float
    tee: bytes | None
    written: Callable[[ConsumerBatch], bytes] | None
    progress: Progress
    shows_bar: bool | None
    is_quiet: bool
    report: Callable[[str], None]


async def produce(options: ProduceOptions) -> int:
    """Read and send records, and return the exit status."""
    stop = Stop()
    run = _Run(options, stop)
    options.progress.begin()
    with raise_single_error(), trio.open_signal_receiver(*SIGNALS) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch_signals, signals, stop, nursery.cancel_scope)
            if options.shows_bar is not None:
                nursery.start_soon(_show, options, options.shows_bar)
            await run.run()
            nursery.cancel_scope.cancel(reason="all records were sent")
    run.count_the_rest()
    if not options.is_quiet:
        options.report(options.progress.line())
    return run.status()


async def _show(options: ProduceOptions, is_bar: bool) -> None:
    await keep_showing(options.progress, options.report, is_bar=is_bar)


class _Run:
    """One run of the command."""

    def __init__(self, options: ProduceOptions, stop: Stop) -> None:
        self._options = options
        self._stop = stop
        self._left = options.records_max
        self._files = 0
        self._error: Exception | None = None
        self._sender: RecordSender | None = None

    def status(self) -> int:
        """Return the exit status: 1 if a record failed, otherwise 0, or 128 + N after signal N.

        Raises the error that ended the run, if there was one.
        """
        sender = self._sender
        failed = 0 if sender is None else sender.failed
        if failed:
            self._options.report(f"{counted(failed, 'record')} failed or may not have been written")
        if self._error is not None:
            raise self._error
        return 1 if failed else self._stop.status

    def count_the_rest(self) -> None:
        """Count the outcomes of all remaining records once the producer is closed."""
        if self._sender is not None:
            self._sender.give_up()

    async def run(self) -> None:
        """Read and send records. If reading fails, the records read so far are still sent."""
        options = self._options
        # Failures are reported per record, also after the block, so its end must not raise them.
        async with open_producer(
            options.servers, options.settings, on_acknowledgement=_ignore
        ) as producer:
            self._sender = sender = RecordSender(
                producer,
                topic=options.topic,
                partition=options.partition,
                servers=options.servers,
                timeout_seconds=options.timeout_seconds,
                keeps_going=options.keeps_going,
                report=options.report,
                progress=options.progress,
                written=options.written,
                output=OUTPUT,
            )
            try:
                with raise_single_error():
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(sender.watch_outcomes)
                        await self._read(sender)
                        await sender.finish()
                        nursery.cancel_scope.cancel(reason="the outcome of all records is known")
            except (TrionetError, OSError) as error:
                self._error = self._error or error

    async def _read(self, sender: RecordSender) -> None:
        """Read and send all input, storing an error so that earlier records are still sent."""
        await trio.lowlevel.checkpoint()
        try:
            if self._options.topic is not None:
                with self._stop.ending_waits():
                    await sender.look_up(self._options.topic)
            with raise_single_error():
                await self._read_all(sender)
        except TrionetError as error:
            self._error = error

    async def _read_all(self, sender: RecordSender) -> None:
        send, receive = open_chunks()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._reading, send)
            while (chunk := await self._next(sender, receive)) is not None:
                if not await self._process(sender, chunk):
                    break
            nursery.cancel_scope.cancel(reason="no more input is needed")
        receive.close()
        if self._stop.number is None:
            return
        if kept := self._options.input.kept:
            self._options.report(f"not sent: {counted(kept, 'byte')} of an incomplete record")
        if count := sender.in_flight:
            self._options.report(
                f"waiting for {counted(count, 'record')}; a second signal stops at once"
            )

    async def _next(
        self, sender: RecordSender, receive: trio.MemoryReceiveChannel[Chunk]
    ) -> Chunk | None:
        """Return the next chunk, or None at the end and after an earlier record has failed."""
        await trio.lowlevel.checkpoint()
        if not sender.may_go_on:
            return None
        with trio.CancelScope() as waiting:
            sender.when_failed = waiting.cancel
            await trio.lowlevel.checkpoint()
            try:
                return await receive.receive()
            except trio.EndOfChannel:
                return None
        return None

    async def _reading(self, send: trio.MemorySendChannel[Chunk]) -> None:
        """Read until the end, a signal or an error, storing the error for :meth:`status`."""
        await trio.lowlevel.checkpoint()
        try:
            with self._stop.ending_waits():
                await self._options.sources.read(send)
        except InputError as error:
            self._error = error
        finally:
            send.close()

    async def _process(self, sender: RecordSender, chunk: Chunk) -> bool:
        """Send the records of a chunk of input, and return whether to read more."""
        reader = self._options.input
        match chunk:
            case EndOfFile():
                records = reader.end()
            case WholeFile(data):
                return await self._send_whole(sender, data)
            case _:
                self._options.progress.size += len(chunk)
                records = reader.feed(chunk)
        while True:
            if not await self._send(sender, records):
                return False
            error = reader.take_error()
            if error is None:
                return True
            sender.reject(None, error)
            if not (sender.may_go_on and reader.can_go_on):
                return False
            records = reader.feed(b"")

    async def _send_whole(self, sender: RecordSender, data: bytes) -> bool:
        await trio.lowlevel.checkpoint()
        self._files += 1
        self._options.progress.size += len(data)
        try:
            records = self._options.shape.columns([self._files], [data])
        except PackError as error:
            sender.reject(self._files, error)
            return sender.may_go_on
        return await self._send(sender, [records])

    async def _send(self, sender: RecordSender, unsent: list[RecordColumns]) -> bool:
        await trio.lowlevel.checkpoint()
        while unsent and self._left != 0:
            allowed, unsent = self._split_at_limit(unsent)
            for records in allowed:
                sent = await sender.send(records)
                if self._options.tee is not None:
                    await write_all(OUTPUT, _with_ends(records, self._options.tee))
                if self._left is not None:
                    self._left -= sent
                if not sender.may_go_on:
                    return False
        return self._left != 0

    def _split_at_limit(
        self, unsent: list[RecordColumns]
    ) -> tuple[list[RecordColumns], list[RecordColumns]]:
        """Split records into those within ``--count`` and the rest, in the order of the input.

        The rest is sent only if records of the first part are rejected.
        """
        if self._left is None:
            return unsent, []
        numbers = sorted(number for each in unsent for number in each.numbers)
        if len(numbers) <= self._left:
            return unsent, []
        end = numbers[self._left]
        places = [bisect_left(each.numbers, end) for each in unsent]
        both = list(zip(unsent, places, strict=True))
        return (
            [each.some(0, place) for each, place in both if place],
            [
                each.some(place, len(each.values))
                for each, place in both
                if place < len(each.values)
            ],
        )


def _ignore(_: Acknowledgement) -> None:
    pass


def _with_ends(records: RecordColumns, end: bytes) -> bytes:
    return end.join([*(each or b"" for each in records.values), b""])
