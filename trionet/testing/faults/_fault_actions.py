"""The actions that faults apply to matching requests.

Each action completes an :class:`Exchange`, either immediately or later, from a task in the broker's
nursery. Actions do not wait, so they do not tie up the request handler that runs them.
"""

from __future__ import annotations

import copy
import math
import os
import socket
import struct
from collections.abc import Callable, Collection
from typing import Any, Final, Protocol

import attrs
import trio

from ...broker.api._dispatch import RESPONSES
from ...net._channel import Channel
from ...net.wire._close_reason import CloseReason
from ...protocol import api_keys, error_codes
from ...protocol._wire import Message
from ...protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ...protocol.messages.produce import ProduceRequest
from ...server._request_channel import CloseConnection
from .._names import TopicName, topic_of
from .._seen_requests import SeenRequest, Which
from ..memory._stream import MemoryTransport
from ._exchange import DelayedExchange, Exchange, bytes_of
from ._response_errors import ErrorResponses, is_top_level, merge, response_class, rest_of

# pytest leaves the frames of this module out of its reports.
__tracebackhide__ = True

# All batch and message formats start with an offset and the size of what follows.
_SIZE_AT: Final = 8
_DATA_AT: Final = 12


def with_flipped_bit(records: bytes) -> bytes:
    """Return the records with the last bit of the first batch or message flipped.

    The checksum covers this bit. Data that is too short to be a batch is returned unchanged.
    """
    if len(records) <= _DATA_AT:
        return records
    size = int.from_bytes(records[_SIZE_AT:_DATA_AT], "big")
    last = min(_DATA_AT + size, len(records)) - 1
    return records[:last] + bytes([records[last] ^ 1]) + records[last + 1 :]


def corrupted_request(request: ProduceRequest, which: Which, name_of: TopicName) -> ProduceRequest:
    """Return a copy of a request with one bit flipped in each matching partition's records."""
    changed = copy.copy(request)
    changed.topic_data = [copy.copy(topic) for topic in request.topic_data]
    for topic in changed.topic_data:
        topic.partition_data = [copy.copy(partition) for partition in topic.partition_data]
        for partition in topic.partition_data:
            if partition.records and _is_meant(topic, partition.index, which, name_of):
                partition.records = with_flipped_bit(bytes(partition.records))
    return changed


def corrupt_response(response: FetchResponse, which: Which, name_of: TopicName) -> None:
    """Flip one bit in each matching partition's records, in place."""
    for topic in response.responses:
        for partition in topic.partitions:
            if partition.records and _is_meant(topic, partition.partition_index, which, name_of):
                partition.records = with_flipped_bit(bytes_of(partition.records))


def _is_meant(topic: Message, partition: int, which: Which, name_of: TopicName) -> bool:
    name = topic_of(topic, name_of)
    return name is None or which.hits(name, partition)


Body = Message | bytes | Callable[[SeenRequest], Message | bytes]
"""A response: a message, the bytes after the header, or a function that creates either."""

_CLOSE_WITH_RESET = struct.pack("ii", 1, 0)  # SO_LINGER, for zero seconds
# How often to check whether the start of a frame was sent.
_LEFT_CHECK_SECONDS = 0.001
# APIs that are handled even if they fail: their responses have items that requests do not name.
_HANDLED_FIRST = (api_keys.FETCH, api_keys.METADATA, api_keys.DESCRIBE_LOG_DIRS)

#: APIs whose requests or responses carry records.
RECORD_APIS = (api_keys.PRODUCE, api_keys.FETCH)


class Action(Protocol):
    """The action of a fault."""

    async def act(self, exchange: Exchange, which: Which) -> None:
        """Apply the action to an exchange that matches ``which``."""
        ...


