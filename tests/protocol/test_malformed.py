"""Whatever a peer sends, decoding gives a value or a WireFormatError."""

from __future__ import annotations

import random
import time

import pytest

from protocol import mutations
from protocol.mutations import Frame, Outcome, frames, mutate, record_frames
from protocol.samples import samples
from trionet.errors import WireFormatError
from trionet.protocol import api_keys
from trionet.protocol._codec import lookup

#: The mutations of the gate: enough to pass through every version's code some times.
MUTATIONS = 20


def test_frame_cut_at_any_byte_is_refused() -> None:
    for sample in samples("cut", size_max=1500):
        for end in range(len(sample.wire)):
            with pytest.raises(WireFormatError):
                sample.decode(sample.wire[:end], 0)


def test_bytes_after_the_end_are_passed_over() -> None:
    """As in Kafka: librdkafka 2.16 sends three bytes too many with a Metadata request."""
    for sample in samples("longer"):
        message = sample.decode(sample.wire + b"\1\2\3", 0)

        assert sample.encoded(message) == sample.wire


def test_every_prefix_of_a_frame_is_a_value_or_refused() -> None:
    """Of whole requests, batches, message sets and compressed bodies, for which some are values."""
    outcome = Outcome()
    for frame in record_frames(random.Random(4)):
        for end in range(len(frame.wire)):
            outcome.add(frame, frame.wire[:end])
    requests = [frame for frame in frames("prefix", size_max=500) if "header" in frame.name]
    for frame in requests:
        for end in range(len(frame.wire)):
            outcome.add(frame, frame.wire[:end])

    assert [] == outcome.finds
    assert len(requests) > 200
    assert outcome.refused > 10_000


def test_mutated_frame_is_a_value_or_refused() -> None:
    rng = random.Random(0)
    outcome = Outcome()
    for frame in frames("mutated", size_max=1500):
        for _ in range(MUTATIONS):
            outcome.add(frame, mutate(frame.wire, rng))

    assert [] == outcome.finds
    assert outcome.read > 1000
    assert outcome.refused > 1000


