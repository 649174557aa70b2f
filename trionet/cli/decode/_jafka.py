"""Decodes Jafka's requests, responses and message sets to entries (``--jafka``)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import count
from struct import Struct
from typing import Any, Final, NamedTuple
from zlib import crc32

from trionet.errors import ConfigError, WireFormatError
from trionet.jafka import _codec as jafka
from trionet.jafka import _requests as requests
from trionet.protocol.records.compression import _codecs as compression

from ._sources import Kind, Source
from ._split import ENTRY_BYTES_MAX, RawEntry, split
from ._tree import PROBLEM, Blob, Entry, Meant, Problem, Tree, first_problem

#: The types of requests in the order of their numbers.
TYPES: Final = (
    requests.ProducerRequest,
    requests.FetchRequest,
    requests.MultiFetchRequest,
    requests.MultiProducerRequest,
    requests.OffsetRequest,
    requests.CreaterRequest,
    requests.DeleterRequest,
)
#: Their names.
NAMES: Final = tuple(each.__name__.removesuffix("Request") for each in TYPES)
_WITHOUT_RESPONSE: Final = {NAMES.index("Producer"), NAMES.index("MultiProducer")}

_ERRORS: Final = {
    jafka.UNKNOWN: "UNKNOWN",
    jafka.NO_ERROR: "NONE",
    jafka.OFFSET_OUT_OF_RANGE: "OFFSET_OUT_OF_RANGE",
    jafka.INVALID_MESSAGE: "INVALID_MESSAGE",
    jafka.WRONG_PARTITION: "WRONG_PARTITION",
    jafka.INVALID_FETCH_SIZE: "INVALID_FETCH_SIZE",
}
_TIMES: Final = {jafka.LATEST: "LATEST", jafka.EARLIEST: "EARLIEST"}

_length: Final = Struct(">i").unpack_from
_head: Final = Struct(">ibBI")
_head_0: Final = Struct(">ibI")
#: The largest number of messages shown, of decompressed bytes, and of levels of compression, of one
#: frame or entry.
_LEVELS_MAX: Final = 30
_MESSAGES_MAX: Final = 100_000
_DECOMPRESSED_BYTES_MAX: Final = 128 * 1024 * 1024


def type_number(name: str) -> int:
    """Return the number of a request type, which is given by its name or as a number.

    Raises:
        ConfigError: there is no such type.
    """
    for number, known in enumerate(NAMES):
        if name.lower() in (known.lower(), f"{known}Request".lower(), str(number)):
            return number
    names = ", ".join(f"{number} {known}" for number, known in enumerate(NAMES))
    raise ConfigError(f"unknown request type {name!r} of Jafka; expected one of {names}")


def recognise_jafka(peek: Callable[[int], bytes]) -> Kind:
    """Detect a message set by the magic 1 of its first entry, which is no type of a frame."""
    return Kind.BATCHES if peek(5)[4:] == b"\1" else Kind.FRAMES


def jafka_entries(
    sources: Iterable[tuple[Source, Kind]],
    expected: int | None = None,
    types: Collection[int] = (),
    skip: int = 0,
) -> Iterator[Entry]:
    """Yield the entries of all sources in order.

    Args:
        sources: the sources, each with what it contains.
        expected: the type if all frames are responses to such requests; None otherwise.
        types: the types whose frames are shown; empty for all.
        skip: the number of entries to skip.
    """
    conversation = _Conversation(expected)
    numbers = count(1)
    for source, kind in sources:
        is_set = kind is Kind.BATCHES
        found = _split_set(source) if is_set else split(source, kind)
        for number, raw in zip(numbers, found, strict=False):
            entry = (_message_entry if is_set else conversation.entry)(number, source.name, raw)
            if types and entry.about.get("api_key") not in types:
                continue
            if skip:
                skip -= 1
                continue
            yield entry


class _Reading(NamedTuple):
    kind: str
    about: dict[str, Tree]
    body: dict[str, Tree] | None
    problem: str


class _Conversation:
    """Decodes frames; a frame that is no request is the response to the oldest request."""

    def __init__(self, expected: int | None) -> None:
        self._expected = expected
        self._pending: deque[tuple[int, int]] = deque()

    def entry(self, number: int, source: str, raw: RawEntry) -> Entry:
        kind, about, body, problem = "unknown", dict[str, Tree](), None, raw.problem
        if not problem:
            kind, about, body, problem = self._read(number, raw.data)
        if raw.missing:
            truncation = f"truncated: {raw.missing} of {len(raw.data) + raw.missing} bytes missing"
            problem = f"{truncation}; {problem}" if problem else truncation
        size = raw.start - raw.offset + len(raw.data)
        found = Problem(problem, raw.start) if problem else None
        return Entry(number, source, raw.offset, size, kind, about, None, body, found)

    def _read(self, number: int, data: bytes) -> _Reading:
        if self._expected is not None:
            return _read_response(self._expected, {}, data)
        try:
            request = jafka.decode_request(data)
        except WireFormatError as error:
            request, why = None, str(error)
        else:
            why = "its topic is empty"
        if request is None or not _has_topics(request):
            if self._pending:
                asked, key = self._pending.popleft()
                return _read_response(key, {"answers": asked}, data)
            text = f"neither a request ({why}) nor the response to an earlier one; use --response"
            return _Reading("unknown", {}, None, text)
        key = TYPES.index(type(request))
        if key not in _WITHOUT_RESPONSE:
            self._pending.append((number, key))
        body = _struct(request, _Allowance())
        left = len(data) + 4 - len(jafka.encode_request(request))
        problem = f"{left} bytes left over after the request" if left else first_problem(body)
        return _Reading("request", _about(key), body, problem)


def _has_topics(request: requests.JafkaRequest) -> bool:
    """Return whether it names its topics, unlike what a response looks like as a request."""
    match request:
        case requests.MultiFetchRequest(parts) | requests.MultiProducerRequest(parts):
            return all(part.topic for part in parts)
        case _:
            return bool(request.topic)


def _about(key: int) -> dict[str, Tree]:
    return {"api": NAMES[key], "api_key": key}


def _read_response(key: int, about: dict[str, Tree], data: bytes) -> _Reading:
    about = {**_about(key), **about}
    body: dict[str, Tree] = {}
    try:
        error, rest = jafka.decode_response(data)
        body["error_code"] = Meant(error, _ERRORS.get(error, "unknown"))
        match NAMES[key]:
            case "Fetch":
                body["messages"] = _set(rest, _Allowance())
            case "MultiFetch":
                allowance = _Allowance()
                body["parts"] = [
                    {
                        "error_code": Meant(code, _ERRORS.get(code, "unknown")),
                        "messages": _set(part, allowance),
                    }
                    for code, part in jafka.decode_parts(rest)
                ]
            case "Offset":
                body["offsets"] = list(jafka.decode_offsets(rest))
            case "Creater" | "Deleter":
                name = "partitions" if NAMES[key] == "Creater" else "deleted_partitions"
                body[name] = jafka.decode_count(rest)
            case name:
                return _Reading("response", about, body, f"a {name} request has no response")
    except WireFormatError as problem:
        return _Reading("response", about, body, str(problem))
    return _Reading("response", about, body, first_problem(body))


def _struct(request: Any, allowance: _Allowance) -> dict[str, Tree]:
    tree: dict[str, Tree] = {}
    for name, value in request._asdict().items():
        if name == "messages":
            tree[name] = _set(value, allowance)
        elif name == "parts":
            tree[name] = [_struct(part, allowance) for part in value]
        elif name == "time" and value in _TIMES:
            tree[name] = Meant(value, _TIMES[value])
        else:
            tree[name] = value
    return tree


class _Allowance:
    """How many more messages to show, bytes to decompress, and levels of compression to enter.

    A few bytes of gzip hold millions of messages, and more levels than Python's stack.
    """

    def __init__(self) -> None:
        self.levels = _LEVELS_MAX
        self.messages = _MESSAGES_MAX
        self.decompressed_bytes = _DECOMPRESSED_BYTES_MAX


def _set(data: memoryview, allowance: _Allowance) -> list[Tree]:
    """Decode a message set. A truncated last entry is no error: a fetch may end within one."""
    found: list[Tree] = []
    at = 0
    while at < len(data):
        rest = data[at:]
        size = 4 + _length(rest)[0] if len(rest) >= 4 else len(rest) + 1
        if size < 4 or allowance.messages <= 0:
            text = f"invalid length {size - 4}" if size < 4 else "too many messages"
            return [*found, {PROBLEM: text, "bytes": Blob(bytes(rest))}]
        if size > len(rest):
            return [*found, {"cut_short": Blob(bytes(rest))}]
        found.append(_message(rest[:size], allowance))
        at += size
    return found


def _message(data: memoryview, allowance: _Allowance) -> dict[str, Tree]:
    """Decode a complete entry."""
    allowance.messages -= 1
    magic = data[4] if len(data) > 4 else -1
    if magic not in (0, 1) or len(data) < (_head.size if magic else _head_0.size):
        what = "invalid magic" if magic not in (0, 1) else f"too short for magic {magic}"
        return {PROBLEM: what, "bytes": Blob(bytes(data))}
    attributes, payload = compression.NONE, data[_head_0.size :]
    if magic:
        *_, attributes, crc = _head.unpack_from(data)
        payload = data[_head.size :]
    else:
        *_, crc = _head_0.unpack_from(data)
    codec = attributes & 3
    tree: dict[str, Tree] = {
        "magic": magic,
        "codec": Meant(codec, compression.NAMES.get(codec, "unknown")),
        "crc": f"0x{crc:08x}",
        "crc_right": crc == crc32(payload),
    }
    if crc != crc32(payload):
        tree[PROBLEM] = "the CRC is wrong"
    if codec == compression.GZIP and not allowance.levels:
        tree[PROBLEM] = f"compressed more than {_LEVELS_MAX} times"
    elif codec == compression.GZIP:
        _decompress(tree, payload, allowance)
        return tree
    return {**tree, "payload": Blob(bytes(payload))}


def _decompress(tree: dict[str, Tree], payload: memoryview, allowance: _Allowance) -> None:
    """Add the messages in a compressed payload."""
    allowance.levels -= 1
    try:
        inner = compression.decompress(compression.GZIP, payload, allowance.decompressed_bytes)
        allowance.decompressed_bytes -= len(inner)
        tree["messages"] = _set(memoryview(inner), allowance)
    except WireFormatError as error:
        tree[PROBLEM] = str(error)
    allowance.levels += 1


def _message_entry(number: int, source: str, raw: RawEntry) -> Entry:
    body = {} if raw.problem or raw.missing else _message(memoryview(raw.data), _Allowance())
    problem = raw.problem or first_problem(body)
    if raw.missing:
        problem = f"truncated: {raw.missing} of {len(raw.data) + raw.missing} bytes are missing"
    found = Problem(problem, raw.start) if problem else None
    return Entry(number, source, raw.offset, len(raw.data), "message", {}, None, body, found)


def _split_set(source: Source) -> Iterator[RawEntry]:
    """Yield the entries of a message set, such as a segment of a log."""
    while prefix := source.peek(4):
        offset = source.offset
        (length,) = _length(prefix) if len(prefix) == 4 else (0,)
        if not 0 <= length <= ENTRY_BYTES_MAX:
            problem = f"no entry starts here: invalid length {length}; cannot continue"
            yield RawEntry(offset, offset, b"", problem=problem)
            return
        data = source.read(4 + length)
        yield RawEntry(offset, offset, data, 4 + length - len(data))