@attrs.frozen
class Fail:
    """An action that responds with an error, with or without handling the request first."""

    code: int
    text: str | None
    executed: bool

    def __str__(self) -> str:
        done = ", executed" if self.executed else ""
        return f"fail with {error_codes.name_of(self.code)}{done}"

    async def act(self, exchange: Exchange, which: Which) -> None:
        await trio.lowlevel.checkpoint()
        codec = exchange.call.codec
        hits = which.hits if which.topic is not None else None
        name_of = exchange.node.topic_name
        responses = ErrorResponses(codec, self.code, self.text, hits, name_of)
        is_whole = is_top_level(codec.api_key, self.code)

        def mark(response: Any) -> None:
            exchange.respond(self._marked(exchange, responses, which, response))

        names_none = hits is not None and exchange.seen.is_about_all_topics
        if self.executed or names_none or (codec.api_key in _HANDLED_FIRST and not is_whole):
            await exchange.execute(mark, _without_wait(exchange.message))
            return
        rejected = responses.rejection(exchange.message)
        rest = None if hits is None else rest_of(exchange.message, hits, name_of)

        def add(response: Any) -> None:
            if isinstance(response, RESPONSES):
                exchange.respond(self._instead_of_nothing())
                return
            merge(response, rejected)
            exchange.respond(response)

        if rest is not None:
            await exchange.execute(add, rest)
        elif _has_no_response(exchange.message):
            exchange.respond(self._instead_of_nothing())
        else:
            exchange.respond(rejected)

    def _marked(
        self, exchange: Exchange, responses: ErrorResponses, which: Which, response: Any
    ) -> Message | CloseConnection:
        if isinstance(response, RESPONSES):
            return self._instead_of_nothing()
        message: Message = response
        responses.mark(message)
        if isinstance(message, FetchResponse):
            merge(message, responses.rejection(_omitted_partitions(exchange, which, message)))
        return message

    def _instead_of_nothing(self) -> CloseConnection:
        """Return the close by which Kafka signals an error to a producer with acks=0."""
        return CloseConnection(CloseReason.CLOSE_RESPONSE, f"fault: {self}")


def _has_no_response(message: Message) -> bool:
    return getattr(message, "acks", None) == 0


def _without_wait(message: Message) -> Message:
    """Return the request, but make a Fetch not wait for data: its error is already known."""
    if not isinstance(message, FetchRequest):
        return message
    changed = copy.copy(message)
    changed.max_wait_ms = 0
    return changed


def _omitted_partitions(exchange: Exchange, which: Which, response: FetchResponse) -> FetchRequest:
    """Build a request for the matching session partitions that a response omits (KIP-227)."""
    session = exchange.node.state.fetch_sessions.get(response.session_id)
    included = {
        (each, partition.partition_index)
        for topic in response.responses
        for partition in topic.partitions
        for each in (topic.topic, topic.topic_id)
    }
    request = FetchRequest()
    for topic, partition in session.partitions if session is not None else ():
        name = topic if isinstance(topic, str) else exchange.node.topic_name(topic)
        if (topic, partition) not in included and name is not None and which.hits(name, partition):
            item = FetchTopic(partitions=[FetchPartition(partition=partition)])
            if isinstance(topic, str):
                item.topic = topic
            else:
                item.topic_id = topic
            request.topics.append(item)
    return request


@attrs.frozen
class Respond:
    """An action that responds with the test's own body, without handling the request."""

    body: Body

    def __str__(self) -> str:
        return "respond with the test's response"

    async def act(self, exchange: Exchange, which: Which) -> None:  # noqa: ARG002
        await trio.lowlevel.checkpoint()
        try:
            body = self.body(exchange.seen) if callable(self.body) else self.body
            check_body(body, {exchange.seen.api_key})
            frame = exchange.frame_of(body)
        except Exception as error:  # boundary: an invalid response of the test; reported there
            if exchange.seen.fault is not None:
                exchange.seen.fault.error = error
            await exchange.execute()
            return
        exchange.respond(frame if isinstance(body, bytes) else body)


def check_body(body: object, keys: Collection[int]) -> None:
    """Check that a body can be a response of the APIs in ``keys``.

    Raises:
        TypeError: the body is neither a response nor bytes.
        ValueError: the body is the response of another API.
    """
    if not isinstance(body, (Message, bytes)):
        raise TypeError(
            f"invalid response {body!r}; expected a response of trionet.protocol.messages, bytes,"
            " or a function that creates either from the request"
        )
    if isinstance(body, Message) and {type(body)} != {response_class(key) for key in keys}:
        names = ", ".join(sorted(map(api_keys.name_of, keys))) or "every API"
        raise ValueError(f"{type(body).__name__} is not a response of {names}")


@attrs.frozen
class Continue:
    """An action that applies the remaining faults, then handles the request normally."""

    def __str__(self) -> str:
        return "continue"

    async def act(self, exchange: Exchange, which: Which) -> None:  # noqa: ARG002
        await exchange.proceed()


@attrs.frozen
class HoldMarkers(Continue):
    """The action of a fault that holds markers, which lets the requests pass."""

    def __str__(self) -> str:
        return "hold the markers"


@attrs.frozen
class Swallow:
    """An action that never responds and stops reading from the connection, like a hung broker."""

    executed: bool

    def __str__(self) -> str:
        return "swallow, executed" if self.executed else "swallow"

    async def act(self, exchange: Exchange, which: Which) -> None:  # noqa: ARG002
        def keep(_: Any = None) -> None:
            # A stopping broker waits for pending responses; this ends the wait.
            DelayedExchange(exchange, end, only_responds=True).hold(exchange, math.inf)

        def end() -> None:
            if exchange.call.request.channel.is_open:
                exchange.respond(CloseConnection(CloseReason.CLOSE_RESPONSE, f"fault: {self}"))

        if self.executed:
            await exchange.execute(keep)
        else:
            await trio.lowlevel.checkpoint()
            keep()


