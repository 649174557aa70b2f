"""The binary format of a broker's request log.

The value of a log record describes a request or a closed connection. A value starts with its
version number, and the layout of a version never changes. Numbers are big-endian.
``docs/reference/request-log.md`` describes all fields.
"""

from __future__ import annotations

import struct
from typing import Final

import attrs

from trionet.errors import WireFormatError

__all__ = ["LoggedConnection", "LoggedRequest", "Origin", "decode", "encode"]

VERSION: Final = 1

# Kinds of values.
REQUEST: Final = 0
CONNECTION: Final = 1

# How a request ended.
RESPONDED: Final = 0
NO_RESPONSE: Final = 1
CLOSED: Final = 2
GONE: Final = 3

#: The sampling rate that logs all requests, in millionths.
SAMPLE_ALL: Final = 1_000_000
#: The maximum length of a text, which is stored in one byte.
TEXT_BYTES_MAX: Final = 255
#: The maximum of most numbers, which are capped; for microseconds it is 71 minutes.
UINT32_MAX: Final = (1 << 32) - 1
UINT64_MAX: Final = (1 << 64) - 1

#: Packs the variable fields of a request, from ``end`` to ``total_us``, without capping numbers.
pack_request: Final = struct.Struct(">BhqII7I").pack

# The head of both kinds: version, kind, the lengths of five texts, node, processor, sample.
_HEAD: Final = ">BB5BiII"
# The fields that all requests of one API and version on one connection have in common.
_pack_prefix: Final = struct.Struct(f"{_HEAD}hh").pack
_pack_connection: Final = struct.Struct(f"{_HEAD}qQQQQ3B").pack
_head: Final = struct.Struct(_HEAD)
_request: Final = struct.Struct(f"{_HEAD}hhBhqII7I")
_connection: Final = struct.Struct(f"{_HEAD}qQQQQ3B")

#: The size of a value without texts.
REQUEST_SIZE: Final = _request.size
CONNECTION_SIZE: Final = _connection.size

#: The text fields of both kinds, and the additional text fields of a closed connection.
TEXTS: Final = ("listener", "client_id", "software_name", "software_version", "principal")
CONNECTION_TEXTS: Final = ("reason", "peer", "detail")


@attrs.frozen(kw_only=True)
class Origin:
    """Where a request or a connection came from. Texts are truncated to 255 bytes.

    Attributes:
        node_id: the node id of the broker.
        processor: the number of the processor that served the connection.
        sample_ppm: the sampling rate of the log, in millionths.
        listener: the name of the listener.
        client_id: the client id; empty if it was null.
        software_name: the name of the client software (KIP-511).
        software_version: the version of the client software.
        principal: the authenticated principal.
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
    """A request, as recorded in the log.

    Attributes:
        origin: the broker, listener and client of the request.
        api_key: the API key.
        api_version: the version of the API.
        end: ``RESPONDED``, ``NO_RESPONSE`` (the client expects no response), ``CLOSED`` (the broker
            closed the connection instead of responding) or ``GONE`` (the connection was closed
            before the response was sent).
        error_code: the first error in the response; 0 for none.
        completed_at_us: the time when the response was written, in microseconds since the epoch.
        request_bytes: the size of the request, without the size prefix.
        response_bytes: the size of the response, without the size prefix; 0 if there was none.
        request_queue_us: how long the request waited for a handler.
        local_us: how long the handler ran.
        remote_us: how long the request waited for data or for other clients.
        throttle_us: how long a quota muted the connection; not part of ``total_us``.
        response_queue_us: how long the response waited for the processor.
        response_send_us: how long writing the response took.
        total_us: the time from the last byte of the request to the last byte of the response.
    """

    origin: Origin
    api_key: int
    api_version: int
    end: int = RESPONDED
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
    """A closed connection, as recorded in the log.

    Attributes:
        origin: the broker, listener and client of the connection; the client id is that of its last
            request.
        closed_at_us: the time when the connection was closed, in microseconds since the epoch.
        open_us: how long the connection was open.
        requests: the number of requests received.
        bytes_received: the number of bytes received, including size prefixes.
        bytes_sent: the number of bytes sent.
        reason: the name of the :class:`trionet.net.wire._close_reason.CloseReason`.
        peer: the address and port of the peer.
        detail: the error that closed the connection; empty if there was none.
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
    """The encoded fields that all requests of an origin share.

    The value of a request consists of :meth:`prefix`, the result of :func:`pack_request`, and
    :attr:`texts`.

    Attributes:
        texts: the encoded texts, with which each value ends.
    """

    __slots__ = ("_lengths", "_node_id", "_prefixes", "_processor", "_sample_ppm", "texts")

    def __init__(self, origin: Origin) -> None:
        texts = [cut(getattr(origin, name)) for name in TEXTS]
        self._lengths = tuple(map(len, texts))
        self._node_id = origin.node_id
        self._processor = origin.processor
        self._sample_ppm = origin.sample_ppm
        self._prefixes: dict[int, bytes] = {}
        self.texts: bytes = b"".join(texts)

    def prefix(self, api_key: int, api_version: int) -> bytes:
        """Return the bytes with which the value of a request of an API and version starts."""
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
        """Encode a closed connection with this origin."""
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
    """Encode a logged request or closed connection."""
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
    """Decode the value of a log record.

    Raises:
        WireFormatError: the version or kind is not supported, or the length does not match the
            contents.
    """
    version, kind = _version_and_kind(value)
    if version != VERSION or kind not in (REQUEST, CONNECTION):
        raise WireFormatError(
            f"unsupported request log value of version {version} and kind {kind}; expected version"
            f" {VERSION}, and kind {REQUEST} (a request) or {CONNECTION} (a connection)"
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
        f"request log value of {len(value)} bytes: the length does not match its contents"
    )


def cut(text: str) -> bytes:
    """Encode a text as UTF-8, truncated to 255 bytes at a character boundary."""
    data = text.encode("utf-8", "replace")
    if len(data) <= TEXT_BYTES_MAX:
        return data
    return data[:TEXT_BYTES_MAX].decode("utf-8", "ignore").encode()
