"""The handlers of the seven requests.

A response has an error only in the parts of fetches. Every other failure closes the connection,
which is all that a client of a request to produce can see.
"""

# Compiled by mypyc.

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, cast

import trio

from .._util._logging import get_logger
from .._util._off_loop import off_loop
from .._util._wall_clock import now_ms
from .._util.files._page_cache import CachedFile, is_range_cached, warm_range
from ..errors import TrionetError, WireFormatError
from ..metrics._request_times import RequestTimes
from ..net.wire._close_reason import CloseReason
from ..net.wire._transmission import Chunk, FileRange, outgoing
from ..server._request_channel import NO_OP, CloseConnection, Request, Response
from . import _codec as codec
from . import _requests as kinds
from ._config import JafkaConfig
from ._requests import Bytes, Produced
from ._topics import Topics, is_legal

logger = get_logger("trionet.jafka")

FETCH_TYPE: Final = b"\0\1"
#: A set of entries up to this size is copied into its response, instead of sent from the file: two
#: system calls less. The parts of a MultiFetch response share it, since 32,767 of them may wait for
#: a client that does not read.
COPIED_BYTES_MAX: Final = 16 * 1024
#: How many bytes gzip may make of one.
DECOMPRESSION_RATIO: Final = 1000
#: The parts of a request that are handled before other tasks run.
PARTS_PER_STEP: Final = 200
#: The appends of a request before other tasks run.
APPENDS_PER_STEP: Final = 10
#: A response has a signed 32-bit size.
RESPONSE_BYTES_MAX: Final = 2**31 - 1
_HEAD_BYTES: Final = 6


