"""What ``trionet produce`` does once it is known what is wanted."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import attrs
import trio

from trionet._util._counted import counted
from trionet._util._single_error import raise_single_error
from trionet.client.producer._open_producer import open_producer
from trionet.errors import TrionetError

from ..records._columns import Input, Taken
from ..records._lines import Shape
from ..records._packing import PackError
from ..records._splitting import InputError
from ..terminal._pipes import write_all
from ..terminal._progress import Progress, keep_showing
from ..terminal._signals import SIGNALS, Stop, watch_signals
from ._sending import Sending
from ._sources import EndOfFile, Piece, Sources, WholeFile, open_pieces

if TYPE_CHECKING:
    from trionet.client.consumer.records._record import ConsumerBatch
    from trionet.client.producer._settings import ProducerSettings
    from trionet.client.producer.sending._hooks import Acknowledgement

OUTPUT: Final = 1


@attrs.frozen(kw_only=True)
class Production:
    """What is wanted.

    Attributes:
        servers: where to begin.
        settings: of the producer.
        topic: of records that name none; None if all do.
        partition: of records that name none.
        sources: where records come from.
        input: makes records of it.
        shape: what records of whole files have in common.
        records_max: so many are sent; None for all.
        keeps_going: whether others are sent after one that was not.
        known_seconds: how long the topic may take to be known.
        tee: written behind each value that was taken; None writes none.
        written: makes text of records that were written; None for none.
        progress: counts.
        shows_bar: whether a bar or lines tell of progress; None if nothing does.
        is_quiet: whether only errors are told.
        tell: writes a line for people.
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
    known_seconds: float
    tee: bytes | None
    written: Callable[[ConsumerBatch], bytes] | None
    progress: Progress
    shows_bar: bool | None
    is_quiet: bool
    tell: Callable[[str], None]


async def produce(wanted: Production) -> int:
    """Send what is read; returns the exit status."""
    stop = Stop()
    run = _Run(wanted, stop)
    wanted.progress.begin()
    with raise_single_error(), trio.open_signal_receiver(*SIGNALS) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch_signals, signals, stop, nursery.cancel_scope)
            if wanted.shows_bar is not None:
                nursery.start_soon(_show, wanted, wanted.shows_bar)
            await run.run()
            nursery.cancel_scope.cancel(reason="all is sent")
    run.count_the_rest()
    if not wanted.is_quiet:
        wanted.tell(wanted.progress.line())
    return run.status()


async def _show(wanted: Production, is_bar: bool) -> None:
    await keep_showing(wanted.progress, wanted.tell, is_bar=is_bar)


