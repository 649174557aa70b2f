"""What a message may hold: so many elements, and no more memory than its frame can account for."""

from __future__ import annotations

import gc
import importlib
import struct
import tracemalloc
from collections.abc import Callable, Iterator
from math import inf
from typing import Any, NamedTuple

import pytest

from protocol.dense_frames import dense_frame, places
from protocol.generator.apis import APIS, DATA
from protocol.kio_values import codec_functions
from protocol.samples import api_of
from trionet.errors import LocalProtocolError, WireFormatError
from trionet.protocol import api_keys
from trionet.protocol._codec import ApiVersionCodec, lookup
from trionet.protocol._header import skip_tags
from trionet.protocol._wire import REQUEST_ELEMENTS_MAX, TAGS_MAX, TEXT_BYTES_MAX, varint
from trionet.protocol.messages.delete_topics import DeleteTopicsRequest

#: Of memory, for each byte of a frame. The most that was measured is 57.7, an entry of
#: AlterClientQuotas in a frame of 4 KB: four bytes, for an object and two empty lists.
MEMORY_RATIO_MAX = 64


def codec(api_key: int, version: int) -> ApiVersionCodec:
    found = lookup(api_key, version)
    assert found is not None
    return found


def fetch_7(topics: int, partitions: int, forgotten: int) -> bytes:
    """In every topic so many partitions, and one forgotten topic of so many partitions."""
    partition = bytes(4 + 8 + 8 + 4)
    topic = b"\0\1t" + struct.pack(">i", partitions) + partition * partitions
    head = bytes(4 + 4 + 4 + 4 + 1 + 4 + 4)
    numbers = struct.pack(">i", forgotten) + bytes(4 * forgotten)
    return (
        head + struct.pack(">i", topics) + topic * topics
        + struct.pack(">i", 1) + b"\0\1t" + numbers
    )  # fmt: skip


def delete_topics_5(names: int) -> bytes:
    return varint(names + 1) + b"\2t" * names + bytes(4) + b"\0"


def heartbeat_4(tags: int) -> bytes:
    section = b"".join(varint(tag) + b"\0" for tag in range(tags))
    return b"\2g" + bytes(4) + b"\2m" + b"\0" + varint(tags) + section


FETCH_7 = (api_keys.FETCH, 7)
DELETE_TOPICS_5 = (api_keys.DELETE_TOPICS, 5)
HEARTBEAT_4 = (api_keys.HEARTBEAT, 4)


@pytest.mark.parametrize(
    ("api", "frame", "elements"),
    [
        # Two arrays of topics, three of partitions, and one of numbers; then their elements.
        pytest.param(FETCH_7, fetch_7(3, 4, 5), (2 + 3 + 1) + (3 + 1) + 12 + 5, id="nested"),
        pytest.param(DELETE_TOPICS_5, delete_topics_5(9), 1 + 9, id="texts"),
        pytest.param(DELETE_TOPICS_5, delete_topics_5(200), 1 + 200, id="many texts"),
        pytest.param(HEARTBEAT_4, heartbeat_4(3), 3, id="tags"),
        pytest.param(HEARTBEAT_4, heartbeat_4(200), 200, id="many tags"),
    ],
)
def test_as_many_elements_as_are_allowed(api: tuple[int, int], frame: bytes, elements: int) -> None:
    decode = codec(*api).decode_request
    expected = decode(frame, 0)

    assert expected == decode(frame, 0, elements)
    with pytest.raises(WireFormatError, match=r"elements exceed the limit.*request\.max\.elements"):
        decode(frame, 0, elements - 1)


def test_tags_that_are_known_count_too() -> None:
    """In a Fetch request: its cluster's id, and a tag after it that nobody knows."""
    fetch = codec(api_keys.FETCH, 12)
    head = bytes(4 + 4 + 4 + 4 + 1 + 4 + 4)
    frame = head + b"\1\1\1" + b"\2" + b"\0\2\2c" + b"\7\0"

    assert "c" == fetch.decode_request(frame, 0, 4).cluster_id
    with pytest.raises(WireFormatError, match="tag section: 2 more elements"):
        fetch.decode_request(frame, 0, 3)


