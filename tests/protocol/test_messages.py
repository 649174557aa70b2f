"""What holds for the generated classes and for encoding them."""

from __future__ import annotations

import inspect
import random
from collections.abc import Iterator
from typing import Any, cast

import pytest

from protocol.kio_values import entity_class, read_entity, write_entity
from protocol.samples import samples
from trionet.errors import LocalProtocolError
from trionet.protocol import api_keys
from trionet.protocol._codec import Chunk, lookup
from trionet.protocol._wire import ArrayReaders, ArrayWriters, Message
from trionet.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from trionet.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    LeaderIdAndEpoch,
    PartitionData,
)
from trionet.protocol.messages.heartbeat import HeartbeatRequest
from trionet.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from trionet.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from trionet.protocol.unrolling._layout import Struct


def codec(api_key: int, version: int) -> Any:
    found = lookup(api_key, version)
    assert found is not None
    return found


def request_bytes(api_key: int, version: int, message: Message) -> bytes:
    chunks: list[Chunk] = []
    codec(api_key, version).encode_request(message, chunks)
    return b"".join(cast(list[bytes], chunks))


def response_bytes(api_key: int, version: int, message: Message) -> bytes:
    chunks: list[Chunk] = []
    codec(api_key, version).encode_response(message, chunks)
    return b"".join(cast(list[bytes], chunks))


def produce(records: Any) -> ProduceRequest:
    partition = PartitionProduceData(index=7, records=records)
    return ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=[partition])])


def test_defaults_are_the_schemas_and_lists_are_fresh() -> None:
    request = FetchRequest()

    assert (request.max_bytes, request.session_epoch, request.rack_id) == (2**31 - 1, -1, "")
    assert request.topics == []
    assert request.topics is not FetchRequest().topics
    assert "topics: list[FetchTopic] = UNSET" in str(inspect.signature(FetchRequest)).replace(
        "'", ""
    )


def test_null_is_not_the_default_of_a_nullable_list() -> None:
    assert MetadataRequest().topics == []
    assert MetadataRequest(topics=None).topics is None


def test_messages_are_equal_by_their_fields() -> None:
    assert ApiVersion(api_key=3) == ApiVersion(api_key=3)
    assert ApiVersion(api_key=3) != ApiVersion(api_key=4)
    assert ApiVersion() != LeaderIdAndEpoch()
    assert ApiVersion(unknown_tags=((1, b""),)) != ApiVersion()


def test_messages_are_not_hashable_as_they_change() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(ApiVersion())


def test_messages_have_no_other_attributes() -> None:
    with pytest.raises(AttributeError):
        ApiVersion().misspelt = 1  # type: ignore[attr-defined]


def test_repr_shows_fields_but_neither_records_nor_secrets() -> None:
    topic = TopicProduceData(
        name="t",
        topic_id=bytes(15) + b"\x0f",
        partition_data=produce(b"secret").topic_data[0].partition_data,
    )

    assert repr(topic) == (
        "TopicProduceData(name='t', topic_id=0000000000000000000000000000000f, "
        "partition_data=[PartitionProduceData(index=7, records=<6 bytes>)])"
    )
    assert repr(ApiVersion(unknown_tags=((9, b"x"),))) == (
        "ApiVersion(api_key=0, min_version=0, max_version=0, unknown_tags=((9, b'x'),))"
    )


def test_decoded_records_are_a_view_into_the_frame() -> None:
    frame = request_bytes(api_keys.PRODUCE, 9, produce(b"r" * 1000))
    records = (
        codec(api_keys.PRODUCE, 9).decode_request(frame, 0).topic_data[0].partition_data[0].records
    )

    assert isinstance(records, memoryview)
    assert records.obj is frame
    assert records == b"r" * 1000


