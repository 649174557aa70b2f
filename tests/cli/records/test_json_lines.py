"""Records as JSON in kcat's shape; what is no text is base64 beside it."""

from __future__ import annotations

import base64
import json
import math
import struct
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from support.cli_records import Row, batch_of
from trionet.cli.records._packing import Packing
from trionet.cli.records._rendering import JsonLines, Showing


def documents(lines: JsonLines, *rows: Row, **batch: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines.render(batch_of(rows, **batch)).splitlines()]


def test_a_record_has_kcats_shape() -> None:
    headers = [[("a", b"1"), ("b", None)]]

    (found,) = documents(JsonLines(), (b"key", '"é"\n'.encode()), headers=headers)

    assert {
        "topic": "orders",
        "partition": 3,
        "offset": 10,
        "tstype": "create",
        "ts": 1714550400123,
        "headers": ["a", "1", "b", None],
        "key": "key",
        "payload": '"é"\n',
    } == found
    assert ["topic", "partition", "offset", "tstype", "ts", "headers", "key", "payload"] == [*found]


def test_what_is_not_there_is_null_or_left_out() -> None:
    (found,) = documents(JsonLines(), (None, None), timestamp=-1)

    assert {"topic": "orders", "partition": 3, "offset": 10, "key": None, "payload": None} == found


def test_the_log_may_have_set_the_time() -> None:
    (found,) = documents(JsonLines(), (None, None), timestamp_type=1)

    assert "logappend" == found["tstype"]


def test_what_is_no_text_is_base64() -> None:
    headers = [[("a", b"\xff"), ("b", b"c"), ("d", None)]]

    (found,) = documents(JsonLines(), (b"\xfe", b"\xff\0"), headers=headers)

    assert (None, "/g==", None, "/wA=") == (
        found["key"],
        found["key_base64"],
        found["payload"],
        found["payload_base64"],
    )
    assert ["a", None, "b", "c", "d", None] == found["headers"]
    assert ["a", "/w==", "b", "Yw==", "d", None] == found["headers_base64"]


def test_keys_and_values_are_made_of_what_was_said() -> None:
    lines = JsonLines(Showing(key=Packing("integer"), value=Packing("json")))
    good = struct.pack(">i", -7), b'{"a": [1]}'

    first, second = documents(lines, good, (b"short!", b"{"))

    assert (-7, {"a": [1]}) == (first["key"], first["payload"])
    assert (None, None) == (second["key"], second["payload"])
    assert "2 bytes left over after 'integer'" == second["key_error"]
    assert second["payload_error"].startswith("invalid JSON")
    assert b"{" == base64.b64decode(second["payload_base64"])


def test_several_values_are_a_list_and_what_json_lacks_is_text() -> None:
    lines = JsonLines(Showing(value=Packing("hh")))
    (found,) = documents(lines, (None, struct.pack("<hh", 1, 2)))
    assert [1, 2] == found["payload"]

    lines = JsonLines(Showing(value=Packing("double")))
    (found,) = documents(lines, (None, struct.pack(">d", float("inf"))))
    assert "inf" == found["payload"]


def test_only_the_size_of_a_value_may_be_shown() -> None:
    lines = JsonLines(with_value=False)

    first, second = documents(lines, (None, b"\xff\xff"), (None, None))

    assert (2, -1) == (first["payload_size"], second["payload_size"])
    assert "payload" not in first


def test_a_terminal_is_given_nothing_that_it_might_obey() -> None:
    lines = JsonLines(Showing(is_terminal=True))

    text = lines.render(batch_of([("é".encode(), "\x9b\u202e".encode())]))

    assert text.decode().rstrip("\n").isprintable()
    assert {"key": "é", "payload": "\x9b\u202e"}.items() <= json.loads(text).items()


@given(st.lists(st.tuples(st.none() | st.binary(), st.none() | st.binary())))
def test_every_record_is_one_line_that_has_all_of_it(rows: list[Row]) -> None:
    found = documents(JsonLines(), *rows)

    assert rows == [(_bytes(each, "key"), _bytes(each, "payload")) for each in found]


def _bytes(document: dict[str, Any], name: str) -> bytes | None:
    if coded := document.get(f"{name}_base64"):
        return base64.b64decode(coded)
    text = document[name]
    return None if text is None else str(text).encode()


def test_numbers_that_json_lacks_are_texts_and_truth_is_its_own() -> None:
    lines = JsonLines(Showing(key=Packing("boolean"), value=Packing(">ff")))

    (found,) = documents(lines, (b"\1", struct.pack(">ff", math.nan, 1.5)))

    assert (True, ["nan", 1.5]) == (found["key"], found["payload"])
