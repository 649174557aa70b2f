"""Finding the codec of an API version."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import pytest
from kio.index import load_request_schema, load_response_schema

from protocol.generator.apis import APIS
from protocol.kio_values import has_version
from trionet.protocol import api_keys
from trionet.protocol._codec import lookup, schema_versions
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