class Range:
    """Something with a length that is not bytes, as a range of a file."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count


@pytest.mark.parametrize("version", [4, 12, 18])
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_records_of_any_buffer_are_encoded(version: int, kind: type) -> None:
    plain = FetchResponse(
        responses=[FetchableTopicResponse(partitions=[PartitionData(records=b"abc")])]
    )
    other = FetchResponse(
        responses=[FetchableTopicResponse(partitions=[PartitionData(records=kind(b"abc"))])]
    )

    expected = response_bytes(api_keys.FETCH, version, plain)
    assert response_bytes(api_keys.FETCH, version, other) == expected


@pytest.mark.parametrize("version", [4, 12, 18])
def test_object_with_a_length_goes_out_as_it_is(version: int) -> None:
    file_range = Range(300)
    response = FetchResponse(
        responses=[FetchableTopicResponse(partitions=[PartitionData(records=file_range)])]
    )
    chunks: list[Chunk] = []
    codec(api_keys.FETCH, version).encode_response(response, chunks)
    frame = b"".join(bytes(300) if chunk is file_range else cast(bytes, chunk) for chunk in chunks)

    decoded = codec(api_keys.FETCH, version).decode_response(frame, 0)
    assert sum(chunk is file_range for chunk in chunks) == 1
    assert decoded.responses[0].partitions[0].records == bytes(300)


def test_unknown_tags_are_kept_in_every_struct_of_every_flexible_version() -> None:
    kept = 0
    for sample in samples("tags"):
        message = sample.decode(sample.wire, 0)
        if not sample.struct.flexible:
            continue
        for struct in structs_of(message):
            cast(Any, struct).unknown_tags = ((100, b"hundred"), (200, b""), (100_000, b"x" * 200))
            kept += 1
        frame = sample.encoded(message)

        assert len(frame) > len(sample.wire)
        assert sample.decode(frame, 0) == message
    assert kept > 500


def structs_of(value: object) -> list[Message]:
    """A message and everything in it."""
    if isinstance(value, list):
        return [struct for item in value for struct in structs_of(item)]
    if not isinstance(value, Message):
        return []
    inner = [getattr(value, name) for name in value.__slots__]
    return [value, *structs_of(inner)]


def test_unknown_error_codes_and_enum_values_pass_through_in_every_message() -> None:
    """A peer may be newer than our tables; what its numbers mean is for others to say."""
    changed = 0
    for sample in samples("unknown"):
        message = sample.decode(sample.wire, 0)
        kinds = dict(numbers_of(sample.struct))
        for struct in structs_of(message):
            for name in struct.__slots__:
                unknown = UNKNOWN_NUMBERS.get(kinds.get((type(struct).__name__, name), ""))
                if unknown is not None:
                    setattr(struct, name, unknown)
                    changed += 1
        frame = sample.encoded(message)

        assert sample.decode(frame, 0) == message
    assert changed > 1000


#: Neither an error code nor a value of any of Kafka's enumerations, by kind of field.
UNKNOWN_NUMBERS = {"int16": 31_999, "int8": -77}


def numbers_of(struct: Struct) -> Iterator[tuple[tuple[str, str], str]]:
    """The kind of every field that is a single value: ((struct, field), kind)."""
    for field in struct.fields:
        if field.struct is not None:
            yield from numbers_of(field.struct)
        elif not field.array:
            yield (struct.name, field.name), field.kind


def test_more_unknown_tags_than_a_byte_counts() -> None:
    response = ApiVersionsResponse(unknown_tags=tuple((number, b"") for number in range(4, 204)))
    frame = response_bytes(api_keys.API_VERSIONS, 3, response)

    assert codec(api_keys.API_VERSIONS, 3).decode_response(frame, 0) == response


def test_unknown_and_known_tags_are_written_in_ascending_order() -> None:
    response = ApiVersionsResponse(zk_migration_ready=True, unknown_tags=((2000, b"!"),))
    frame = response_bytes(api_keys.API_VERSIONS, 3, response)

    assert frame == bytes.fromhex("0000 01 00000000 02 0301 01 d00f01 21")


def test_unknown_tag_with_the_number_of_a_field_is_our_mistake() -> None:
    response = ApiVersionsResponse(zk_migration_ready=True, unknown_tags=((3, b"\0"),))

    with pytest.raises(LocalProtocolError, match="duplicate tag 3"):
        response_bytes(api_keys.API_VERSIONS, 3, response)


def test_tagged_struct_of_defaults_is_left_out() -> None:
    absent = FetchResponse(responses=[FetchableTopicResponse(partitions=[PartitionData()])])
    default = FetchResponse(
        responses=[
            FetchableTopicResponse(partitions=[PartitionData(current_leader=LeaderIdAndEpoch())])
        ]
    )

    expected = response_bytes(api_keys.FETCH, 12, absent)
    assert response_bytes(api_keys.FETCH, 12, default) == expected


def test_request_field_that_the_version_lacks_must_not_vanish() -> None:
    with pytest.raises(LocalProtocolError, match=r"HeartbeatRequest\.group_instance_id is set"):
        request_bytes(api_keys.HEARTBEAT, 2, HeartbeatRequest(group_instance_id="me"))
    with pytest.raises(LocalProtocolError, match="forgotten_topics_data is set"):
        request_bytes(api_keys.FETCH, 6, FetchRequest(forgotten_topics_data=[ForgottenTopic()]))


def test_ignorable_request_field_vanishes() -> None:
    topic = FetchTopic(topic="t", topic_id=bytes(range(16)), partitions=[FetchPartition()])
    plain = FetchTopic(topic="t", partitions=[FetchPartition()])

    assert request_bytes(
        api_keys.FETCH, 4, FetchRequest(rack_id="r1", session_id=5, topics=[topic])
    ) == request_bytes(api_keys.FETCH, 4, FetchRequest(topics=[plain]))


def test_response_field_that_the_version_lacks_vanishes() -> None:
    response = ApiVersionsResponse(throttle_time_ms=5, zk_migration_ready=True)

    assert response_bytes(api_keys.API_VERSIONS, 0, response) == bytes.fromhex("0000 00000000")


def test_unknown_tags_vanish_from_a_response_without_tags_but_not_from_a_request() -> None:
    tags = ((9, b"x"),)

    assert response_bytes(
        api_keys.API_VERSIONS, 0, ApiVersionsResponse(unknown_tags=tags)
    ) == response_bytes(api_keys.API_VERSIONS, 0, ApiVersionsResponse())
    with pytest.raises(LocalProtocolError, match=r"HeartbeatRequest\.unknown_tags is set"):
        request_bytes(api_keys.HEARTBEAT, 0, HeartbeatRequest(unknown_tags=tags))


def test_message_read_in_one_version_is_written_in_another() -> None:
    topics = [MetadataRequestTopic(name="t")]
    frame = request_bytes(api_keys.METADATA, 12, MetadataRequest(topics=topics))
    request = codec(api_keys.METADATA, 12).decode_request(frame, 0)

    assert request_bytes(api_keys.METADATA, 1, request) == bytes.fromhex("00000001 0001 74")


def test_null_in_a_field_that_has_none_is_our_mistake_in_every_message() -> None:
    refused = 0
    for sample in samples("nulls"):
        for field in sample.struct.untagged:
            if field.nullable:
                continue
            message = sample.decode(sample.wire, 0)
            setattr(message, field.name, None)
            if field.kind == "bool" and not field.array:
                continue  # anything is true or false
            with pytest.raises(LocalProtocolError):
                sample.encoded(message)
            refused += 1
    assert refused > 500


def wrong(value: object) -> Any:
    """A value that a type checker would refuse here."""
    return value


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        pytest.param(ProduceRequest(acks=2**15), "does not fit into its field", id="too large"),
        pytest.param(
            ProduceRequest(acks=wrong("all")), "does not fit into its field", id="text as a number"
        ),
        pytest.param(
            ProduceRequest(topic_data=wrong(5)),
            "does not fit into its field",
            id="number as a list",
        ),
        pytest.param(
            ProduceRequest(transactional_id="\ud800"), "does not fit into its field", id="surrogate"
        ),
        pytest.param(
            ProduceRequest(transactional_id="x" * 2**15),
            "does not fit into its field",
            id="too long",
        ),
    ],
)
def test_value_that_its_field_cannot_carry_is_our_mistake(
    message: ProduceRequest, complaint: str
) -> None:
    with pytest.raises(LocalProtocolError, match=complaint):
        request_bytes(api_keys.PRODUCE, 3, message)


def test_uuid_is_16_bytes() -> None:
    topic = FetchTopic(topic_id=b"short")

    with pytest.raises(LocalProtocolError, match="topic_id: a UUID must have 16 bytes"):
        request_bytes(api_keys.FETCH, 13, FetchRequest(topics=[topic]))


def test_long_strings_and_lists_have_longer_prefixes() -> None:
    rng = random.Random(1)
    for count in (126, 127, 128, 200, 20_000):
        topics = [MetadataRequestTopic(name="x" * rng.choice((126, 127, 300)))] * count
        request = MetadataRequest(topics=topics)
        frame = request_bytes(api_keys.METADATA, 9, request)

        assert codec(api_keys.METADATA, 9).decode_request(frame, 0) == request


@pytest.mark.parametrize("version", [1, 9])
@pytest.mark.parametrize(
    "lengths", [(0, 0, 0), (1, 126, 2), (3, 127, 0), (128, 1, 300), (5, 0, 99)]
)
def test_arrays_of_numbers_may_have_any_length(version: int, lengths: tuple[int, ...]) -> None:
    replicas, isr, offline = (list(range(1, length + 1)) for length in lengths)
    partition = MetadataResponsePartition(
        partition_index=2,
        leader_id=3,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=offline if version == 9 else [],
    )
    message = MetadataResponse(topics=[MetadataResponseTopic(name="t", partitions=[partition])])
    wire = response_bytes(api_keys.METADATA, version, message)
    theirs = entity_class("metadata", version, "response")

    assert wire == write_entity(read_entity(theirs, wire))
    assert codec(api_keys.METADATA, version).decode_response(wire, 0) == message


def test_as_many_formats_of_arrays_are_kept_as_there_is_room_for() -> None:
    writers = ArrayWriters("Bnix", 1)
    readers = ArrayReaders("i", 1)
    for count in range(1, 2000):
        encoded = writers[count](count % 128, *range(count - 1))
        assert list(readers[count](encoded, 1)) == list(range(count - 1))

    assert len(writers) == 1024
    assert len(readers) == 127
