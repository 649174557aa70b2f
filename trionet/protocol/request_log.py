"""What a broker's request log says of a request, and of a connection that closed, as bytes.

One value of a record is one of the two. The layout is fixed: a value tells its version, and of a
version nothing changes any more. Numbers are big-endian; in ``docs/reference/request-log.md`` is
every one of them.
"""

from __future__ import annotations

import struct
from typing import Final

import attrs

from trionet.errors import WireFormatError

VERSION: Final = 1

# Kinds of values.
REQUEST: Final = 0
CONNECTION: Final = 1

# How a request ended.
ANSWERED: Final = 0
WITHOUT_ANSWER: Final = 1
CLOSED: Final = 2
GONE: Final = 3

#: A sample of everything, in millionths.
SAMPLE_ALL: Final = 1_000_000
#: Texts are cut here, since one byte says how long they are.
TEXT_BYTES_MAX: Final = 255
#: Numbers beyond it are told as it: 71 minutes, if they are microseconds.
UINT32_MAX: Final = (1 << 32) - 1
UINT64_MAX: Final = (1 << 64) - 1

#: What is another for each request, from ``end`` to ``total_us``; numbers have to fit.
pack_request: Final = struct.Struct(">BhqII7I").pack

# What both kinds begin with: version, kind, the lengths of five texts, node, processor, sample.
_HEAD: Final = ">BB5BiII"
# What is the same for all requests of one API and version on one connection.
_pack_prefix: Final = struct.Struct(f"{_HEAD}hh").pack
_pack_connection: Final = struct.Struct(f"{_HEAD}qQQQQ3B").pack
_head: Final = struct.Struct(_HEAD)
_request: Final = struct.Struct(f"{_HEAD}hhBhqII7I")
_connection: Final = struct.Struct(f"{_HEAD}qQQQQ3B")

#: How long a value is without its texts.
REQUEST_SIZE: Final = _request.size
CONNECTION_SIZE: Final = _connection.size

#: The texts of both kinds, and those that a closed connection has besides.
TEXTS: Final = ("listener", "client_id", "software_name", "software_version", "principal")
CONNECTION_TEXTS: Final = ("reason", "peer", "detail")


@attrs.frozen(kw_only=True)
class Origin:
    """Where a request or a connection came from; a text beyond 255 bytes is cut.

    Attributes:
        node_id: of the broker.
        processor: the number of the processor that served it.
        sample_ppm: out of a million, how many requests were to be logged.
        listener: the name of the listener.
        client_id: what the client calls itself; nothing, if it does not.
        software_name: what software it says it is (KIP-511).
        software_version: of which version.
        principal: who it is.
    """

    node_id: int
    processor: int
    sample_ppm: int = SAMPLE_ALL
    listener: str = ""
    client_id: str = ""
    software_name: str = ""
    software_version: str = ""
    principal: str = ""


@attrs.frozen(kw_only=True)
class LoggedRequest:
    """One request.

    Attributes:
        origin: where it came from.
        api_key: Kafka's number of its API.
        api_version: the version of that.
        end: ``ANSWERED``, ``WITHOUT_ANSWER`` (none was wanted), ``CLOSED`` (its connection, in
            place of an answer) or ``GONE`` (its connection, before the answer).
        error_code: the first error in the answer; 0 for none.
        completed_at_us: when its answer was written, in microseconds since the epoch.
        request_bytes: its size, without the four bytes that tell it.
        response_bytes: the same of its answer; 0 without one.
        request_queue_us: how long it waited for a handler.
        local_us: how long it was handled.
        remote_us: how long it waited for data or for others.
        throttle_us: how long its connection was not read for a quota; no part of the total.
        response_queue_us: how long its answer waited for the processor.
        response_send_us: how long it took to write the answer.
        total_us: from the last byte of the request to the last byte of its answer.
    """

    origin: Origin
    api_key: int
    api_version: int
    end: int = ANSWERED
    error_code: int = 0
    completed_at_us: int
    request_bytes: int
    response_bytes: int
    request_queue_us: int
    local_us: int
    remote_us: int
    throttle_us: int
    response_queue_us: int
    response_send_us: int
    total_us: int


@attrs.frozen(kw_only=True)
class LoggedConnection:
    """One connection that closed.

    Attributes:
        origin: where it came from; the client id is that of its last request.
        closed_at_us: when it ended, in microseconds since the epoch.
        open_us: for how long it was open.
        requests: how many requests it has sent.
        bytes_received: how many bytes, sizes included.
        bytes_sent: how many it was sent.
        reason: the name of its :class:`trionet.net.wire._close_reason.CloseReason`.
        peer: the address and port at the far end.
        detail: the error behind the reason, or nothing.
    """

    origin: Origin
    closed_at_us: int
    open_us: int
    requests: int
    bytes_received: int
    bytes_sent: int
    reason: str
    peer: str = ""
    detail: str = ""


