"""Small frames with much in them: what is shown is bounded, and so is what is read for it."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from support.calls import produce_request
from support.decoding import decoded, only, request
from trionet.cli.decode import _record_batches as record_batches
from trionet.errors import WireFormatError
from trionet.protocol.api_keys import PRODUCE
from trionet.protocol.records._batch import HEADER_SIZE
from trionet.protocol.records._records import decode_batch, encode_batch
from trionet.protocol.records._types import Headers, NewRecord
from trionet.protocol.records.compression._codecs import GZIP, ZSTD
from trionet.protocol.records.message_sets._message_set import encode_message_set

SHOWN = 10


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_batches, "RECORDS_SHOWN_MAX", SHOWN)


def rows(count: int, headers: Headers = ()) -> list[NewRecord]:
    return [(number, b"k", b"v", headers) for number in range(count)]


def in_a_frame(records: bytes) -> list[dict[str, Any]]:
    """The batches of a Produce, which is well-formed."""
    found = only(decoded(request(produce_request("t", records), PRODUCE, 9)))
    assert None is found["problem"]
    batches: list[dict[str, Any]] = found["body"]["topic_data"][0]["partition_data"][0]["records"]
    return batches


@pytest.mark.parametrize("codec", [0, ZSTD])
@pytest.mark.parametrize(("count", "shown"), [(9, 9), (10, 10), (11, 10), (5000, 10)])
def test_the_first_records_of_a_batch_are_shown(codec: int, count: int, shown: int) -> None:
    found = only(decoded(encode_batch(rows(count), base_offset=7, codec=codec)))

    assert None is found["problem"]
    assert [*range(7, 7 + shown)] == [record["offset"] for record in found["body"]["records"]]
    assert count == found["body"]["record_count"]
    assert (count - shown or None) == found["body"].get("records_left_out")


def test_headers_count_as_records_do() -> None:
    three = [("a", b"1"), ("b", None), ("c", b"x" * 200)]
    body = only(decoded(encode_batch(rows(5, three))))["body"]

    assert [0, 1] == [record["offset"] for record in body["records"]]
    assert 3 == body["records_left_out"]


def test_the_batches_of_a_frame_share_what_is_shown() -> None:
    shown = [
        (len(each["records"]), each.get("records_left_out"))
        for each in in_a_frame(encode_batch(rows(6), codec=GZIP) * 3)
    ]

    assert [(6, None), (4, 2), (0, 6)] == shown


def test_they_share_how_far_they_may_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_batches, "INFLATED_BYTES_MAX", 1000)
    batch = encode_batch([(0, None, bytes(600), ())], codec=GZIP)

    assert [1, 1, 0] == [len(each["records"]) for each in in_a_frame(batch * 3)]
    monkeypatch.setattr(record_batches, "INFLATED_BYTES_MAX", 500)
    assert "larger than 500 bytes" in only(decoded(batch))["problem"]["text"]


@pytest.mark.parametrize("magic", [0, 1])
def test_the_first_messages_of_a_compressed_one_are_shown(magic: int) -> None:
    records = [(number, 1, b"k", b"v", ()) for number in range(14)]
    found = only(decoded(encode_message_set(records, magic=magic, codec=GZIP)))

    assert [*range(10)] == [each["offset"] for each in found["body"]["messages"]]
    assert (4, None) == (found["body"]["messages_left_out"], found["problem"])


@pytest.mark.parametrize(("at", "byte"), [(0, 1), (0, 8), (0, 255), (4, 3), (5, 3), (6, 1)])
def test_a_malformed_record_among_too_many_is_reported(at: int, byte: int) -> None:
    """What counts records reads on as far as what reads them."""
    data = bytearray(encode_batch([(0, b"", b"", ())] * 100))
    data[HEADER_SIZE + at] = byte
    found = only(decoded(bytes(data)))

    with pytest.raises(WireFormatError) as malformed:
        decode_batch(data)
    assert f"{malformed.value} (and the CRC is wrong)" == found["problem"]["text"]


@pytest.mark.slow
@pytest.mark.parametrize("headers", [False, True])
def test_a_bomb_costs_little_more_than_what_it_inflates_to(headers: bool) -> None:
    """The shortest records, or the shortest headers, which would each be a tuple."""
    count = 500_000
    many: list[tuple[str, bytes | None]] = [("", None)] * count
    data = encode_batch([(0, b"", b"", many)] if headers else [(0, b"", b"", ())] * count, codec=1)
    tracemalloc.start()

    found = only(decoded(data))

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert None is found["problem"]
    assert found["body"]["records_left_out"]
    assert peak < 40 * count
