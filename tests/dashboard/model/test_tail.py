"""Records as they can be read best."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.client.consumer import ConsumerRecord
from trionet.dashboard.model._model import Model
from trionet.dashboard.model._tail import (
    BYTES_MAX,
    RECORDS_MAX,
    Form,
    TailRow,
    dump,
    pretty,
    readable,
)


def record(
    offset: int, value: bytes | None = b"v", key: bytes | None = None, partition: int = 0
) -> ConsumerRecord:
    return ConsumerRecord("t", partition, offset, 1000 + offset, key, value, [], 0, 0)


@pytest.mark.parametrize(
    ("data", "form", "text"),
    [
        (None, Form.NULL, "null"),
        (b"", Form.TEXT, ""),
        (b"hello", Form.TEXT, "hello"),
        ("grüße 你好".encode(), Form.TEXT, "grüße 你好"),
        (b"two\nlines", Form.TEXT, "two\nlines"),
        (b'{"a": [1, 2]}', Form.JSON, '{"a": [1, 2]}'),
        (b"[1]", Form.JSON, "[1]"),
        (b"17", Form.TEXT, "17"),
        (b"{not json", Form.TEXT, "{not json"),
        (b"\xff\xfe\x00", Form.HEX, "ff fe 00"),
        (b"\x00\x00\x00\x05abc", Form.HEX, "00 00 00 05 61 62 63"),
        (b"\x1b[2J", Form.HEX, "1b 5b 32 4a"),
        ("\u202etxt.exe".encode(), Form.HEX, "e2 80 ae 74 78 74 2e 65 78 65"),
        (b"[" * 4000, Form.TEXT, "[" * 4000),
    ],
)
def test_bytes_are_null_text_json_or_hex(data: bytes | None, form: Form, text: str) -> None:
    assert (form, text) == readable(data)


def test_a_long_text_that_is_cut_within_a_character_is_text() -> None:
    text = "x" * (BYTES_MAX - 1) + "ü" * 10

    assert (Form.TEXT, "x" * (BYTES_MAX - 1)) == readable(text.encode())


@given(st.binary(max_size=200))
def test_any_bytes_can_be_shown(data: bytes) -> None:
    form, text = readable(data)

    if form is Form.HEX:
        assert data == bytes.fromhex(text)
    else:
        assert data == text.encode()


def test_a_dump_has_offsets_hex_digits_and_characters() -> None:
    assert [
        "00000000  68 65 6c 6c 6f 20 77 6f 72 6c 64 00 01 02 03 04  hello world.....",
        "00000010  ff                                               .",
    ] == dump(b"hello world\x00\x01\x02\x03\x04\xff")
    assert ["null"] == dump(None)


def test_json_is_shown_line_by_line() -> None:
    assert ["{", '  "a": 1', "}"] == pretty(b'{"a":1}')
    assert None is pretty(b"{")


def test_of_a_large_record_the_beginning_is_kept_and_its_size() -> None:
    row = TailRow.of(record(1, b"x" * 100_000, b"k"), 0)

    assert (BYTES_MAX, 100_000, 1) == (len(row.value or b""), row.value_bytes, row.key_bytes)


def test_the_newest_record_is_the_first_and_the_oldest_are_forgotten() -> None:
    model = Model()
    model.select_tail(("t", None))
    for first in range(0, RECORDS_MAX + 50, 50):
        model.append_tail([record(offset) for offset in range(first, first + 50)], 0, 1.0)

    assert RECORDS_MAX == len(model.tail)
    offsets = [row.offset for row in model.tail.values()]
    assert list(range(RECORDS_MAX + 49, 49, -1)) == offsets


def test_more_records_at_once_than_are_kept_are_the_last_ones() -> None:
    model = Model()
    model.append_tail([record(offset) for offset in range(2 * RECORDS_MAX)], 0, 1.0)

    offsets = [row.offset for row in model.tail.values()]
    assert (2 * RECORDS_MAX - 1, RECORDS_MAX) == (offsets[0], offsets[-1])


def test_records_that_were_passed_over_are_counted() -> None:
    model = Model()
    model.append_tail([record(1)], 0, 1.0)
    model.append_tail([record(500)], 498, 2.0)

    assert 498 == model.tail_skipped
