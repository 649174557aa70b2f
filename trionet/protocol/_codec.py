"""The lookup of the codec for an API key and version.

The module of an API is imported when a codec from it is first requested. Some codecs of versions
before the first flexible version are in a separate module.
"""

# Compiled by mypyc.

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Final

from trionet.protocol._wire import Chunk, Decode, Message
from trionet.protocol.api_keys import API_VERSIONS
from trionet.protocol.messages.registry import APIS, OLDER

Encode = Callable[[Any, list[Chunk]], None]


class ApiVersionCodec:
    """The codec of one version of an API.

    Attributes:
        api_key: the API key.
        version: the API version.
        name: Kafka's name for the API, such as ``ListOffsets``.
        flexible: whether messages have tag sections and compact lengths (KIP-482).
        request_header_version: 1, or 2 with a tag section after the common fields.
        response_header_version: 0, or 1 with a tag section after the correlation id.
        decode_request: ``(buf, pos, left) -> message``; bytes after the message are ignored.
            Raises WireFormatError if the message is malformed, or if the total number of arrays,
            array elements and tags exceeds ``left`` (REQUEST_ELEMENTS_MAX by default).
            ``records`` fields are views into ``buf``.
        encode_response: ``(message, out)``; appends chunks to ``out``. Raises LocalProtocolError
            for a value that does not fit into its field. Fields missing in this version are
            omitted.
        encode_request: see ``encode_response``; also raises LocalProtocolError if a field missing
            in this version is set, unless the schema declares the field ignorable.
        decode_response: see ``decode_request``; the default limit is RESPONSE_ELEMENTS_MAX.
    """

    __slots__ = (
        "api_key",
        "decode_request",
        "decode_response",
        "encode_request",
        "encode_response",
        "flexible",
        "name",
        "request_header_version",
        "response_header_version",
        "version",
    )

    def __init__(
        self,
        api_key: int,
        version: int,
        name: str,
        flexible: bool,
        request: tuple[Decode[Any], Encode],
        response: tuple[Decode[Any], Encode],
    ) -> None:
        self.api_key: int = api_key
        self.version: int = version
        self.name: str = name
        self.flexible: bool = flexible
        self.request_header_version = 2 if flexible else 1
        # KIP-511: a client must be able to read the response before it knows any version.
        self.response_header_version = 1 if flexible and api_key != API_VERSIONS else 0
        self.decode_request: Final = request[0]
        self.encode_request: Final = request[1]
        self.decode_response: Final = response[0]
        self.encode_response: Final = response[1]

    def __repr__(self) -> str:
        return f"<ApiVersionCodec {self.name} v{self.version}>"


_loaded: Final[dict[tuple[int, int], ApiVersionCodec]] = {}


def lookup(api_key: int, version: int) -> ApiVersionCodec | None:
    """Return the codec of an API version; None if the version has no codec.

    Args:
        api_key: the API key; see :mod:`trionet.protocol.api_keys`.
        version: the API version.
    """
    return _loaded.get((api_key, version)) or _load(api_key, version)


def _load(api_key: int, version: int) -> ApiVersionCodec | None:
    if version not in schema_versions(api_key):
        return None  # not cached: peers may send any number
    module_name, name, _, _, first_flexible = APIS[api_key]
    is_older = version < first_flexible and module_name in OLDER
    module = _import("messages.older" if is_older else "messages", module_name)
    codec = ApiVersionCodec(
        api_key,
        version,
        name,
        version >= first_flexible,
        module.REQUESTS[version],
        module.RESPONSES[version],
    )
    _loaded[api_key, version] = codec
    return codec


def import_codecs(api_key: int) -> None:
    """Import the modules with the codecs of an API, so that later lookups do not open files.

    Args:
        api_key: the API key; see :mod:`trionet.protocol.api_keys`.
    """
    module_name = APIS[api_key][0]
    _import("messages", module_name)
    if module_name in OLDER:
        _import("messages.older", module_name)
    _import("unrolling", "_functions")


def _import(folder: str, name: str) -> Any:
    return importlib.import_module(f"trionet.protocol.{folder}.{name}")


def schema_versions(api_key: int) -> range:
    """Return the versions of an API that have codecs; empty for an unknown API.

    Args:
        api_key: the API key; see :mod:`trionet.protocol.api_keys`.
    """
    known = APIS.get(api_key)
    return range(known[2], known[3] + 1) if known else range(0)


#: The API key of each request class, by class name.
REQUEST_KEYS: Final = {f"{row[1]}Request": key for key, row in APIS.items()}


def api_key_of(request: Message) -> int:
    """Return the API key of a request.

    Raises:
        ValueError: the message is not a request.
    """
    name = type(request).__name__
    if name not in REQUEST_KEYS:
        raise ValueError(f"{name} is not a request")
    return REQUEST_KEYS[name]


__all__ = [
    "REQUEST_KEYS",
    "ApiVersionCodec",
    "Chunk",
    "Message",
    "api_key_of",
    "import_codecs",
    "lookup",
    "schema_versions",
]
