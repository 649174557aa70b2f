"""The stepping forms of the codecs do what the functions do, and stop at every element."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

import pytest

from protocol.samples import Sample, samples
from trionet.errors import WireFormatError
from trionet.protocol import api_keys
from trionet.protocol._codec import lookup
from trionet.protocol._stepping import Elements, elements, stepping
from trionet.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

T = TypeVar("T")


def finished(work: Generator[None, None, T]) -> tuple[T, int]:
    """The result of a computation, and how often it has stopped."""
    stops = 0
    try:
        while True:
            next(work)
            stops += 1
    except StopIteration as stop:
        return stop.value, stops


def encoded(sample: Sample, message: object) -> bytes:
    out: list[Any] = []
    finished(stepping(sample.encode, message, out))
    return b"".join(out)


@pytest.mark.slow
def test_all_messages_are_read_and_written_as_in_one_piece() -> None:
    for sample in samples("stepping", size_max=5000):
        expected = sample.decode(sample.wire, 0)
        message, _ = finished(stepping(sample.decode, sample.wire, 0))

        assert expected == message, sample.name
        assert sample.encoded(expected) == encoded(sample, message), sample.name


def test_it_stops_at_every_element() -> None:
    codec = lookup(api_keys.DELETE_TOPICS, 5)
    assert codec is not None
    frame = b"\x0b" + b"\2t" * 10 + bytes(4) + b"\0"

    message, stops = finished(stepping(codec.decode_request, frame, 0, 1000))

    assert (["t"] * 10, 10) == (message.topic_names, stops)


def test_limits_and_errors_are_the_same() -> None:
    codec = lookup(api_keys.DELETE_TOPICS, 5)
    assert codec is not None
    frame = b"\x0b" + b"\2t" * 10 + bytes(4) + b"\0"

    for wire, left in ((frame, 5), (frame[:-8], 1000), (b"\0", 1000)):
        with pytest.raises(WireFormatError) as expected:
            codec.decode_request(wire, 0, left)
        with pytest.raises(WireFormatError) as raised:
            finished(stepping(codec.decode_request, wire, 0, left))
        assert str(expected.value) == str(raised.value)


@pytest.mark.parametrize("version", [0, 9, 13])
def test_elements_are_made_one_by_one_when_they_are_written(version: int) -> None:
    codec = lookup(api_keys.METADATA, version)
    assert codec is not None
    written: list[Any] = []
    sizes = []

    def partitions(count: int) -> list[MetadataResponsePartition]:
        return [MetadataResponsePartition(partition_index=index) for index in range(count)]

    def topic(name: str, nested: list[MetadataResponsePartition]) -> MetadataResponseTopic:
        return MetadataResponseTopic(name=name, topic_id=bytes(16), partitions=nested)

    def made() -> Generator[MetadataResponseTopic]:
        for name in "abc":
            sizes.append(len(written))
            yield topic(name, elements(200, iter(partitions(200))))

    finished(stepping(codec.encode_response, MetadataResponse(topics=elements(3, made())), written))

    whole: list[Any] = []
    codec.encode_response(
        MetadataResponse(topics=[topic(name, partitions(200)) for name in "abc"]), whole
    )
    assert b"".join(whole) == b"".join(written)
    assert [0, 1, 2] == [sizes.index(size) for size in sizes]


def test_nothing_but_an_encoder_takes_them_for_a_list() -> None:
    assert isinstance(elements(1, iter([1])), Elements)
    assert not isinstance(elements(1, iter([1])), list)