def test_nothing_more_is_decoded_beyond_the_limit() -> None:
    """The count is refused, not the last of the elements that it announces."""
    names = REQUEST_ELEMENTS_MAX
    frame = delete_topics_5(names)
    tracemalloc.start()
    try:
        with pytest.raises(WireFormatError, match="250000 more elements"):
            codec(*DELETE_TOPICS_5).decode_request(frame, 0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 100_000


def test_most_elements_of_a_request_by_default() -> None:
    frame = delete_topics_5(REQUEST_ELEMENTS_MAX - 1)

    names = codec(*DELETE_TOPICS_5).decode_request(frame, 0).topic_names

    assert REQUEST_ELEMENTS_MAX - 1 == len(names)


def test_responses_may_hold_more() -> None:
    """They tell of every partition what a request asks about all of them."""
    frame = bytes(4) + varint(REQUEST_ELEMENTS_MAX + 1) + b"\1\0\0\1\0" * REQUEST_ELEMENTS_MAX
    decode = codec(api_keys.DELETE_TOPICS, 5).decode_response

    assert REQUEST_ELEMENTS_MAX == len(decode(frame + b"\0", 0).responses)


def test_sections_have_few_tags() -> None:
    """A section is read in one step, in headers and in messages; no peer has many (KIP-482)."""

    def section(count: int) -> bytes:
        return varint(count) + b"".join(varint(tag) + b"\0" for tag in range(count))

    most = section(TAGS_MAX)
    assert skip_tags(most, 0) == len(most)
    with pytest.raises(WireFormatError, match="1001 tags; at most 1000"):
        skip_tags(section(TAGS_MAX + 1), 0)
    decode = codec(*HEARTBEAT_4).decode_request
    assert TAGS_MAX == len(decode(heartbeat_4(TAGS_MAX), 0).unknown_tags)
    with pytest.raises(WireFormatError, match="1001 tags; at most 1000"):
        decode(heartbeat_4(TAGS_MAX + 1), 0)


def test_texts_are_as_long_as_in_older_versions() -> None:
    """Kafka: MessageDataGenerator; or a topic's name could have 100 MB."""

    def frame(length: int) -> bytes:
        return b"\2" + varint(length + 1) + b"t" * length + bytes(4) + b"\0"

    decode = codec(*DELETE_TOPICS_5).decode_request
    assert TEXT_BYTES_MAX == len(decode(frame(TEXT_BYTES_MAX), 0).topic_names[0])
    with pytest.raises(WireFormatError, match=r"topic_names: text of 32768 bytes.*32767"):
        decode(frame(TEXT_BYTES_MAX + 1), 0)


@pytest.mark.parametrize("version", [1, 5])
def test_invalid_texts_are_not_written(version: int) -> None:
    request = codec(api_keys.DELETE_TOPICS, version)

    def written(length: int) -> int:
        out: list[Any] = []
        request.encode_request(DeleteTopicsRequest(topic_names=["t" * length]), out)
        return len(b"".join(out))

    assert TEXT_BYTES_MAX < written(TEXT_BYTES_MAX)
    with pytest.raises(LocalProtocolError, match="32767"):
        written(TEXT_BYTES_MAX + 1)
    with pytest.raises(LocalProtocolError, match="32767"):
        written(100_000)


class Dense(NamedTuple):
    """One of the frames that cost most, and where it is filled."""

    name: str
    decode: Callable[[bytes, int], object]
    wire: bytes


def dense_frames(size: int) -> Iterator[Dense]:
    """For every layout of every message, a frame for each place that can be filled."""
    for module_name in (*APIS, *DATA):
        module = importlib.import_module(f"trionet.protocol.messages.{module_name}")
        for message in api_of(module_name).messages.values():
            seen = set()
            for version, top in message.versions.items():
                decode, _ = codec_functions(module, message, version)
                if decode in seen:
                    continue
                seen.add(decode)
                for place in places(top):
                    name = f"{message.name} v{version} {place}"
                    yield Dense(name, decode, dense_frame(top, place, size))


def memory_ratio(dense: Dense) -> float:
    """The bytes that decoding takes at most, for each byte of the frame.

    A thread of the tests before may just then allocate, too: the smaller of two measurements is the
    message's.
    """
    ratio = inf
    for _ in range(2):
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        message = dense.decode(dense.wire, 0)
        peak = tracemalloc.get_traced_memory()[1]
        del message
        ratio = min(ratio, (peak - before) / len(dense.wire))
        if ratio <= MEMORY_RATIO_MAX:
            break
    return ratio


@pytest.mark.slow
def test_memory_of_any_message_is_bounded_by_its_frame() -> None:
    """While it is decoded, too: of requests, and of responses and data inside them."""
    frames = list(dense_frames(1024))
    gc.disable()  # or what it frees meanwhile would be counted
    tracemalloc.start()
    try:
        ratios = [(memory_ratio(dense), dense.name) for dense in frames]
    finally:
        tracemalloc.stop()
        gc.enable()

    assert len(frames) > 800
    assert [] == [found for found in ratios if found[0] > MEMORY_RATIO_MAX]
