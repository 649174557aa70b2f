"""Finding the codec of an API version, and the names of API keys, error codes and ids."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map

from protocol.generator.apis import APIS
from protocol.kio_values import has_version
from trionet.protocol import api_keys, error_codes
from trionet.protocol._codec import lookup, schema_versions
from trionet.protocol._wire import uuid_text
from trionet.protocol.messages.registry import APIS as KNOWN


def test_every_generated_api_is_known() -> None:
    assert sorted(module for module, *_ in KNOWN.values()) == sorted(APIS)


def test_codec_says_what_it_is_for() -> None:
    codec = lookup(api_keys.PRODUCE, 9)

    assert codec is not None
    assert (codec.api_key, codec.version, codec.name, codec.flexible) == (0, 9, "Produce", True)
    assert repr(codec) == "<ApiVersionCodec Produce v9>"


def test_codec_is_loaded_once() -> None:
    assert lookup(api_keys.FETCH, 12) is lookup(api_keys.FETCH, 12)


@pytest.mark.parametrize(
    ("api_key", "version"),
    [(0, 14), (0, -1), (4, 0), (9999, 0), (-1, 0)],
)
def test_unknown_version_or_key_has_no_codec(api_key: int, version: int) -> None:
    assert lookup(api_key, version) is None


def test_schema_versions() -> None:
    assert schema_versions(api_keys.PRODUCE) == range(14)
    assert schema_versions(9999) == range(0)


@pytest.mark.slow
def test_header_versions_are_those_of_kio() -> None:
    for api_key, (module, *_) in KNOWN.items():
        for version in filter(partial(has_version, module), schema_versions(api_key)):
            codec = lookup(api_key, version)
            request = load_request_schema(api_key, version)
            response = load_response_schema(api_key, version)

            assert codec is not None
            assert codec.flexible == request.__flexible__ == response.__flexible__
            assert codec.request_header_version == request.__header_schema__.__version__
            assert codec.response_header_version == response.__header_schema__.__version__


def test_api_versions_responses_have_the_oldest_header_though_their_body_is_flexible() -> None:
    """KIP-511: a client that asked for a version the broker lacks can still read the answer."""
    codec = lookup(api_keys.API_VERSIONS, 3)

    assert codec is not None
    assert codec.flexible
    assert (codec.request_header_version, codec.response_header_version) == (2, 0)


def test_modules_are_imported_when_an_api_is_asked_for() -> None:
    program = """
import sys
from trionet.protocol import lookup
def loaded():
    start = "trionet.protocol.messages."
    return sorted(name.removeprefix(start) for name in sys.modules if name.startswith(start))
print(loaded())
lookup(0, 12)
print(loaded())
lookup(0, 8)
print(loaded())
lookup(3, 8)
print(loaded())
"""
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert found.stdout.splitlines() == [
        "['registry']",
        "['produce', 'registry']",
        "['older', 'older.produce', 'produce', 'registry']",
        "['metadata', 'older', 'older.produce', 'produce', 'registry']",
    ]


def constants(module: object) -> dict[str, int]:
    return {name: value for name, value in vars(module).items() if isinstance(value, int)}


def test_api_keys_are_kafkas() -> None:
    expected = {name.upper(): key for key, name in api_key_map.items()}
    removed = {
        "LEADER_AND_ISR": 4,
        "STOP_REPLICA": 5,
        "UPDATE_METADATA": 6,
        "CONTROLLED_SHUTDOWN": 7,
    }

    assert constants(api_keys) == expected | removed


def test_api_keys_have_kafkas_names() -> None:
    assert [api_keys.name_of(key) for key in (0, 2, 7, 17, 24, 74)] == [
        "Produce",
        "ListOffsets",
        "ControlledShutdown",
        "SaslHandshake",
        "AddPartitionsToTxn",
        "ListConfigResources",
    ]
    assert api_keys.name_of(1234) == "UNKNOWN(1234)"


def test_error_codes_are_kafkas() -> None:
    assert constants(error_codes) == {code.name.upper(): int(code) for code in ErrorCode}


def test_error_codes_have_kafkas_names() -> None:
    assert error_codes.name_of(error_codes.UNKNOWN_SERVER_ERROR) == "UNKNOWN_SERVER_ERROR"
    assert error_codes.name_of(0) == "NONE"
    assert error_codes.name_of(9000) == "UNKNOWN(9000)"


def test_retriable_codes_are_kafkas() -> None:
    assert {int(code) for code in ErrorCode if code.retriable} == error_codes.RETRIABLE


def test_ids_print_as_kafka_prints_them() -> None:
    assert uuid_text(bytes(16)) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert uuid_text(bytes.fromhex("32453c384042413537303532 4e443436")) == "MkU8OEBCQTU3MDUyTkQ0Ng"
    assert uuid_text(b"\xff" * 16) == "_____________________w"
