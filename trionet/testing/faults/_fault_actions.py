"""What a fault does with a call, once it has met one.

Each action is given an :class:`Exchange` and ends it: at once, or later from a task of the
broker's. None of them waits: a handler that runs one is free again when it returns.
"""

from __future__ import annotations

import copy
import os
import socket
import struct
from collections.abc import Callable, Collection
from typing import Any, Protocol

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
from ..memory._transport import MemoryTransport
from ..requests._seen_requests import SeenRequest, Which
from ._corruption import corrupt_response, corrupted_request
from ._exchange import Exchange, Waiting
from ._response_errors import ErrorAnswers, is_of_the_whole, merge, response_class, rest_of

Body = Message | bytes | Callable[[SeenRequest], Message | bytes]
"""What a call is answered with: a response, the bytes behind its header, or what makes either."""

_CLOSE_WITH_RESET = struct.pack("ii", 1, 0)  # linger, for no time
# How often it is looked whether the beginning of a frame has left.
_LEFT_CHECK_SECONDS = 0.001
# APIs whose answer is needed for one with errors in it: it has what the request does not name.
_ANSWERED_FIRST = (api_keys.FETCH, api_keys.METADATA, api_keys.DESCRIBE_LOG_DIRS)

#: Their requests, or their responses, carry records.
RECORD_APIS = (api_keys.PRODUCE, api_keys.FETCH)


class Action(Protocol):
    """What becomes of a call."""

    async def act(self, exchange: Exchange, which: Which) -> None:
        """End a call that is one of ``which``."""
        ...


@attrs.frozen
class Fail:
    """Answer with an error, and do nothing of what was asked for; or do it, and say it failed."""

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
        answers = ErrorAnswers(codec, self.code, self.text, hits, name_of)
        is_whole = is_of_the_whole(codec.api_key, self.code)

        def mark(answer: Any) -> None:
            exchange.give(self._marked(exchange, answers, which, answer))

        names_none = hits is not None and exchange.seen.is_about_all_topics
        if self.executed or names_none or (codec.api_key in _ANSWERED_FIRST and not is_whole):
            await exchange.execute(mark, _without_wait(exchange.message))
            return
        refused = answers.refusal(exchange.message)
        rest = None if hits is None else rest_of(exchange.message, hits, name_of)

        def add(answer: Any) -> None:
            if isinstance(answer, RESPONSES):
                exchange.give(self._instead_of_nothing())
                return
            merge(answer, refused)
            exchange.give(answer)

        if rest is not None:
            await exchange.execute(add, rest)
        elif _has_no_answer(exchange.message):
            exchange.give(self._instead_of_nothing())
        else:
            exchange.give(refused)

    def _marked(
        self, exchange: Exchange, answers: ErrorAnswers, which: Which, answer: Any
    ) -> Message | CloseConnection:
        if isinstance(answer, RESPONSES):
            return self._instead_of_nothing()
        message: Message = answer
        answers.mark(message)
        if isinstance(message, FetchResponse):
            merge(message, answers.refusal(_left_out(exchange, which, message)))
        return message

    def _instead_of_nothing(self) -> CloseConnection:
        """What tells a producer that awaits no answer (acks=0), as Kafka does."""
        return CloseConnection(CloseReason.CLOSE_RESPONSE, f"fault: {self}")


def _has_no_answer(message: Message) -> bool:
    return getattr(message, "acks", None) == 0


def _without_wait(message: Message) -> Message:
    """The request, that nobody waits for data with: the error is there already."""
    if not isinstance(message, FetchRequest):
        return message
    changed = copy.copy(message)
    changed.max_wait_ms = 0
    return changed


def _left_out(exchange: Exchange, which: Which, answer: FetchResponse) -> FetchRequest:
    """The partitions of a session that an incremental answer has nothing to say of (KIP-227)."""
    session = exchange.node.state.fetch_sessions.get(answer.session_id)
    told = {
        (each, partition.partition_index)
        for topic in answer.responses
        for partition in topic.partitions
        for each in (topic.topic, topic.topic_id)
    }
    asked = FetchRequest()
    for topic, partition in session.partitions if session is not None else ():
        name = topic if isinstance(topic, str) else exchange.node.topic_name(topic)
        if (topic, partition) not in told and name is not None and which.hits(name, partition):
            item = FetchTopic(partitions=[FetchPartition(partition=partition)])
            if isinstance(topic, str):
                item.topic = topic
            else:
                item.topic_id = topic
            asked.topics.append(item)
    return asked


@attrs.frozen
class Answer:
    """Answer with this, and do nothing of what was asked for."""

    body: Body

    def __str__(self) -> str:
        return "answer by the test"

    async def act(self, exchange: Exchange, which: Which) -> None:  # noqa: ARG002
        await trio.lowlevel.checkpoint()
        try:
            body = self.body(exchange.seen) if callable(self.body) else self.body
            check_body(body, {exchange.seen.api_key})
            frame = exchange.frame_of(body)
        except Exception as error:  # boundary: what the test gave cannot leave; it is told there
            if exchange.seen.fault is not None:
                exchange.seen.fault.error = error
            await exchange.execute()
            return
        exchange.give(frame if isinstance(body, bytes) else body)


def check_body(body: object, keys: Collection[int]) -> None:
    """Check that a body can be an answer of some APIs.

    Raises:
        TypeError: it is neither a response nor bytes.
        ValueError: it is the response of another API.
    """
    if not isinstance(body, (Message, bytes)):
        raise TypeError(
            f"{body!r} is no answer; allowed: a response of trionet.protocol.messages, bytes, or a"
            " function of the request that makes either"
        )
    if isinstance(body, Message) and {type(body)} != {response_class(key) for key in keys}:
        names = ", ".join(sorted(map(api_keys.name_of, keys))) or "every API"
        raise ValueError(f"{type(body).__name__} is no answer to {names!r}")


