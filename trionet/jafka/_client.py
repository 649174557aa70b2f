"""A client of Jafka: the protocol's seven requests, pipelined over one connection.

A response belongs to the oldest request without one, because the frames carry no correlation id. A
lock keeps each request whole, and a background task reads the responses. A request whose caller is
cancelled while it waits keeps its place in that order, and its response is dropped.

Requests to produce have no response. But the server handles the requests of a connection in order,
and closes the connection when it rejects one, so any response confirms what was produced before.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Generic, TypeVar

import attrs
import trio

from .._util._raising import again, raise_single_error
from .._util._text import counted
from .._util._trio_task import check_trio
from ..client.network._addresses import parse_bootstrap_servers
from ..errors import (
    ApiError,
    ConfigError,
    CorruptRecordError,
    DisconnectedError,
    FetchTooLargeError,
    InvalidReceiveError,
    OffsetOutOfRangeError,
    TrionetError,
    WireFormatError,
)
from ..net import FrameDecoder
from ..net.wire._connecting import reason_of
from ..protocol.error_codes import TOPIC_AUTHORIZATION_FAILED
from . import _codec as codec
from . import _requests as kinds
from ._codec import LATEST, RANDOM_PARTITION
from ._requests import Bytes, FetchRequest, JafkaRequest, Message

T = TypeVar("T")

#: The default size of a fetch, in bytes, as in Jafka's own consumer.
FETCH_BYTES: Final = 64 * 1024
#: The size of Jafka's largest request, in bytes; here also of a response, and of an entry's data.
_BYTES_MAX: Final = 100 * 1024 * 1024
#: The size of the smallest entry, in bytes: a length, and a message with an empty payload.
_ENTRY_BYTES_MIN: Final = 10
_CAUSES: Final = {
    codec.UNKNOWN: "the topic's name is invalid, or the server cannot read its log",
    codec.WRONG_PARTITION: "the partition does not exist",
}


@attrs.frozen
class FetchedMessages:
    """The result of a fetch; iterate over it for messages with ``payload`` and ``next_offset``.

    Args:
        request: what was fetched: topic, partition, offset, and ``bytes_max``.
        data: the entries as received; iteration drops an incomplete last entry.
    """

    request: FetchRequest
    data: memoryview

    def __iter__(self) -> Iterator[Message]:
        """Yield the messages; the next fetch continues at the ``next_offset`` of the last one.

        In a compressed entry, only the last message has the offset after the entry, and the others
        that of the entry itself: a consumer that resumes within the entry gets all of it again.

        Raises:
            CorruptRecordError: an entry is invalid, possibly because none starts at the offset.
        """
        topic, partition, offset, _ = self.request
        try:
            yield from codec.decode_messages(self.data, offset, _BYTES_MAX)
        except WireFormatError as error:
            text = f"{topic}-{partition}, fetched at offset {offset}: {error}"
            raise CorruptRecordError(text, topic or "", partition, offset) from error


def _fetched(request: FetchRequest, code: int, data: memoryview) -> FetchedMessages | TrionetError:
    topic, partition, offset, bytes_max = request
    place = f"{topic}-{partition} at offset {offset}"
    if code == codec.OFFSET_OUT_OF_RANGE:
        text = f"{place}: outside the log, whose start and end offsets() returns"
        return OffsetOutOfRangeError(text, topic or "", partition, offset)
    if code != codec.NO_ERROR:
        return ApiError(code, f"{place}: error {code}: {_CAUSES.get(code, 'unknown')}")
    size = codec.first_entry_bytes(data) or _ENTRY_BYTES_MIN
    if not 0 < len(data) < size:
        return FetchedMessages(request, data)
    text = f"{place}: an entry of {size} bytes, but bytes_max is {bytes_max}; fetch {size} or more"
    return FetchTooLargeError(text, topic or "", partition, offset, size, bytes_max)


class _PendingResponse(Generic[T]):
    """The response to a request. ``produced`` counts the requests to produce before that one."""

    def __init__(self, decode: Callable[[int, memoryview], T]) -> None:
        self.decode = decode
        self.produced = 0
        self._is_set = trio.Event()
        self._result: T | TrionetError = DisconnectedError()

    def set(self, result: T | TrionetError) -> None:
        self._result = result
        self._is_set.set()

    async def wait(self) -> T:
        await self._is_set.wait()
        if isinstance(self._result, TrionetError):
            raise again(self._result)
        return self._result


class _Connection:
    """The connection to a server, opened again by the next request after it has ended.

    Attributes:
        unconfirmed: the number of requests to produce that no later response has confirmed.
        lost: the error for those that the end of a connection left unconfirmed, until it is raised.
    """

    def __init__(
        self, address: tuple[str, int], name: str, nursery: trio.Nursery, response_bytes_max: int
    ) -> None:
        self._address = address
        self._name = name
        self._nursery = nursery
        self._response_bytes_max = response_bytes_max
        self._lock = trio.Lock()
        self._stream: trio.SocketStream | None = None  # once it has ended, too
        self._pending: deque[_PendingResponse[Any]] = deque()
        self._produced = 0
        self._is_closed = False
        self.unconfirmed = 0
        self.lost: DisconnectedError | None = None

    async def connect(self) -> trio.SocketStream:
        try:
            stream = await trio.open_tcp_stream(*self._address)
        except OSError as error:
            cause = error.__cause__
            if isinstance(cause, BaseExceptionGroup):  # one for each address
                cause = cause.exceptions[0]
            if isinstance(cause, OSError) and cause.errno:  # whose text repeats the address
                error = OSError(cause.errno, os.strerror(cause.errno))
            text = f"could not connect to {self._name}: {reason_of(error)}"
            raise DisconnectedError(text) from cause
        if self._is_closed:  # meanwhile
            stream.socket.close()
        self._raise_if_closed()
        self._stream = stream
        self._nursery.start_soon(self._read_responses, stream)
        return stream

    async def write(
        self, request: JafkaRequest, response: _PendingResponse[Any] | None, *, confirms: bool
    ) -> None:
        """Write a request; ``confirms`` says that its caller is to know of what was lost before.

        A failure to write ends the connection instead of being raised.

        Cancellation: ends the connection, since the server has perhaps received half of a request.
        """
        frame = codec.encode_request(request)
        async with self._lock:
            if confirms:
                self.raise_loss()
            self._raise_if_closed()
            stream = self._stream or await self.connect()
            await trio.lowlevel.checkpoint_if_cancelled()  # while there still is nothing to undo
            if response is None:
                self._produced += 1
                self.unconfirmed += 1
            else:
                response.produced = self._produced
                self._pending.append(response)
            try:
                await stream.send_all(frame)
            except trio.BrokenResourceError as error:
                self._end(stream, reason_of(error.__cause__ or error))
            except trio.ClosedResourceError:
                pass  # the reading task has ended the connection, and knows the cause
            except BaseException:
                if response is None and stream is self._stream:
                    self.unconfirmed -= 1  # a part of a request is never appended
                self._end(stream, "a request was cancelled while it was being written")
                raise
            if response is None:
                self.raise_loss()

    async def _read_responses(self, stream: trio.SocketStream) -> None:
        """Complete the pending responses until the connection ends."""
        decoder = FrameDecoder(self._response_bytes_max, "response_bytes_max")
        try:
            while stream is self._stream:
                decoder.receive_data(data := await stream.receive_some())
                self._receive(stream, decoder)
                if not data:
                    self._end(stream, "the server closed the connection")
        except trio.BrokenResourceError as error:
            self._end(stream, reason_of(error.__cause__ or error))
        except trio.ClosedResourceError:
            pass  # another task has ended the connection
        finally:  # otherwise, shielded calls would wait for ever
            self._end(stream, "the client was cancelled")

    def _receive(self, stream: trio.SocketStream, decoder: FrameDecoder) -> None:
        try:
            while decoder.frames and stream is self._stream:
                if not self._pending:
                    raise WireFormatError("received a response without a request")
                frame = codec.decode_response(decoder.frames.popleft())
                self._pending[0].set(self._pending[0].decode(*frame))
                self.unconfirmed = self._produced - self._pending.popleft().produced
            if decoder.error is not None:
                raise decoder.error
        except (InvalidReceiveError, WireFormatError) as error:
            self._end(stream, str(error), type(error))

    def _end(
        self, stream: trio.SocketStream, cause: str, kind: type[TrionetError] = DisconnectedError
    ) -> None:
        """Close a connection unless it has ended. Only the oldest request fails with ``kind``."""
        if stream is not self._stream:
            return
        self._stream = None
        stream.socket.close()
        error = kind(f"{self._name}: {cause}")
        if self.unconfirmed:
            self.lost = DisconnectedError(
                f"{error}; {counted(self.unconfirmed, 'produce request')} unconfirmed (a server"
                " closes the connection on an invalid topic or partition, and on a corrupt or too"
                " large message)"
            )
            self.lost.may_have_been_written = True
            self.unconfirmed = 0
        while self._pending:
            self._pending.popleft().set(error)
            error = DisconnectedError(str(error))

    def raise_loss(self) -> None:
        """Raise the error for requests to produce that were lost, once."""
        if self.lost is not None:
            lost, self.lost = self.lost, None
            raise lost

    def _raise_if_closed(self) -> None:
        if self._is_closed:
            raise trio.ClosedResourceError("the client is closed")

    def close(self) -> None:
        self._is_closed = True
        if self._stream is not None:
            self._end(self._stream, "the client is closed")


class JafkaClient:
    """A client of a Jafka server, for any number of tasks; :func:`open_jafka_client` creates one.

    Requests go over one connection, in the order of the calls. If it ends, pending calls raise
    :class:`.DisconnectedError`, and the next call opens another; no request is sent twice.

    Any call may raise, besides what its docstring lists:

    * ``ValueError``: an argument does not fit its field.
    * ``DisconnectedError``: the server could not be reached or closed the connection, which is how
      it rejects any request but a fetch.
    * ``WireFormatError``, ``InvalidReceiveError``: the response is malformed; the connection is
      closed.
    * ``trio.ClosedResourceError``: the client is closed.

    Cancellation: the request may have been carried out. Other calls are not affected, unless the
    request was still being written, which ends the connection.
    """

    def __init__(self, connection: _Connection) -> None:
        self._connection = connection

    async def produce(
        self,
        topic: str,
        payloads: Iterable[Bytes],
        partition: int = RANDOM_PARTITION,
        *,
        is_compressed: bool = False,
    ) -> None:
        """Send messages to a partition; the server appends all of them, or none.

        The server does not respond, and this returns when the request is written. The response to
        any later request confirms it; :meth:`flush` waits for one, and so does the end of the
        client's block. If the connection ends before, then the next ``produce``, ``multi_produce``
        or ``flush`` sends nothing and raises :class:`.DisconnectedError`.

        Args:
            topic: the topic; the server creates it if needed.
            payloads: the messages.
            partition: the partition; by default, the server chooses one at random.
            is_compressed: whether to compress them into a single entry, with gzip.
        """
        messages = codec.encode_messages(payloads, codec.GZIP if is_compressed else codec.NONE)
        request = kinds.ProducerRequest(topic, partition, messages)
        await self._connection.write(request, None, confirms=True)

    async def multi_produce(self, parts: Iterable[tuple[str, int, Iterable[Bytes]]]) -> None:
        """Send messages to several partitions in one request; see :meth:`produce`.

        The server appends the parts in order; if it rejects one, those before it stay appended.

        Args:
            parts: topic, partition and messages of each part.
        """
        requests = [
            kinds.ProducerRequest(topic, partition, codec.encode_messages(payloads))
            for topic, partition, payloads in parts
        ]
        request = kinds.MultiProducerRequest(tuple(requests))
        await self._connection.write(request, None, confirms=True)

    async def flush(self) -> None:
        """Wait until the server has appended everything produced before.

        Raises:
            DisconnectedError: the connection ended first; what was produced since the last response
                may be missing.
        """
        try:
            await self._request(kinds.MultiFetchRequest(()), lambda _, __: None, confirms=True)
        except DisconnectedError:
            self._connection.raise_loss()
            raise

    async def fetch(
        self, topic: str, partition: int, offset: int, bytes_max: int = FETCH_BYTES
    ) -> FetchedMessages:
        """Fetch messages of a partition; none if there are none yet, since the server never waits.

        Args:
            topic: the topic.
            partition: the partition.
            offset: where an entry starts: 0, or the ``next_offset`` of a message.
            bytes_max: the maximum size of the entries. A fetch also ends where a segment ends.

        Raises:
            OffsetOutOfRangeError: the offset is before the start of the log or after its end.
            FetchTooLargeError: the first entry is larger than ``bytes_max``; ``size`` of the error
                is large enough.
            ApiError: the partition does not exist (``error_code`` 3), or another of Jafka's errors.
        """
        request = FetchRequest(topic, partition, offset, bytes_max)
        [found] = await self._fetch(request, [request])
        if isinstance(found, TrionetError):
            raise found
        return found

    async def multi_fetch(
        self, parts: Iterable[tuple[str, int, int, int]]
    ) -> list[FetchedMessages | TrionetError]:
        """Fetch from several partitions in one request.

        Args:
            parts: topic, partition, offset and ``bytes_max`` of each part.

        Returns:
            For each part, its messages or the error that :meth:`fetch` would raise.
        """
        requests = [FetchRequest(*part) for part in parts]
        return await self._fetch(kinds.MultiFetchRequest(tuple(requests)), requests)

    async def offsets(
        self, topic: str, partition: int, time: int = LATEST, count_max: int = 1
    ) -> list[int]:
        """Return offsets of a partition, newest first; none if the topic does not exist.

        Args:
            topic: the topic.
            partition: the partition.
            time: ``jafka.LATEST`` for the end of the log and the starts of its segments,
                ``jafka.EARLIEST`` for the start of the log, or a time in milliseconds since 1970
                for those before it.
            count_max: the maximum number of offsets.
        """
        request = kinds.OffsetRequest(topic, partition, time, count_max)
        return await self._request(request, lambda _, body: codec.decode_offsets(body))

    async def create(self, topic: str, partitions: int, *, enlarge: bool = True) -> int:
        """Give a topic at least this number of partitions. Returns the resulting number.

        Args:
            topic: the topic.
            partitions: the number of partitions.
            enlarge: whether an existing topic may grow. Jafka after 3.0.6 and trionet ignore this.
        """
        request = kinds.CreaterRequest(topic, partitions, enlarge)
        return await self._request(request, lambda _, body: codec.decode_count(body))

    async def delete(self, topic: str, password: str | None = None) -> int:
        """Delete a topic. Returns how many of its partitions had a log.

        Args:
            topic: the topic.
            password: the server's password, if it has one.

        Raises:
            ApiError: the password is wrong (TOPIC_AUTHORIZATION_FAILED).
        """
        request = kinds.DeleterRequest(topic, password)
        count = await self._request(request, lambda _, body: codec.decode_count(body))
        if count < 0:
            text = f"topic {topic!r} was not deleted: the password is wrong"
            raise ApiError(TOPIC_AUTHORIZATION_FAILED, text)
        return count

    async def _fetch(
        self, request: JafkaRequest, parts: Sequence[FetchRequest]
    ) -> list[FetchedMessages | TrionetError]:
        for part in parts:
            if part.bytes_max < 0:  # to which Jafka responds with an invalid frame
                raise ValueError(f"bytes_max = {part.bytes_max}; allowed: 0 or more")

        def decode(code: int, body: memoryview) -> list[FetchedMessages | TrionetError]:
            is_single = isinstance(request, FetchRequest)
            found = [(code, body)] if is_single else codec.decode_parts(body)
            if len(found) != len(parts):
                raise WireFormatError(f"{len(found)} parts in the response to {len(parts)} fetches")
            return [_fetched(part, *each) for part, each in zip(parts, found, strict=True)]

        return await self._request(request, decode)

    async def _request(
        self,
        request: JafkaRequest,
        decode: Callable[[int, memoryview], T],
        *,
        confirms: bool = False,
    ) -> T:
        response = _PendingResponse(decode)
        await self._connection.write(request, response, confirms=confirms)
        return await response.wait()


@asynccontextmanager
async def open_jafka_client(
    server: str, *, response_bytes_max: int = _BYTES_MAX
) -> AsyncIterator[JafkaClient]:
    """Connect to a Jafka server, of trionet or Jafka itself, for the length of the block.

    Args:
        server: ``host:port``, with an IPv6 address in brackets.
        response_bytes_max: the size of the largest response accepted, in bytes.

    Raises:
        ConfigError: ``server`` is invalid.
        DisconnectedError: the server could not be reached; or, at the end of the block, what was
            produced may not have been appended.
        RuntimeError: trio does not run the calling task.

    Cancellation: closes the connection. What was produced and not confirmed may not be appended.
    """
    check_trio("clients")
    addresses = parse_bootstrap_servers(server, "server")
    if len(addresses) > 1:
        raise ConfigError(f"server: {server!r} are {len(addresses)}; expected one host:port")
    with raise_single_error() as caller:
        async with trio.open_nursery() as nursery:
            connection = _Connection(addresses[0], server, nursery, response_bytes_max)
            client = JafkaClient(connection)
            try:
                await connection.connect()
                with caller.block():
                    yield client
                if connection.unconfirmed or connection.lost:
                    await client.flush()
            finally:
                connection.close()
