"""Codecs that are made when they are first used: from which layout, and how they are seen."""

from __future__ import annotations

import inspect
import subprocess
import sys
import traceback
from importlib import import_module

import pytest

from protocol.generator.apis import APIS, DATA
from protocol.generator.classes import merge
from protocol.generator.modules import layout_of as generated_layout
from protocol.samples import api_of
from trionet.errors import WireFormatError
from trionet.protocol.messages import delete_topics, describe_producers, metadata
from trionet.protocol.unrolling._layout import layout_of


@pytest.mark.parametrize("module_name", [*APIS, *DATA])
def test_classes_declare_the_layouts_of_all_versions(module_name: str) -> None:
    module = import_module(f"trionet.protocol.messages.{module_name}")
    for message in api_of(module_name).messages.values():
        merged = merge(message)
        for version, struct in message.versions.items():
            made = getattr(module, message.name)

            declared = layout_of(
                made,
                vars(module),
                version,
                flexible=struct.flexible,
                is_request=message.side == "request",
            )

            assert generated_layout(struct, merged) == declared, (message.name, version)


def test_a_codec_is_made_once() -> None:
    assert describe_producers.REQUESTS[0] is describe_producers.REQUESTS[0]


def test_versions_are_those_of_the_message() -> None:
    assert [0, 1, 2, 3, 4, 5, 6] == list(delete_topics.REQUESTS)
    with pytest.raises(KeyError):
        delete_topics.REQUESTS[7]


def test_checked_in_functions_are_used_where_there_are_any() -> None:
    assert (metadata.decode_request_9, metadata.encode_request_9) == metadata.REQUESTS[9]
    assert "<codec of MetadataRequest, version 8>" == (inspect.getfile(metadata.REQUESTS[8][0]))


def test_traceback_of_a_made_codec_shows_its_source() -> None:
    decode, _ = delete_topics.REQUESTS[6]
    with pytest.raises(WireFormatError) as found:
        decode(b"\2", 0)

    text = "".join(traceback.format_exception(found.value))
    assert 'File "<codec of DeleteTopicsRequest, version 6>"' in text
    assert 'bad_count("DeleteTopicsRequest.topics", n - 1, size - pos)' in text


def test_programs_that_use_checked_in_codecs_alone_load_nothing_to_make_others() -> None:
    program = """
import sys
from trionet.protocol import lookup
for key, version in (0, 12), (1, 17), (3, 12), (18, 4):
    lookup(key, version)
print([name for name in sys.modules if ".unrolling._" in name])
"""
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert "['trionet.protocol.unrolling._codecs']\n" == found.stdout
