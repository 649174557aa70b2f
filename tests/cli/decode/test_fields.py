"""A version's fields, and no others, are shown; the decoders set the others to defaults."""

from __future__ import annotations

import importlib

import pytest

from protocol.generator.apis import APIS
from protocol.samples import api_of
from trionet.cli.decode._messages import fields_of
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
    fields = set(fields_of(FetchRequest._layout, version))

    assert present <= fields
    assert not absent & fields
    assert (version >= 13) is ("topic_id" in fields_of(FetchTopic._layout, version))
    assert (version >= 9) is ("current_leader_epoch" in fields_of(FetchPartition._layout, version))


@pytest.mark.slow
def test_fields_are_those_of_the_schema() -> None:
    for module_name in APIS:
        module = importlib.import_module(f"trionet.protocol.messages.{module_name}")
        for declared in api_of(module_name).messages.values():
            for version, struct in declared.versions.items():
                shown = fields_of(getattr(module, declared.name)._layout, version)

                assert {field.name for field in struct.fields} == set(shown), (declared, version)
