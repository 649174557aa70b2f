"""The handlers of the seven requests.

A response has an error only in the parts of fetches. Every other failure closes the connection,
which is all that a client of a request to produce can see.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias, cast

import trio

from .._util._off_loop import off_loop
from .._util._text import single_line
from .._util._wall_clock import now_ms
from ..errors import WireFormatError
from ..metrics._request_times import RequestTimes
from ..net.wire._close_reason import CloseReason
from ..net.wire._transmission import Chunk, FileRange, outgoing
from ..server._request_channel import NO_OP, CloseConnection, Request, Response
from . import _codec as codec
from ._config import JafkaConfig
from ._frames import Produced
from ._log import PartitionLog, Segment
from ._topics import Topics

logger = logging.getLogger("trionet.jafka")

FETCH_TYPE: Final = b"\0\1"
#: With the longest name that a topic may have.
FETCH_REQUEST_BYTES_MAX: Final = 1024
#: A set of entries up to this size is copied into its response, instead of sent from the file: two
#: system calls less. The parts of a MultiFetch response share it, since 32,767 of them may wait for
#: a client that does not read.
COPIED_BYTES_MAX: Final = 16 * 1024
#: How many bytes gzip may make of one.
DECOMPRESSION_RATIO: Final = 1000
#: The parts of a request that are handled before other tasks run.
PARTS_PER_STEP: Final = 100
#: A response has a signed 32-bit size.
RESPONSE_BYTES_MAX: Final = 2**31 - 1
_HEAD_BYTES: Final = 6

_Part: TypeAlias = tuple[int, bytes | FileRange]


class Handlers:
    """Handles requests for the topics of a broker.

    Args:
        config: the settings.
        topics: the topics.
    """

    def __init__(self, config: JafkaConfig, topics: Topics) -> None:
        self._payload_bytes_max = config["max.message.size"]
        self._decompressed_bytes_max = config["max.socket.request.bytes"]
        self._is_password = config.is_password
        self._topics = topics
        self._warns_at = -math.inf
        self._handlers: Mapping[type[Any], Callable[[Any], Awaitable[Response]]] = {
            codec.ProducerRequest: self._produce,
            codec.FetchRequest: self._fetch,
            codec.MultiFetchRequest: self._multi_fetch,
            codec.MultiProducerRequest: self._multi_produce,
            codec.OffsetRequest: self._offsets,
            codec.CreaterRequest: self._create,
            codec.DeleterRequest: self._delete,
        }
        self._times = {kind.__name__: RequestTimes(kind.__name__) for kind in self._handlers}
        self._errors: Counter[tuple[str, int]] = Counter()

    async def handle(self, request: Request) -> Response:  # noqa: ASYNC910 - most need not wait
        """Handle a request, and return its response. Never raises an error of the client."""
        payload = request.payload
        try:
            if isinstance(payload, Produced):
                return await self._produce_all(request, payload)
            decoded = codec.decode_request(payload)
            self._note(request, decoded)
            return await self._handlers[type(decoded)](decoded)
        except (WireFormatError, ValueError) as error:
            reason, detail = CloseReason.INVALID_REQUEST, str(error)
        except OSError as error:
            reason, detail = CloseReason.HANDLER_FAILED, str(error)
        # Of a client that does this again and again, a line a second is enough.
        now = trio.current_time()
        level = logging.WARNING if now >= self._warns_at else logging.DEBUG
        if level == logging.WARNING:
            self._warns_at = now + 1
        logger.log(level, "closing %s: %s", request.connection_id, single_line(detail))
        return CloseConnection(reason, detail)

    def never_waits(self, request: Request) -> bool:
        """Whether a request is a fetch of what is in the page cache, so that no thread is needed.

        It is decoded twice then, which takes a fraction of the passes of the loop that it saves.
        """
        if request.payload[:2] != FETCH_TYPE or len(request.payload) > FETCH_REQUEST_BYTES_MAX:
            return False
        try:
            fetch = codec.decode_request(request.payload)
        except WireFormatError:
            return False
        topic, partition, offset, wanted = cast(codec.FetchRequest, fetch)
        log = self._topics.logs.get(topic or "", {}).get(partition)
        found = log.read(offset, max(0, wanted)) if log is not None else None
        if found is None or not found.count:
            return True
        return cast(Segment, found.file).is_cached(found.offset, found.count)

    def _note(self, request: Request, decoded: codec.JafkaRequest) -> None:
        name = type(decoded).__name__
        request.kind, request.times = name, self._times[name]

    # A source of request counts, for the metrics.

    def request_times(self) -> Iterable[RequestTimes]:
        return self._times.values()

    def requests(self) -> Mapping[tuple[str, ...], int]:
        return {(name, ""): times.requests for name, times in self._times.items()}

    def deprecated_requests(self) -> Mapping[tuple[str, ...], int]:
        return {}

    def errors(self) -> Mapping[tuple[str, ...], int]:
        names = {code: str(code) for code in range(-1, 5)} | {codec.NO_ERROR: "NONE"}
        return {(name, names[code]): count for (name, code), count in self._errors.items()}

    # One handler for each type of request.

    async def _produce_all(self, request: Request, payload: Produced) -> Response:  # noqa: ASYNC910
        for number, each in enumerate(payload.requests()):
            decoded = codec.decode_request(each)
            if not number:
                self._note(request, decoded)
            await self._handlers[type(decoded)](decoded)
            if number % PARTS_PER_STEP == PARTS_PER_STEP - 1:
                await trio.lowlevel.checkpoint()
        return NO_OP

    async def _produce(self, request: codec.ProducerRequest) -> Response:  # noqa: ASYNC910
        topic, partition, entries = request
        if topic is None or partition not in self._topics.logs.get(topic, ()):
            topic, partition = await self._log_to_append(topic, partition)
        size = messages = 0
        compressed: list[memoryview] = []
        while True:
            checked = codec.check_set(entries, self._payload_bytes_max, size)
            size = checked.stop
            messages += checked.messages
            compressed += checked.compressed
            if checked.is_whole:
                break
            await trio.lowlevel.checkpoint()
        if compressed:
            # It may decompress to a thousand times as much.
            cost = sum(map(len, compressed)) * DECOMPRESSION_RATIO
            steps = codec.check_compressed(compressed, self._decompressed_bytes_max)
            while (found := await off_loop(cost, next, steps, None)) is not None:
                messages += found
        if size:
            # Looked up after each wait: the topic may have been deleted, and created again.
            while (log := await self._topics.log_of(topic, partition)).needs_flush:
                await self._topics.flush(log)
            log.append(memoryview(entries)[:size], messages)
            self._topics.appended(topic, log)
        return NO_OP

    async def _log_to_append(  # noqa: ASYNC910
        self, topic: str | None, partition: int
    ) -> tuple[str, int]:
        """Return what to append to, and create the topic's logs even if nothing can be appended."""
        topic = self._legal(topic)
        partition = self._topics.choose(topic, partition)
        await self._topics.log_of(topic, partition)
        return topic, partition

    def _legal(self, topic: str | None) -> str:
        if topic is None or not self._topics.is_legal(topic):
            raise _illegal(topic)
        return topic

    async def _multi_produce(  # noqa: ASYNC910
        self, request: codec.MultiProducerRequest
    ) -> Response:
        for number, part in enumerate(request.parts):
            try:
                await self._produce(part)
            except (WireFormatError, ValueError, OSError) as error:
                # The parts before it stay: clients cannot see how far the server came.
                error.args = (f"part {number} of {len(request.parts)}: {error}",)
                raise
            if number % PARTS_PER_STEP == PARTS_PER_STEP - 1:
                await trio.lowlevel.checkpoint()
        return NO_OP

    async def _fetch(self, request: codec.FetchRequest) -> Response:  # noqa: ASYNC910
        left = RESPONSE_BYTES_MAX - _HEAD_BYTES
        error, data = await self._read(request, left, COPIED_BYTES_MAX)
        self._errors["FetchRequest", error] += 1
        head = codec.response_head(len(data), error)
        return head + data if isinstance(data, bytes) else outgoing([head, data])

    async def _multi_fetch(self, request: codec.MultiFetchRequest) -> Response:  # noqa: ASYNC910
        left = RESPONSE_BYTES_MAX - _HEAD_BYTES * (1 + len(request.parts))
        chunks: list[Chunk] = []
        size = 0
        for number, part in enumerate(request.parts):
            error, data = await self._read(part, left, COPIED_BYTES_MAX // len(request.parts))
            self._errors["MultiFetchRequest", error] += 1
            chunks += (codec.response_head(len(data), error), data)
            left -= len(data)
            size += _HEAD_BYTES + len(data)
            if number % PARTS_PER_STEP == PARTS_PER_STEP - 1:
                await trio.lowlevel.checkpoint()
        return outgoing([codec.response_head(size), *chunks])

    async def _read(  # noqa: ASYNC910
        self, request: codec.FetchRequest, bytes_max: int, copied_bytes_max: int
    ) -> _Part:
        topic, partition, offset, wanted = request
        if topic is None:
            raise _illegal(topic)
        if not self._topics.is_legal(topic):
            return codec.UNKNOWN, b""
        if not 0 <= partition < self._topics.partition_count(topic):
            return codec.WRONG_PARTITION, b""
        log = self._topics.logs.get(topic, {}).get(partition)
        if log is None:
            return codec.NO_ERROR, b""
        found = log.read(offset, min(max(0, wanted), bytes_max))
        if found is None:
            return codec.OFFSET_OUT_OF_RANGE, b""
        if wanted < 0:
            return codec.INVALID_FETCH_SIZE, b""
        try:
            return codec.NO_ERROR, await _readable(found, copied_bytes_max)
        except OSError as error:
            logger.warning("cannot read %s: %s", single_line(log.folder), error)
            return codec.UNKNOWN, b""

    async def _offsets(self, request: codec.OffsetRequest) -> Response:  # noqa: ASYNC910
        log = self._log(request.topic, request.partition)
        if request.count_max < 0:
            raise ValueError(f"the number of offsets is {request.count_max}; allowed: 0 or more")
        if log is None:
            return codec.encode_offsets([])
        return codec.encode_offsets(log.offsets_before(request.time, request.count_max, now_ms()))

    def _log(self, topic: str | None, partition: int) -> PartitionLog | None:
        topic = self._legal(topic)
        count = self._topics.partition_count(topic)
        if not 0 <= partition < count:
            raise ValueError(f"partition {partition} does not exist; allowed: 0 to {count - 1}")
        return self._topics.logs.get(topic, {}).get(partition)

    async def _create(self, request: codec.CreaterRequest) -> Response:  # noqa: ASYNC910
        topic, partitions, _ = request
        topic = self._legal(topic)
        if partitions < 0:
            raise ValueError(f"the number of partitions is {partitions}; allowed: 0 or more")
        return codec.encode_count(self._topics.create(topic, partitions))

    async def _delete(self, request: codec.DeleterRequest) -> Response:
        topic, password = request
        if not self._is_password(password):
            await trio.lowlevel.checkpoint()
            return codec.encode_count(-1)
        if topic is None:
            raise _illegal(topic)
        return codec.encode_count(await self._topics.delete(topic))


async def _readable(  # noqa: ASYNC910 - mostly cached
    found: FileRange, copied_bytes_max: int
) -> bytes | FileRange:
    """Return a range that can be sent without waiting for the disk, copied if it is small."""
    if not found.count:
        return b""
    segment = cast(Segment, found.file)
    if not segment.is_cached(found.offset, found.count):
        await trio.to_thread.run_sync(segment.warm, found.offset, found.count)
    if found.count > copied_bytes_max:
        return found
    return segment.read_at(found.offset, found.count)


def _illegal(topic: str | None) -> ValueError:
    return ValueError(
        f"the name of topic {topic!r} is illegal; allowed: 1 to 255 characters, not '.' or '..', no"
        " '/', and no control, private or special characters"
    )
