"""A version's fields, and no others, are shown; the decoders set the others to defaults."""

from __future__ import annotations

import importlib

import pytest

from protocol.generator.apis import APIS
from protocol.kio_values import codec_functions
from protocol.samples import api_of
from support.decoding import codec_of
from trionet.cli.decode.messages._fields import Fields
from trionet.protocol.api_keys import FETCH
from trionet.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic


@pytest.mark.parametrize(
    ("version", "present", "absent"),
    [
        (4, {"replica_id", "topics"}, {"session_id", "rack_id", "cluster_id", "replica_state"}),
        (7, {"session_id", "forgotten_topics_data"}, {"rack_id"}),
        (12, {"cluster_id", "rack_id"}, {"replica_state"}),
        (15, {"replica_state"}, {"replica_id"}),
    ],
)
def test_fields_come_and_go_with_versions(
    version: int, present: set[str], absent: set[str]
) -> None:
    message = FetchRequest(topics=[FetchTopic(partitions=[FetchPartition()])])
    fields = Fields(codec_of(FETCH, version).encode_request, message)

    assert present <= set(fields.of(message))
    assert not absent & set(fields.of(message))
    assert (version >= 13) is ("topic_id" in fields.of(message.topics[0]))
    assert (version >= 9) is ("current_leader_epoch" in fields.of(message.topics[0].partitions[0]))
    assert FetchRequest(topics=[FetchTopic(partitions=[FetchPartition()])]) == message


@pytest.mark.slow
def test_fields_are_those_of_the_schema() -> None:
    for module_name in APIS:
        module = importlib.import_module(f"trionet.protocol.messages.{module_name}")
        for declared in api_of(module_name).messages.values():
            for version, struct in declared.versions.items():
                _, encode = codec_functions(module, declared, version)
                message = getattr(module, declared.name)()
                before = repr(message)

                shown = Fields(encode, message).of(message)

                assert {field.name for field in struct.fields} == set(shown), (message, version)
                assert before == repr(message)
