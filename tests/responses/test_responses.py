"""An excerpt of the job, and that it finds what is wrong."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from responses.changing import change_response
from responses.run import PROGRAMS, run
from trionet import TrionetError
from trionet.client.network._metadata import Metadata
from trionet.protocol._codec import ApiVersionCodec, lookup
from trionet.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

NAMES = list(PROGRAMS)
#: Of each program; many more are the job's.
SEEDS_EACH = 2
#: A multiple of the number of programs, whose seeds take turns.
FIRST_SEED = 100 * len(NAMES)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_no_changed_response_ends_a_program_or_holds_its_loop(name: str) -> None:
    outcomes = [
        run(FIRST_SEED + NAMES.index(name) + each * len(NAMES)) for each in range(SEEDS_EACH)
    ]

    assert [] == [find for each in outcomes for find in each.finds]


@pytest.mark.slow
def test_one_seed_gives_one_course_of_events() -> None:
    first, again = run(2), run(2)

    assert first.changes == again.changes != []
    assert first.steps == again.steps


def raising(error: Exception) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


@pytest.mark.slow
def test_an_error_of_another_tree_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Metadata, "update", raising(OverflowError("port must be 0-65535")))

    assert "OverflowError" in "".join(run(NAMES.index("requesting")).finds)


def metadata_codec() -> ApiVersionCodec:
    codec = lookup(3, 13)
    assert codec is not None
    return codec


def test_every_field_of_a_response_is_changed_some_time() -> None:
    codec = metadata_codec()
    partitions = [MetadataResponsePartition(partition_index=each) for each in range(2)]
    chunks: list[Any] = []
    codec.encode_response(
        MetadataResponse(topics=[MetadataResponseTopic(name="t", partitions=partitions)]), chunks
    )
    body, rng = b"".join(chunks), random.Random(1)

    changes = [change_response(codec, body, rng) for _ in range(1500)]

    numbers = set[int]()
    for each in changes:
        try:
            response = codec.decode_response(each.body, 0)
        except TrionetError:
            continue
        numbers |= {one.partition_index for topic in response.topics for one in topic.partitions}
    assert {-(2**31), -5, 0, 1, 2**31 - 1} <= numbers
    for field in MetadataResponseTopic.__slots__[:-1] + MetadataResponsePartition.__slots__[:-1]:
        assert any(field in each.description for each in changes), field


def test_fields_that_are_kept_are_not_changed() -> None:
    codec = metadata_codec()
    chunks: list[Any] = []
    codec.encode_response(MetadataResponse(controller_id=7, cluster_id="c"), chunks)
    kept = ("brokers", "topics", "cluster_id", "throttle_time_ms", "error_code")
    rng = random.Random(1)

    changes = [change_response(codec, b"".join(chunks), rng, kept) for _ in range(50)]

    assert {"controller_id"} == {
        each.description.split(": ")[1].split(" = ")[0] for each in changes
    } - {"bytes"}