def test_a_search_reports_what_it_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another exception than WireFormatError, and a hang; each with the bytes that did it."""

    def read(wire: bytes) -> None:
        if wire[0]:
            raise KeyError("a bug")
        while True:
            pass

    monkeypatch.setattr(mutations, "FRAME_SECONDS_MAX", 0.05)
    monkeypatch.setattr(mutations, "frames", lambda _: [Frame("odd", b"\0", read)])
    monkeypatch.setattr(mutations, "mutate", lambda wire, rng: bytes([rng.randrange(2)]))

    found = mutations.search(6, 1, lambda _: None)

    assert 6 == found.count == len(found.finds)
    kinds = {(find[:7], find.split("\n")[-2].split(":")[0]) for find in found.finds}
    assert {("odd: 01", "KeyError"), ("odd: 00", "TimeoutError")} == kinds


@pytest.mark.fuzz
def test_mutated_frames_for_a_minute() -> None:
    seed = time.monotonic_ns()
    print(f"seed {seed}")  # shown with the failure
    end = time.monotonic() + 60
    while time.monotonic() < end:
        seed += 1
        assert [] == mutations.search(10_000, seed, lambda _: None).finds


def test_garbage_is_a_value_or_refused() -> None:
    rng = random.Random(3)
    for sample in samples("garbage"):
        for _ in range(20):
            try:
                sample.decode(rng.randbytes(rng.randrange(60)), 0)
            except WireFormatError:
                continue


CREATE_TOPICS = (api_keys.CREATE_TOPICS, 5)
METADATA_0 = (api_keys.METADATA, 0)
METADATA_9 = (api_keys.METADATA, 9)
DELETE_TOPICS = (api_keys.DELETE_TOPICS, 5)
FETCH_7 = (api_keys.FETCH, 7)
PRODUCE_3 = (api_keys.PRODUCE, 3)
PRODUCE_9 = (api_keys.PRODUCE, 9)
SASL_0 = (api_keys.SASL_AUTHENTICATE, 0)
SASL_2 = (api_keys.SASL_AUTHENTICATE, 2)
DESCRIBE_PARTITIONS = (api_keys.DESCRIBE_TOPIC_PARTITIONS, 0)
PUSH = (api_keys.GET_TELEMETRY_SUBSCRIPTIONS, 0)


@pytest.mark.parametrize(
    ("api", "frame", "message"),
    [
        pytest.param(METADATA_0, "ffffffff", "MetadataRequest.topics: null", id="array"),
        pytest.param(METADATA_0, "fffffffe", r"\(prefix -2\)", id="negative array"),
        pytest.param(METADATA_0, "00000001 ffff", "MetadataRequestTopic.name: null", id="string"),
        pytest.param(METADATA_9, "02 00 00 01 01 01 00", "MetadataRequestTopic.name: null",
                     id="compact string"),
        pytest.param(SASL_0, "ffffffff", "SaslAuthenticateRequest.auth_bytes: null", id="bytes"),
        pytest.param(SASL_2, "00 00", "SaslAuthenticateRequest.auth_bytes: null",
                     id="compact bytes"),
        pytest.param(CREATE_TOPICS, "00 00000000 00 00", "CreateTopicsRequest.topics: null",
                     id="compact array"),
        pytest.param(PRODUCE_3, "fffe", r"transactional_id: null or negative length \(prefix -2\)",
                     id="negative nullable string"),
        pytest.param(PRODUCE_3, "ffff 0001 00000000 00000001 0001 61 00000001 00000000 fffffffe",
                     r"PartitionProduceData.records: .*prefix -2", id="negative records"),
    ],
)  # fmt: skip
def test_null_where_the_schema_has_none_is_refused(
    api: tuple[int, int], frame: str, message: str
) -> None:
    with pytest.raises(WireFormatError, match=message):
        decode_request(api, frame)


def decode_request(api: tuple[int, int], frame: str) -> object:
    codec = lookup(*api)
    assert codec is not None
    return codec.decode_request(bytes.fromhex(frame), 0)


def decode_response(api: tuple[int, int], frame: str) -> object:
    codec = lookup(*api)
    assert codec is not None
    return codec.decode_response(bytes.fromhex(frame), 0)


@pytest.mark.parametrize(
    ("api", "frame"),
    [
        pytest.param(METADATA_0, "7fffffff", id="structs"),
        pytest.param(METADATA_9, "ffffffff07", id="compact structs"),
        pytest.param(DELETE_TOPICS, "ffffffff07", id="strings"),
        pytest.param(FETCH_7, "ffffffff 00000000 00000000 00000000 00 00000000 00000000"
                     "00000000 00000001 0001 61 7fffffff", id="numbers"),
        pytest.param(METADATA_9, "01 00 00 00 ffffffff07", id="tags"),
    ],
)  # fmt: skip
def test_count_that_cannot_fit_is_refused_at_once(api: tuple[int, int], frame: str) -> None:
    with pytest.raises(WireFormatError, match=r"214748364[67] (elements|tags)"):
        decode_request(api, frame)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ("8080808080 00", "longer than five bytes"),
        ("ffffffff7f 00", "greater than 2147483647"),
        ("ffffffff08 00", "greater than 2147483647"),
    ],
)
def test_varint_out_of_range_is_refused(frame: str, message: str) -> None:
    with pytest.raises(WireFormatError, match=message):
        decode_request(DELETE_TOPICS, frame)


def test_overlong_varint_is_read() -> None:
    """Kafka: ByteUtils.readUnsignedVarint does not ask for the shortest form."""
    assert decode_request(DELETE_TOPICS, "81808000 00000000 00") == decode_request(
        DELETE_TOPICS, "01 00000000 00"
    )


def test_text_that_is_not_utf_8_is_refused() -> None:
    with pytest.raises(WireFormatError, match="MetadataRequest: a string is not valid UTF-8"):
        decode_request(METADATA_0, "00000001 0001 ff")


def test_string_longer_than_the_frame_is_refused() -> None:
    with pytest.raises(WireFormatError, match="99 bytes too early"):
        decode_request(METADATA_0, "00000001 0064 61")


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        pytest.param("02 05 00 04 00", "tag 4 comes after tag 5", id="descending"),
        pytest.param("02 05 00 05 00", "tag 5 comes after tag 5", id="twice"),
        pytest.param("01 05 03 00", "tag 5 extends past the end of the frame", id="too long"),
        pytest.param("01 05", "ends too early", id="no size"),
        pytest.param("01 01 09 0000000000000000 00", "finalized_features_epoch: the size of",
                     id="longer than its field"),
        pytest.param("01 01 07 00000000000000 00", "size of the tag", id="shorter than its field"),
        pytest.param("01 00 01 00", "supported_features: null", id="null in a tag"),
    ],
)  # fmt: skip
def test_malformed_tag_section_is_refused(tags: str, message: str) -> None:
    api_versions_without_keys = "0000 01 00000000"

    with pytest.raises(WireFormatError, match=message):
        decode_response((api_keys.API_VERSIONS, 3), api_versions_without_keys + tags)


def test_nullable_struct_has_two_prefixes_only() -> None:
    assert decode_request(DESCRIBE_PARTITIONS, "01 00000000 ff 00") is not None
    with pytest.raises(WireFormatError, match=r"cursor: .*\(prefix 2\)"):
        decode_request(DESCRIBE_PARTITIONS, "01 00000000 02 0261 00000000 00 00")
