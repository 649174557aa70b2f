"""Decodes frames to entries, identifying each response by its request."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator
from itertools import count
from struct import Struct
from typing import Final, NamedTuple

from trionet.errors import WireFormatError
from trionet.protocol._codec import ApiVersionCodec, lookup, schema_versions
from trionet.protocol._header import decode_request_header
from trionet.protocol.api_keys import API_VERSIONS, PRODUCE, name_of
from trionet.protocol.error_codes import UNSUPPORTED_VERSION

from ._messages import Reading, fits_response, read_request, read_response
from ._record_batches import Allowance, batch_tree
from ._sources import Kind, Source
from ._split import RawEntry, is_usual, split
from ._tree import Entry, Problem, Tree, first_problem

#: The maximum number of requests awaiting a response; the oldest are dropped first.
PENDING_REQUESTS_MAX: Final = 100_000

# A frame of unknown kind counts as a request of an unknown API only if its key and version are
# below these; Kafka's own are far below them.
_KEY_MAX: Final = 256
_VERSION_MAX: Final = 64

_correlation_id: Final = Struct(">i").unpack_from
_error_code_of_response: Final = Struct(">4xh").unpack_from
_UNKNOWN: Final = (
    "neither a request nor the response to an earlier request; "
    "use --response API[:VERSION] to decode it as a response"
)


class PendingRequest(NamedTuple):
    """A request whose response has not been read yet."""

    number: int
    api_key: int
    version: int
    client_id: str | None


class Expected(NamedTuple):
    """The API and version given by ``--response``; the version None accepts any."""

    api_key: int
    version: int | None


def entries(
    sources: Iterable[tuple[Source, Kind]],
    expected: Expected | None = None,
    api_keys: Collection[int] = (),
    skip: int = 0,
) -> Iterator[Entry]:
    """Yield the entries of all sources in order.

    The request for a response may be in an earlier source.

    Args:
        sources: the sources, each with what it contains.
        expected: the API and version if all frames are known to be its responses; None otherwise.
        api_keys: the keys of the APIs whose frames are shown; empty for all.
        skip: the number of entries to skip.
    """
    conversation = Conversation(expected)
    numbers = count(1)
    for source, kind in sources:
        for number, raw in zip(numbers, split(source, kind), strict=False):
            entry = None
            if kind is not Kind.BATCHES:
                entry = conversation.entry(number, source.name, raw)
                if api_keys and entry.about.get("api_key") not in api_keys:
                    continue
            if skip:
                skip -= 1
                continue
            yield entry or _batch_entry(number, source.name, raw)


def _batch_entry(number: int, source: str, raw: RawEntry) -> Entry:
    body, problem = ({}, "") if raw.problem else batch_tree(raw.data, raw.missing, Allowance())
    problem = raw.problem or problem or first_problem(body)
    return Entry(
        number,
        source,
        raw.offset,
        len(raw.data),
        "batch",
        {},
        None,
        body,
        Problem(problem, raw.start) if problem else None,
    )


class Conversation:
    """Decodes frames, matching responses with earlier requests.

    Args:
        expected: the API and version if all frames are known to be its responses; None otherwise.
    """

    def __init__(self, expected: Expected | None = None) -> None:
        self._expected = expected
        self._pending: OrderedDict[int, PendingRequest] = OrderedDict()

    def entry(self, number: int, source: str, raw: RawEntry) -> Entry:
        """Decode a frame into an entry."""
        about: dict[str, Tree] = {}
        kind, reading = "unknown", Reading({}, problem=raw.problem)
        if not raw.problem:
            kind, about, reading = self._read(number, raw.data)
        problem = reading.problem
        if raw.missing:
            whole = len(raw.data) + raw.missing
            truncation = f"truncated: {raw.missing} of {whole} bytes are missing"
            problem = f"{truncation}; {problem}" if problem else truncation
        return Entry(
            number,
            source,
            raw.offset,
            raw.start - raw.offset + len(raw.data),
            kind,
            about,
            reading.header or None,
            reading.body,
            Problem(problem, raw.start + reading.pos) if problem else None,
        )

    def _read(self, number: int, data: bytes) -> tuple[str, dict[str, Tree], Reading]:
        if self._expected is not None:
            return "response", *_read_expected(self._expected, data)
        request = self._pending.get(_correlation_id(data)[0]) if len(data) >= 4 else None
        response = None if request is None else _read_response(request, data)
        if request is None or response is None:
            return self._read_request(number, data)
        if response.problem and _client_id(data) == request.client_id:
            # Another request of this client, whose API key and version happen to look like the
            # correlation id of a pending request.
            return self._read_request(number, data)
        del self._pending[_correlation_id(data)[0]]
        about = {**_about(request.api_key, request.version), "answers": request.number}
        return "response", about, response

    def _read_request(self, number: int, data: bytes) -> tuple[str, dict[str, Tree], Reading]:
        try:
            key, version, correlation_id, client_id, _ = decode_request_header(data)
        except WireFormatError as error:
            return _unknown(data, str(error))
        codec = lookup(key, version)
        if codec is None and not (0 <= key < _KEY_MAX and 0 <= version < _VERSION_MAX):
            return _unknown(data, "")
        reading = read_request(codec, data)
        if codec is None:
            reading = reading._replace(problem=_unknown_version(key, version))
        if reading.problem and not is_usual(client_id):
            # Small numbers in responses look like versions of Produce.
            return _unknown(data, f"as a request, {name_of(key)} v{version}: {reading.problem}")
        if key != PRODUCE or reading.body is None or reading.body.get("acks") != 0:
            self._add_pending(correlation_id, PendingRequest(number, key, version, client_id))
        return "request", _about(key, version), reading

    def _add_pending(self, correlation_id: int, request: PendingRequest) -> None:
        self._pending[correlation_id] = request
        self._pending.move_to_end(correlation_id)
        if len(self._pending) > PENDING_REQUESTS_MAX:
            self._pending.popitem(last=False)


def _client_id(data: bytes) -> str | None:
    try:
        return decode_request_header(data)[3]
    except WireFormatError:
        return "\0 not a request"


def _about(key: int, version: int) -> dict[str, Tree]:
    return {"api": name_of(key), "api_key": key, "version": version}


def _unknown_version(key: int, version: int) -> str:
    known = schema_versions(key)
    if not known:
        return f"unknown API {name_of(key)}"
    which = f"{known[0]} to {known[-1]}"
    return f"unsupported version {version} of {name_of(key)}; expected {which}"


def _unknown(data: bytes, why: str) -> tuple[str, dict[str, Tree], Reading]:
    header: dict[str, Tree] = {}
    if len(data) >= 4:
        header["correlation_id"] = _correlation_id(data)[0]
    return "unknown", {}, Reading(header, problem=f"{_UNKNOWN}{f' ({why})' if why else ''}")


def _read_response(request: PendingRequest, data: bytes) -> Reading:
    codec = lookup(request.api_key, request.version)
    if request.api_key == API_VERSIONS and (codec is None or codec.version):
        codec = _downgraded_api_versions(data) or codec
    if codec is None:
        header: dict[str, Tree] = {"correlation_id": _correlation_id(data)[0]}
        return Reading(header, problem=_unknown_version(request.api_key, request.version), pos=4)
    return read_response(codec, data)


def _downgraded_api_versions(data: bytes) -> ApiVersionCodec | None:
    """Return the codec of version 0 for a response that rejects the request's version (KIP-511)."""
    if len(data) < 6 or _error_code_of_response(data)[0] != UNSUPPORTED_VERSION:
        return None
    codec = lookup(API_VERSIONS, 0)
    return codec if codec is not None and fits_response(codec, data) else None


def _read_expected(expected: Expected, data: bytes) -> tuple[dict[str, Tree], Reading]:
    key, version = expected
    if version is not None:
        request = PendingRequest(0, key, version, None)
        return _about(key, version), _read_response(request, data)
    codecs = [codec for each in schema_versions(key) if (codec := lookup(key, each)) is not None]
    fitting = [codec for codec in codecs if fits_response(codec, data)]
    if not fitting:
        newest = codecs[-1]
        reading = read_response(newest, data)
        text = f"no version of {newest.name} fits; as version {newest.version}: {reading.problem}"
        return _about(key, newest.version), reading._replace(problem=text)
    reading = read_response(fitting[-1], data)
    about = _about(key, fitting[-1].version)
    if len(fitting) > 1:
        about["fitting_versions"] = [codec.version for codec in fitting]
        others = [read_response(codec, data) for codec in fitting[:-1]]
        if any(other != reading for other in others):
            about["ambiguous"] = True
    return about, reading