@attrs.frozen
class GoOn:
    """Go on: to the faults told later, and then do what was asked for."""

    def __str__(self) -> str:
        return "go on"

    async def act(self, exchange: Exchange, which: Which) -> None:  # noqa: ARG002
        await exchange.go_on()


@attrs.frozen
class Swallow:
    """Never answer; read nothing more of the connection, as a broker that hangs."""

    executed: bool

    def __str__(self) -> str:
        return "swallow, executed" if self.executed else "swallow"

    async def act(self, exchange: Exchange, which: Which) -> None:  # noqa: ARG002
        def keep(_: Any = None) -> None:
            # A broker that stops waits for the answers it owes: this one never comes.
            Waiting.add(exchange, exchange, end, float("inf"))

        def end() -> None:
            if exchange.call.request.channel.is_open:
                exchange.give(CloseConnection(CloseReason.CLOSE_RESPONSE, f"fault: {self}"))

        if self.executed:
            await exchange.execute(keep)
        else:
            await trio.lowlevel.checkpoint()
            keep()


@attrs.frozen
class Close:
    """Close the connection in place of an answer."""

    executed: bool
    reset: bool

    def __str__(self) -> str:
        how = "reset" if self.reset else "close"
        return f"{how} the connection{', executed' if self.executed else ''}"

    async def act(self, exchange: Exchange, which: Which) -> None:  # noqa: ARG002
        def close(_: Any = None) -> None:
            if self.reset:
                close_with_reset(exchange.call.request.channel)
            exchange.give(CloseConnection(CloseReason.CLOSE_RESPONSE, f"fault: {self}"))

        if self.executed:
            await exchange.execute(close)
        else:
            await trio.lowlevel.checkpoint()
            close()


def close_with_reset(channel: Channel) -> None:
    """Have the end of a connection be a reset (RST), whatever was sent and received before."""
    if not channel.is_open:
        return
    option = socket.SOL_SOCKET, socket.SO_LINGER, _CLOSE_WITH_RESET
    if isinstance(channel.transport, MemoryTransport):
        channel.transport.setsockopt(*option)
        return
    # Another descriptor of the same socket: closing this one leaves the connection alone.
    with socket.socket(fileno=os.dup(channel.fd)) as sock:
        sock.setsockopt(*option)


@attrs.frozen
class Cut:
    """Answer, and close the connection in the middle of the answer's frame."""

    at: int | float

    def __str__(self) -> str:
        return f"cut the answer at {self.at}"

    async def act(self, exchange: Exchange, which: Which) -> None:  # noqa: ARG002
        await exchange.execute(lambda answer: self._cut(exchange, answer))

    def _cut(self, exchange: Exchange, answer: Any) -> None:
        request = exchange.call.request
        if not request.channel.is_open:
            return
        if isinstance(answer, RESPONSES):
            exchange.give(CloseConnection(CloseReason.CLOSE_RESPONSE, f"fault: {self}"))
            return
        exchange.note(answer)
        frame = exchange.frame_of(answer)
        count = self.at if isinstance(self.at, int) else int(self.at * len(frame))
        # What the client has sent meanwhile is not to be read in between.
        request.start_throttling()
        request.respond(frame[: max(1, count)])
        exchange.start(lambda: self._close_when_left(exchange))

    async def _close_when_left(self, exchange: Exchange) -> None:
        await trio.lowlevel.checkpoint()
        request = exchange.call.request
        channel = request.channel
        while channel.is_open and (  # noqa: ASYNC110  # a processor tells nobody but its loop
            not request.picked_up_ns or channel.send is not None
        ):
            await trio.sleep(_LEFT_CHECK_SECONDS)
        for processor, each in exchange.node.channels():
            if each is channel:
                processor.selector.disconnect(channel, CloseReason.CLOSE_RESPONSE, f"fault: {self}")
                processor.selector.wakeup()


@attrs.frozen
class Corrupt:
    """Flip a bit of the records of a Produce request, or of a Fetch response, and go on with it."""

    def __str__(self) -> str:
        return "flip a bit of the records"

    async def act(self, exchange: Exchange, which: Which) -> None:
        name_of = exchange.node.topic_name

        def flip(response: Any) -> None:
            if isinstance(response, FetchResponse):
                corrupt_response(response, which, name_of)
            exchange.give(response)

        message = exchange.message
        if isinstance(message, ProduceRequest):
            await exchange.execute(message=corrupted_request(message, which, name_of))
        else:
            await exchange.execute(flip)


@attrs.frozen
class Throttle:
    """Answer, and say that a quota is exceeded; read nothing for as long, if asked (KIP-219)."""

    throttle_ms: int
    mute: bool

    def __str__(self) -> str:
        return f"throttle by {self.throttle_ms} ms{', muted' if self.mute else ''}"

    async def act(self, exchange: Exchange, which: Which) -> None:  # noqa: ARG002
        await exchange.execute(lambda answer: self._give(exchange, answer))

    def _give(self, exchange: Exchange, answer: Any) -> None:
        request = exchange.call.request
        if isinstance(answer, Message):
            answer.throttle_time_ms = self.throttle_ms  # type: ignore[attr-defined]
        if self.mute:
            request.start_throttling()
            exchange.start(self._unmute_later(exchange))
        exchange.give(answer)

    def _unmute_later(self, exchange: Exchange) -> Callable[[], Any]:
        async def unmute() -> None:
            await trio.sleep(self.throttle_ms / 1000)
            exchange.call.request.end_throttling()

        return unmute