class Handlers:
    """Handles requests for the topics of a broker.

    Args:
        config: the settings.
        topics: the topics.
    """

    def __init__(self, config: JafkaConfig, topics: Topics) -> None:
        self._payload_bytes_max: int = config["max.message.size"]
        self._decompressed_bytes_max: int = config["max.socket.request.bytes"]
        self._is_password = config.is_password
        self._topics = topics
        self._warns_at = -math.inf
        # The request that `never_waits` was asked about last, and its response if it is a fetch
        # from the page cache.
        self._asked: Request | None = None
        self._response: Response | None = None
        self._handlers: Mapping[type[Any], Callable[[Any], Awaitable[Response]]] = {
            kinds.ProducerRequest: self._produce,
            kinds.FetchRequest: self._fetch,
            kinds.MultiFetchRequest: self._multi_fetch,
            kinds.MultiProducerRequest: self._multi_produce,
            kinds.OffsetRequest: self._offsets,
            kinds.CreaterRequest: self._create,
            kinds.DeleterRequest: self._delete,
        }
        self._times = {kind.__name__: RequestTimes(kind.__name__) for kind in self._handlers}
        self._errors: Counter[tuple[str, ...]] = Counter()

    async def handle(self, request: Request) -> Response:  # noqa: ASYNC910 - most need not wait
        """Handle a request, and return its response. Never raises an error of the client."""
        if self._asked is not request:
            self.never_waits(request)
        response, self._asked, self._response = self._response, None, None
        if response is not None:
            return response
        payload = request.payload
        try:
            if isinstance(payload, Produced):
                self._note(request, "ProducerRequest")
                return await self._append_all(codec.decode_produced(payload))
            decoded = None
            for decoded in codec.decode_in_steps(payload):
                if decoded is None:
                    await trio.lowlevel.checkpoint()
            kind = type(decoded)
            self._note(request, kind.__name__)
            return await self._handlers[kind](decoded)
        except (WireFormatError, ValueError) as error:
            reason, detail = CloseReason.INVALID_REQUEST, str(error)
        except (OSError, TrionetError) as error:
            reason, detail = CloseReason.HANDLER_FAILED, str(error)
        # At most one warning a second, however often a client fails.
        now = trio.current_time()
        level = logging.WARNING if now >= self._warns_at else logging.DEBUG
        if level == logging.WARNING:
            self._warns_at = now + 1
        logger.log(level, "closing %s: %s", request.connection_id, detail)
        return CloseConnection(reason, detail)

    def never_waits(self, request: Request) -> bool:
        """Whether a request is a fetch of what is in the page cache, so that no thread is needed.

        Finding out is most of the work, so the response is kept for :meth:`handle`.
        """
        self._asked, self._response = request, self._fetch_cached(request)
        return self._response is not None

    def _fetch_cached(self, request: Request) -> Response | None:
        """Return the response to a fetch of what is in the page cache, and None otherwise."""
        if request.payload[:2] != FETCH_TYPE:
            return None
        try:
            fetch = cast(kinds.FetchRequest, codec.decode_request(request.payload))
            error, found = self._find(fetch, RESPONSE_BYTES_MAX - _HEAD_BYTES)
            if found is not None and not _is_cached(found):
                return None
            response = outgoing(_fetched(error, found, COPIED_BYTES_MAX))
        except (WireFormatError, ValueError, OSError):
            return None  # the handler fails in the same way, and closes the connection
        self._note(request, "FetchRequest", error)
        return response

    def _note(self, request: Request, name: str, error: int = codec.NO_ERROR) -> None:
        request.kind, request.times = name, self._times[name]
        if error:
            self._errors[name, str(error)] += 1

    # A source of request counts, for the metrics.

    def request_times(self) -> Iterable[RequestTimes]:
        return self._times.values()

    def requests(self) -> Mapping[tuple[str, ...], int]:
        return {(name, ""): times.requests for name, times in self._times.items()}

    def deprecated_requests(self) -> Mapping[tuple[str, ...], int]:
        return {}

    def errors(self) -> Mapping[tuple[str, ...], int]:
        return self._errors  # of fetches, without NONE: no other response has an error

    # One handler for each type of request.

    async def _produce(self, request: kinds.ProducerRequest) -> Response:
        return await self._append_all([request])

    async def _multi_produce(self, request: kinds.MultiProducerRequest) -> Response:
        return await self._append_all(request.parts, len(request.parts))

    async def _append_all(  # noqa: ASYNC910 - most need not wait
        self, requests: Iterable[codec.Produce], count: int = 0
    ) -> Response:
        """Append message sets: all that are valid up to the first that is not.

        Those of a partition are written together. If a write fails, the rest of that partition's
        sets are skipped; other partitions are still written.

        Args:
            requests: what to append.
            count: how many these are, if they are the parts of a request, for errors.

        Raises:
            WireFormatError, ValueError: a request is invalid.
            OSError, TrionetError: a log cannot be opened, created or written to.
        """
        sets: dict[tuple[str, int], list[tuple[Bytes, int]]] = {}
        failure: Exception | None = None
        number = 0
        try:
            for topic, partition, entries in requests:
                if topic is None or partition not in self._topics.logs.get(topic, ()):
                    # Creates the topic's logs even if nothing can be appended.
                    topic = _legal(topic)
                    partition = self._topics.choose(topic, partition)
                    await self._topics.log_of(topic, partition)
                compressed: list[memoryview] = []
                size, messages = codec.check_set(entries, self._payload_bytes_max, compressed)
                if compressed or size < len(entries):
                    checked = await self._checked(entries, compressed, size, messages)
                else:
                    checked = entries, messages
                if size:
                    sets.setdefault((topic, partition), []).append(checked)
                number += 1
                if number % PARTS_PER_STEP == 0:
                    await trio.lowlevel.checkpoint()
        except (TrionetError, ValueError, OSError) as error:
            failure = error
            if count and isinstance(error, (WireFormatError, ValueError)):
                failure.args = (f"part {number} of {count}: {error}",)
        number = 0
        for place, left in sets.items():
            try:
                while left:
                    await self._append(*place, left)
                    number += 1
                    if number % APPENDS_PER_STEP == 0:
                        await trio.lowlevel.checkpoint()
            except (TrionetError, OSError) as error:
                failure = failure or error
        if failure is not None:
            raise failure
        return NO_OP

    async def _checked(  # noqa: ASYNC910 - most need not wait
        self, entries: Bytes, compressed: list[memoryview], size: int, messages: int
    ) -> tuple[Bytes, int]:
        """Validate what the first call of `check_set` has left of a set, or found compressed.

        Returns:
            What to append, and how many messages that is.
        """
        start = 0
        while start < size < len(entries):
            await trio.lowlevel.checkpoint()
            start = size
            size, found = codec.check_set(entries, self._payload_bytes_max, compressed, start)
            messages += found
        if compressed:
            # It may decompress to a thousand times as much.
            cost = sum(map(len, compressed)) * DECOMPRESSION_RATIO
            steps = codec.check_compressed(compressed, self._decompressed_bytes_max)
            while (counted := await off_loop(cost, next, steps, None)) is not None:
                messages += counted
        return memoryview(entries)[:size], messages

    async def _append(  # noqa: ASYNC910 - most need not wait
        self, topic: str, partition: int, left: list[tuple[Bytes, int]]
    ) -> None:
        """Append some of the sets that are left, and take them out of the list."""
        # Looked up after each wait: the topic may have been deleted, and created again.
        while (log := await self._topics.log_of(topic, partition)).needs_flush:
            await self._topics.flush(log)
        del left[: log.append(left)]
        self._topics.appended(topic, log)

    async def _fetch(self, request: kinds.FetchRequest) -> Response:
        return outgoing(await self._read_all("FetchRequest", (request,)))

    async def _multi_fetch(self, request: kinds.MultiFetchRequest) -> Response:
        chunks = await self._read_all("MultiFetchRequest", request.parts)
        return outgoing([codec.response_head(sum(map(len, chunks))), *chunks])

    async def _read_all(  # noqa: ASYNC910 - mostly cached
        self, name: str, parts: tuple[kinds.FetchRequest, ...]
    ) -> list[Chunk]:
        """Return the responses to fetches, each with its size and error."""
        chunks: list[Chunk] = []
        left = RESPONSE_BYTES_MAX - _HEAD_BYTES * (1 + len(parts))
        for number, part in enumerate(parts, 1):
            error, found = self._find(part, left)
            try:
                if found is not None and not _is_cached(found):
                    file = cast(CachedFile, found.file)
                    await trio.to_thread.run_sync(warm_range, file, found.offset, found.count)
                chunks += _fetched(error, found, COPIED_BYTES_MAX // len(parts))
                left -= 0 if found is None else found.count
            except OSError as failure:
                logger.warning("cannot read %s: %s", part.topic, failure)
                error = codec.UNKNOWN
                chunks += _fetched(error, None, 0)
            if error:
                self._errors[name, str(error)] += 1
            if number % PARTS_PER_STEP == 0:
                await trio.lowlevel.checkpoint()
        return chunks

    def _find(self, request: kinds.FetchRequest, bytes_max: int) -> tuple[int, FileRange | None]:
        """Return the error, and what to send if it is not empty."""
        _, partition, offset, wanted = request
        topic = _not_null(request.topic)
        log = self._topics.logs.get(topic, {}).get(partition)
        if log is None:
            if not is_legal(topic):
                return codec.UNKNOWN, None
            is_there = 0 <= partition < self._topics.partition_count(topic)
            return codec.NO_ERROR if is_there else codec.WRONG_PARTITION, None
        found = log.read(offset, min(max(0, wanted), bytes_max))
        if found is None:
            return codec.OFFSET_OUT_OF_RANGE, None
        if wanted < 0:
            return codec.INVALID_FETCH_SIZE, None
        return codec.NO_ERROR, found if found.count else None

    async def _offsets(self, request: kinds.OffsetRequest) -> Response:  # noqa: ASYNC910
        topic, partition, time, count_max = request
        topic = _legal(topic)
        self._topics.check_partition(topic, partition)
        if count_max < 0:
            raise ValueError(f"the number of offsets is {count_max}; allowed: 0 or more")
        log = self._topics.logs.get(topic, {}).get(partition)
        return codec.encode_offsets(
            [] if log is None else log.offsets_before(time, count_max, now_ms())
        )

    async def _create(self, request: kinds.CreaterRequest) -> Response:  # noqa: ASYNC910
        topic, partitions, _ = request
        return codec.encode_count(self._topics.create(_legal(topic), partitions))

    async def _delete(self, request: kinds.DeleterRequest) -> Response:
        if not self._is_password(request.password):
            await trio.lowlevel.checkpoint()
            return codec.encode_count(-1)
        return codec.encode_count(await self._topics.delete(_not_null(request.topic)))


def _is_cached(found: FileRange) -> bool:
    return is_range_cached(cast(CachedFile, found.file), found.offset, found.count)


def _fetched(error: int, found: FileRange | None, copied_bytes_max: int) -> list[Chunk]:
    """Return the response to a fetch, or a part of one: copied if it is small."""
    if found is None:
        return [codec.response_head(0, error)]
    if found.count > copied_bytes_max:
        return [codec.response_head(found.count, error), found]
    data = found.file.read_at(found.offset, found.count)
    return [codec.response_head(len(data), error) + data]


def _not_null(topic: str | None) -> str:
    if topic is None:
        raise ValueError("the name of the topic is null; allowed: 1 to 255 characters")
    return topic


def _legal(topic: str | None) -> str:
    if not is_legal(name := _not_null(topic)):
        raise ValueError(
            f"the name of topic {topic!r} is illegal; allowed: 1 to 255 characters, not '.' or"
            " '..', no '/', and no control, private or special characters"
        )
    return name