@attrs.frozen
class Close:
    """An action that closes the connection instead of responding."""

    executed: bool
    reset: bool

    def __str__(self) -> str:
        how = "reset" if self.reset else "close"
        return f"{how} the connection{', executed' if self.executed else ''}"

    async def act(self, exchange: Exchange, which: Which) -> None:  # noqa: ARG002
        def close(_: Any = None) -> None:
            if self.reset:
                close_with_reset(exchange.call.request.channel)
            exchange.respond(CloseConnection(CloseReason.CLOSE_RESPONSE, f"fault: {self}"))

        if self.executed:
            await exchange.execute(close)
        else:
            await trio.lowlevel.checkpoint()
            close()


def close_with_reset(channel: Channel) -> None:
    """Make closing the connection send a reset (RST), even if no bytes are unread."""
    if not channel.is_open:
        return
    option = socket.SOL_SOCKET, socket.SO_LINGER, _CLOSE_WITH_RESET
    if isinstance(channel.transport, MemoryTransport):
        channel.transport.setsockopt(*option)
        return
    # A duplicate descriptor of the same socket: closing it leaves the connection open.
    with socket.socket(fileno=os.dup(channel.fd)) as sock:
        sock.setsockopt(*option)


@attrs.frozen
class Cut:
    """An action that sends only the start of the response's frame, then closes the connection."""

    at: int | float

    def __str__(self) -> str:
        return f"cut the response at {self.at}"

    async def act(self, exchange: Exchange, which: Which) -> None:  # noqa: ARG002
        await exchange.execute(lambda response: self._cut(exchange, response))

    def _cut(self, exchange: Exchange, response: Any) -> None:
        request = exchange.call.request
        if not request.channel.is_open:
            return
        if isinstance(response, RESPONSES):
            exchange.respond(CloseConnection(CloseReason.CLOSE_RESPONSE, f"fault: {self}"))
            return
        exchange.note(response)
        frame = exchange.frame_of(response)
        count = self.at if isinstance(self.at, int) else int(self.at * len(frame))
        # The client's next request must not be read in between.
        request.start_throttling()
        request.respond(frame[: max(1, count)])
        exchange.start(lambda: self._close_when_left(exchange))

    async def _close_when_left(self, exchange: Exchange) -> None:
        await trio.lowlevel.checkpoint()
        request = exchange.call.request
        channel = request.channel
        while channel.is_open and (  # noqa: ASYNC110  # there is no event for it
            not request.picked_up_ns or channel.send is not None
        ):
            await trio.sleep(_LEFT_CHECK_SECONDS)
        for processor, each in exchange.node.channels():
            if each is channel:
                processor.selector.disconnect(channel, CloseReason.CLOSE_RESPONSE, f"fault: {self}")
                processor.selector.wakeup()


@attrs.frozen
class Corrupt:
    """An action that flips a bit in the records of a Produce request or Fetch response."""

    def __str__(self) -> str:
        return "flip a bit in the records"

    async def act(self, exchange: Exchange, which: Which) -> None:
        name_of = exchange.node.topic_name

        def flip(response: Any) -> None:
            if isinstance(response, FetchResponse):
                corrupt_response(response, which, name_of)
            exchange.respond(response)

        message = exchange.message
        if isinstance(message, ProduceRequest):
            await exchange.execute(message=corrupted_request(message, which, name_of))
        else:
            await exchange.execute(flip)


@attrs.frozen
class Throttle:
    """An action that sets the throttle time, and optionally mutes the connection (KIP-219)."""

    throttle_ms: int
    mute: bool

    def __str__(self) -> str:
        return f"throttle for {self.throttle_ms} ms{', muted' if self.mute else ''}"

    async def act(self, exchange: Exchange, which: Which) -> None:  # noqa: ARG002
        await exchange.execute(lambda response: self._give(exchange, response))

    def _give(self, exchange: Exchange, response: Any) -> None:
        request = exchange.call.request
        if isinstance(response, Message):
            response.throttle_time_ms = self.throttle_ms  # type: ignore[attr-defined]
        if self.mute:
            request.start_throttling()
            exchange.start(self._unmute_later(exchange))
        exchange.respond(response)

    def _unmute_later(self, exchange: Exchange) -> Callable[[], Any]:
        async def unmute() -> None:
            await trio.sleep(self.throttle_ms / 1000)
            exchange.call.request.end_throttling()

        return unmute
