"""Frames to entries: requests say what they are, responses are known by the requests before."""

from __future__ import annotations

from collections import OrderedDict
from struct import Struct
from typing import Final, NamedTuple

from trionet.errors import WireFormatError
from trionet.protocol._codec import ApiVersionCodec, lookup, schema_versions
from trionet.protocol._header import decode_request_header
from trionet.protocol.api_keys import API_VERSIONS, PRODUCE, name_of
from trionet.protocol.error_codes import UNSUPPORTED_VERSION

from .input._split import Piece
from .messages._requests_and_responses import Reading, read_request, read_response
from .messages._tree import Entry, Problem, Tree
from .messages._whole import fits_response

#: How many requests without an answer are remembered; the oldest are forgotten first.
REQUESTS_REMEMBERED_MAX: Final = 100_000

# Where a frame may be anything, a request of an API that nobody here knows has a key and a version
# below these: Kafka's own are far below them.
_KEY_MAX: Final = 256
_VERSION_MAX: Final = 64

_correlation_id: Final = Struct(">i").unpack_from
_error_code_of_response: Final = Struct(">4xh").unpack_from
_UNKNOWN: Final = (
    "neither a request nor the answer to a request before it; "
    "--response API[:VERSION] says what a response is"
)


class Asked(NamedTuple):
    """A request that has no answer so far."""

    number: int
    api_key: int
    version: int
    client_id: str | None


class Expected(NamedTuple):
    """What somebody says that all frames are: responses of this API; any version if None."""

    api_key: int
    version: int | None


class Conversation:
    """What frames are, by those before them.

    Args:
        expected: what all frames are, if it is known.
    """

    def __init__(self, expected: Expected | None = None) -> None:
        self._expected = expected
        self._asked: OrderedDict[int, Asked] = OrderedDict()

    def entry(self, number: int, source: str, piece: Piece) -> Entry:
        """What a frame is and holds."""
        about: dict[str, Tree] = {}
        kind, reading = "unknown", Reading({}, problem=piece.problem)
        if not piece.problem:
            kind, about, reading = self._read(number, piece.data)
        problem = reading.problem
        if piece.missing:
            whole = len(piece.data) + piece.missing
            cut = f"cut short: {piece.missing} of {whole} bytes are missing"
            problem = f"{cut}; {problem}" if problem else cut
        return Entry(
            number,
            source,
            piece.offset,
            piece.start - piece.offset + len(piece.data),
            kind,
            about,
            reading.header or None,
            reading.body,
            Problem(problem, piece.start + reading.pos) if problem else None,
        )

    def _read(self, number: int, data: bytes) -> tuple[str, dict[str, Tree], Reading]:
        if self._expected is not None:
            return "response", *_read_expected(self._expected, data)
        asked = self._asked.get(_correlation_id(data)[0]) if len(data) >= 4 else None
        answer = None if asked is None else _read_answer(asked, data)
        if asked is None or answer is None:
            return self._read_request(number, data)
        if answer.problem and _client_id(data) == asked.client_id:
            # Another request of this client, whose API and version are an older one's number.
            return self._read_request(number, data)
        del self._asked[_correlation_id(data)[0]]
        about = {**_about(asked.api_key, asked.version), "answers": asked.number}
        return "response", about, answer

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
        if reading.problem and not (client_id and client_id.isprintable()):
            # Small numbers of responses look like versions of Produce.
            return _unknown(data, f"as a request, {name_of(key)} v{version}: {reading.problem}")
        if key != PRODUCE or reading.body is None or reading.body.get("acks") != 0:
            self._remember(correlation_id, Asked(number, key, version, client_id))
        return "request", _about(key, version), reading

    def _remember(self, correlation_id: int, asked: Asked) -> None:
        self._asked[correlation_id] = asked
        self._asked.move_to_end(correlation_id)
        if len(self._asked) > REQUESTS_REMEMBERED_MAX:
            self._asked.popitem(last=False)


def _client_id(data: bytes) -> str | None:
    try:
        return decode_request_header(data)[3]
    except WireFormatError:
        return "\0 no request"


def _about(key: int, version: int) -> dict[str, Tree]:
    return {"api": name_of(key), "api_key": key, "version": version}


def _unknown_version(key: int, version: int) -> str:
    known = schema_versions(key)
    if not known:
        return f"the fields of {name_of(key)} are not known here"
    which = f"{known[0]} to {known[-1]}"
    return f"version {version} of {name_of(key)} is not known here, only {which}"


def _unknown(data: bytes, why: str) -> tuple[str, dict[str, Tree], Reading]:
    header: dict[str, Tree] = {}
    if len(data) >= 4:
        header["correlation_id"] = _correlation_id(data)[0]
    return "unknown", {}, Reading(header, problem=f"{_UNKNOWN}{f' ({why})' if why else ''}")


def _read_answer(asked: Asked, data: bytes) -> Reading:
    codec = lookup(asked.api_key, asked.version)
    if asked.api_key == API_VERSIONS and (codec is None or codec.version):
        codec = _refusal(data) or codec
    if codec is None:
        header: dict[str, Tree] = {"correlation_id": _correlation_id(data)[0]}
        return Reading(header, problem=_unknown_version(asked.api_key, asked.version), pos=4)
    return read_response(codec, data)


def _refusal(data: bytes) -> ApiVersionCodec | None:
    """A broker that lacks the version of an ApiVersions answers in version 0 (KIP-511)."""
    if len(data) < 6 or _error_code_of_response(data)[0] != UNSUPPORTED_VERSION:
        return None
    codec = lookup(API_VERSIONS, 0)
    return codec if codec is not None and fits_response(codec, data) else None


def _read_expected(expected: Expected, data: bytes) -> tuple[dict[str, Tree], Reading]:
    key, version = expected
    if version is not None:
        asked = Asked(0, key, version, None)
        return _about(key, version), _read_answer(asked, data)
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