class EncodedOrigin:
    """An origin as the log writes it: what all requests from there have in common, encoded once.

    A request's value is its :meth:`prefix`, what :func:`pack_request` makes, and the texts.

    Attributes:
        texts: what its values end with.
    """

    __slots__ = ("_lengths", "_node_id", "_prefixes", "_processor", "_sample_ppm", "texts")

    def __init__(self, origin: Origin) -> None:
        texts = [cut(getattr(origin, name)) for name in TEXTS]
        self._lengths = tuple(map(len, texts))
        self._node_id = origin.node_id
        self._processor = origin.processor
        self._sample_ppm = origin.sample_ppm
        self._prefixes: dict[int, bytes] = {}
        self.texts = b"".join(texts)

    def prefix(self, api_key: int, api_version: int) -> bytes:
        """What the values of all its requests of one API and version begin with."""
        key = api_key << 16 | api_version
        prefix = self._prefixes.get(key)
        if prefix is None:
            prefix = self._prefixes[key] = _pack_prefix(
                VERSION,
                REQUEST,
                *self._lengths,
                self._node_id,
                self._processor,
                self._sample_ppm,
                api_key,
                api_version,
            )
        return prefix

    def connection(self, logged: LoggedConnection) -> bytes:
        """The value of a connection that came from here."""
        texts = [cut(getattr(logged, name)) for name in CONNECTION_TEXTS]
        head = _pack_connection(
            VERSION,
            CONNECTION,
            *self._lengths,
            self._node_id,
            self._processor,
            SAMPLE_ALL,
            logged.closed_at_us,
            min(logged.open_us, UINT64_MAX),
            min(logged.requests, UINT64_MAX),
            min(logged.bytes_received, UINT64_MAX),
            min(logged.bytes_sent, UINT64_MAX),
            *map(len, texts),
        )
        return b"".join((head, self.texts, *texts))


def encode(logged: LoggedRequest | LoggedConnection) -> bytes:
    """The value that says this."""
    origin = EncodedOrigin(logged.origin)
    if isinstance(logged, LoggedConnection):
        return origin.connection(logged)
    middle = pack_request(
        logged.end,
        logged.error_code,
        logged.completed_at_us,
        *(
            min(number, UINT32_MAX)
            for number in (
                logged.request_bytes,
                logged.response_bytes,
                logged.request_queue_us,
                logged.local_us,
                logged.remote_us,
                logged.throttle_us,
                logged.response_queue_us,
                logged.response_send_us,
                logged.total_us,
            )
        ),
    )
    return origin.prefix(logged.api_key, logged.api_version) + middle + origin.texts


def decode(value: bytes | bytearray | memoryview) -> LoggedRequest | LoggedConnection:
    """What a value says.

    Raises:
        WireFormatError: it is of another version or kind, or its length is not what it tells.
    """
    version, kind = _version_and_kind(value)
    if version != VERSION or kind not in (REQUEST, CONNECTION):
        raise WireFormatError(
            f"a value of a request log has version {version} and kind {kind}; known: version"
            f" {VERSION} with kind {REQUEST} for a request and {CONNECTION} for a connection"
        )
    layout = _request if kind == REQUEST else _connection
    if len(value) < layout.size:
        raise _wrong_length(value)
    fields = layout.unpack_from(value)
    lengths = fields[2:7]
    if kind == REQUEST:
        texts = _texts(value, layout.size, lengths)
        return LoggedRequest(
            origin=Origin(**dict(zip(_ORIGIN_FIELDS, (*fields[7:10], *texts), strict=True))),
            **dict(zip(_REQUEST_FIELDS, fields[10:], strict=True)),
        )
    texts = _texts(value, layout.size, (*lengths, *fields[-3:]))
    own = (*fields[10:-3], *texts[len(TEXTS) :])
    return LoggedConnection(
        origin=Origin(
            **dict(zip(_ORIGIN_FIELDS, (*fields[7:10], *texts[: len(TEXTS)]), strict=True))
        ),
        **dict(zip(_CONNECTION_FIELDS, own, strict=True)),
    )


_ORIGIN_FIELDS: Final = tuple(field.name for field in attrs.fields(Origin))
_REQUEST_FIELDS: Final = tuple(field.name for field in attrs.fields(LoggedRequest))[1:]
_CONNECTION_FIELDS: Final = tuple(field.name for field in attrs.fields(LoggedConnection))[1:]


def _version_and_kind(value: bytes | bytearray | memoryview) -> tuple[int, int]:
    if len(value) < _head.size:
        raise _wrong_length(value)
    return value[0], value[1]


def _texts(
    value: bytes | bytearray | memoryview, position: int, lengths: tuple[int, ...]
) -> list[str]:
    if len(value) != position + sum(lengths):
        raise _wrong_length(value)
    texts = []
    for length in lengths:
        texts.append(str(value[position : position + length], "utf-8", "replace"))
        position += length
    return texts


def _wrong_length(value: bytes | bytearray | memoryview) -> WireFormatError:
    return WireFormatError(
        f"a value of a request log has {len(value)} bytes, which is not what it tells"
    )


def cut(text: str) -> bytes:
    """A text as it is written: in UTF-8, cut between two characters."""
    data = text.encode("utf-8", "replace")
    if len(data) <= TEXT_BYTES_MAX:
        return data
    return data[:TEXT_BYTES_MAX].decode("utf-8", "ignore").encode()