class _Run:
    """One run of the command."""

    def __init__(self, wanted: Production, stop: Stop) -> None:
        self._wanted = wanted
        self._stop = stop
        self._left = wanted.records_max
        self._files = 0
        self._error: Exception | None = None
        self._sending: Sending | None = None

    def status(self) -> int:
        """The exit status: 1 if something was not written, or what shells tell of a signal."""
        sending = self._sending
        failed = 0 if sending is None else sending.failed
        if failed:
            noun = "record was" if failed == 1 else "records were"
            self._wanted.tell(f"{failed:,} {noun} not written, or nobody knows")
        if self._error is not None:
            raise self._error
        return 1 if failed else self._stop.status

    def count_the_rest(self) -> None:
        """After the end of the producer it is decided what became of all."""
        if self._sending is not None:
            self._sending.give_up()

    async def run(self) -> None:
        """Read and send; what was taken is sent also when the input fails."""
        wanted = self._wanted
        # Failures are reported record by record, also after the block: not by its end as well.
        async with open_producer(
            wanted.servers, wanted.settings, on_acknowledgement=_ignore
        ) as producer:
            self._sending = sending = Sending(
                producer,
                topic=wanted.topic,
                partition=wanted.partition,
                servers=wanted.servers,
                known_seconds=wanted.known_seconds,
                keeps_going=wanted.keeps_going,
                tell=wanted.tell,
                progress=wanted.progress,
                written=wanted.written,
                output=OUTPUT,
            )
            try:
                with raise_single_error():
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(sending.keep_looking)
                        await self._read(sending)
                        await sending.finish()
                        nursery.cancel_scope.cancel(reason="all is decided")
            except (TrionetError, OSError) as error:
                self._error = self._error or error

    async def _read(self, sending: Sending) -> None:
        """What cannot be read or sent is told when what was taken before is sent."""
        await trio.lowlevel.checkpoint()
        try:
            if self._wanted.topic is not None:
                with self._stop.ending_waits():
                    await sending.look_up(self._wanted.topic)
            with raise_single_error():
                await self._read_all(sending)
        except TrionetError as error:
            self._error = error

    async def _read_all(self, sending: Sending) -> None:
        send, receive = open_pieces()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._reading, send)
            while (piece := await self._next(sending, receive)) is not None:
                if not await self._take(sending, piece):
                    break
            nursery.cancel_scope.cancel(reason="enough is read")
        receive.close()
        if self._stop.number is None:
            return
        if kept := self._wanted.input.kept:
            self._wanted.tell(f"not sent, being no whole record yet: {counted(kept, 'byte')}")
        if count := sending.under_way:
            self._wanted.tell(
                f"waiting for {counted(count, 'record')}; another signal does not wait"
            )

    async def _next(
        self, sending: Sending, receive: trio.MemoryReceiveChannel[Piece]
    ) -> Piece | None:
        """The next piece; None at the end, or when a record that was sent before has failed."""
        await trio.lowlevel.checkpoint()
        if not sending.may_go_on:
            return None
        with trio.CancelScope() as waiting:
            sending.when_failed = waiting.cancel
            await trio.lowlevel.checkpoint()
            try:
                return await receive.receive()
            except trio.EndOfChannel:
                return None
        return None

    async def _reading(self, send: trio.MemorySendChannel[Piece]) -> None:
        """Read until the end, a signal, or an error, which is told when all before it is sent."""
        await trio.lowlevel.checkpoint()
        try:
            with self._stop.ending_waits():
                await self._wanted.sources.read(send)
        except InputError as error:
            self._error = error
        finally:
            send.close()

    async def _take(self, sending: Sending, piece: Piece) -> bool:
        """Send the records of a piece of input; whether more is wanted."""
        reader = self._wanted.input
        match piece:
            case EndOfFile():
                taken = reader.end()
            case WholeFile(data):
                return await self._send_whole(sending, data)
            case _:
                self._wanted.progress.size += len(piece)
                taken = reader.feed(piece)
        while True:
            if not await self._send(sending, taken):
                return False
            error = reader.take_error()
            if error is None:
                return True
            sending.refuse(None, error)
            if not (sending.may_go_on and reader.can_go_on):
                return False
            taken = reader.feed(b"")

    async def _send_whole(self, sending: Sending, data: bytes) -> bool:
        await trio.lowlevel.checkpoint()
        self._files += 1
        self._wanted.progress.size += len(data)
        try:
            taken = self._wanted.shape.columns([self._files], [data])
        except PackError as error:
            sending.refuse(self._files, error)
            return sending.may_go_on
        return await self._send(sending, [taken])

    async def _send(self, sending: Sending, all_taken: list[Taken]) -> bool:
        await trio.lowlevel.checkpoint()
        while all_taken and self._left != 0:
            wanted, all_taken = self._divided(all_taken)
            for taken in wanted:
                sent = await sending.send(taken)
                if self._wanted.tee is not None:
                    await write_all(OUTPUT, _ended(taken, self._wanted.tee))
                if self._left is not None:
                    self._left -= sent
                if not sending.may_go_on:
                    return False
        return self._left != 0

    def _divided(self, all_taken: list[Taken]) -> tuple[list[Taken], list[Taken]]:
        """As many as may be sent still, also where they go to several topics, and the others.

        Those come next where some of the first cannot be sent.
        """
        if self._left is None:
            return all_taken, []
        numbers = sorted(number for each in all_taken for number in each.numbers)
        if len(numbers) <= self._left:
            return all_taken, []
        end = numbers[self._left]
        places = [bisect_left(each.numbers, end) for each in all_taken]
        both = list(zip(all_taken, places, strict=True))
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


def _ended(taken: Taken, end: bytes) -> bytes:
    return end.join([*(each or b"" for each in taken.values), b""])
