"""Implements ``trionet produce``: reads records from the sources and sends them."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Final

import attrs
import trio

from trionet._util._raising import raise_single_error
from trionet._util._text import counted
from trionet.client.producer._open_producer import open_producer
from trionet.errors import TransactionAbortableError, TrionetError

from ..records._lines import InputError, RecordColumns
from ..records._packing import PackError
from ..terminal._pipes import read_some, widen, write_all
from ..terminal._progress import run_showing
from ..terminal._signals import Stop
from ..terminal._streams import OutputError
from ._record_sender import OUTPUT, ProduceOptions, RecordSender

if TYPE_CHECKING:
    from trionet.client.producer._hooks import Acknowledgement
    from trionet.client.producer._producer import Producer


async def produce(options: ProduceOptions) -> int:
    """Read and send records, and return the exit status."""
    stop = Stop()
    run = _Run(options, stop)
    await run_showing(run.run, stop, options.progress, options.report, is_bar=options.shows_bar)
    run.count_the_rest()
    if not (options.is_quiet or run.has_failed_to_begin):
        options.report(options.progress.line())
    return run.status()


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
        if isinstance(self._error, BrokenPipeError):
            raise OutputError("the reader of standard output exited before all was written")
        if self._error is not None:
            raise self._error
        return 1 if failed else self._stop.status

    @property
    def has_failed_to_begin(self) -> bool:
        """Whether the run has ended with an error before anything was read."""
        return self._error is not None and not self._options.progress.size

    def count_the_rest(self) -> None:
        """Count the outcomes of all remaining records once the producer is closed."""
        if self._sender is not None:
            self._sender.give_up()

    async def run(self) -> None:
        """Read and send records. If reading fails, the records read so far are still sent."""
        options = self._options
        # Around the producer, since its end waits for all records, too.
        with self._stop.ending_waits(_GRACE_SECONDS):
            # Failures are reported per record, also after the block, so its end must not raise
            # them.
            async with open_producer(
                options.servers, options.settings, on_acknowledgement=self._note_acknowledgement
            ) as producer:
                self._sender = sender = RecordSender(producer, options)
                try:
                    with self._stop.ending_waits():
                        await sender.connect()
                    async with self._in_transaction(producer, sender):
                        await self._send_all(sender)
                except (TrionetError, OSError) as error:
                    self._error = self._error or error

    def _note_acknowledgement(self, acknowledgement: Acknowledgement) -> None:
        if acknowledgement.error is None:
            self._stop.begin_grace_again()

    @asynccontextmanager
    async def _in_transaction(
        self, producer: Producer, sender: RecordSender
    ) -> AsyncIterator[None]:
        """Commit what the block sends if all went well; with a ``transactional.id`` only."""
        await trio.lowlevel.checkpoint()
        if self._options.settings.transactional_id is None:
            yield
            return
        with self._stop.ending_waits():
            await sender.init_transactions()
        if self._stop.number is not None:  # nothing is read, either
            yield
            return
        with self._reporting_abort(TransactionAbortableError):
            async with producer.transaction():
                # No commit has been sent yet, so whatever goes wrong here, nothing is committed.
                with self._reporting_abort(BaseException):
                    yield
                    if sender.failed or self._error is not None or self._stop.number is not None:
                        await producer.abort_transaction()
                        self._report_abort()

    @contextmanager
    def _reporting_abort(self, kind: type[BaseException]) -> Iterator[None]:
        try:
            yield
        except kind:
            self._report_abort()
            raise

    def _report_abort(self) -> None:
        progress = self._options.progress
        if not progress.note:
            progress.note = "not committed"
            self._options.report("the transaction was aborted: none of its records is committed")

    async def _send_all(self, sender: RecordSender) -> None:
        with raise_single_error():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(sender.watch_outcomes)
                await self._read(sender)
                await sender.finish()
                nursery.cancel_scope.cancel(reason="the outcome of all records is known")

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
        send, receive = trio.open_memory_channel[Chunk](_CHUNKS_MAX)
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
                f"waiting for {counted(count, 'record')}, as long as records are acknowledged each"
                " second; a second signal stops at once"
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
                await _read_files(self._options, send)
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
            while allowed:
                records = allowed.pop(0)
                try:
                    sent = await sender.send(records)
                    if self._options.tee is not None:
                        await write_all(OUTPUT, _with_ends(records, self._options.tee))
                except trio.Cancelled:
                    sender.unsent += sum(len(each.values) for each in [*allowed, *unsent])
                    raise
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


def _with_ends(records: RecordColumns, end: bytes) -> bytes:
    return end.join([*(each or b"" for each in records.values), b""])


STDIN: Final = "-"
#: How long the command goes on after a signal while no record is acknowledged.
_GRACE_SECONDS: Final = 1.0
#: The maximum number of chunks to read ahead, while one is processed.
_CHUNKS_MAX: Final = 2


class EndOfFile:
    """A marker for the end of a file."""


END_OF_FILE: Final = EndOfFile()


@attrs.frozen
class WholeFile:
    """The content of a file that is sent as one record."""

    data: bytes


Chunk = bytes | EndOfFile | WholeFile


async def _read_files(options: ProduceOptions, send: trio.MemorySendChannel[Chunk]) -> None:
    """Read the files and send their content to a channel in chunks.

    Raises:
        InputError: a file cannot be read.
    """
    await trio.lowlevel.checkpoint()
    for path in options.lines:
        with _naming(path):
            async with _opened(path) as descriptor:
                while data := await read_some(descriptor):
                    await send.send(data)
        await send.send(END_OF_FILE)
    for path in options.files:
        with _naming(path):
            data = await _whole(path, options.settings.request_bytes_max)
        await send.send(WholeFile(data))


async def _whole(path: str, size_max: int) -> bytes:
    """Read a file, up to slightly more than ``size_max`` bytes."""
    found = bytearray()
    async with _opened(path) as descriptor:
        while len(found) <= size_max and (data := await read_some(descriptor)):
            found += data
    return bytes(found)


@contextmanager
def _naming(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        name = "standard input" if path == STDIN else path
        raise InputError(f"cannot read {name}: {error.strerror}") from error


@asynccontextmanager
async def _opened(path: str) -> AsyncIterator[int]:
    if path == STDIN:
        widen(0)
        await trio.lowlevel.checkpoint()
        yield 0
        return
    # In a thread, because opening a named pipe blocks until it has a writer.
    descriptor = await trio.to_thread.run_sync(_open, path, abandon_on_cancel=True)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open(path: str) -> int:
    return os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
