"""Records as text by a format, and as JSON in kcat's shape."""

from __future__ import annotations

import base64
import json
import math
import struct
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.cli_records import Row, batch_of
from trionet.cli.records._layout import layout
from trionet.cli.records._packing import PackError, Packing
from trionet.cli.records._rendering import PLAIN, JsonLines, Rendering, Showing, safe
from trionet.errors import ConfigError

HEADERS = [("a", b"1"), ("b", None)]


def rendered(form: str, *rows: Row, showing: Showing = PLAIN, **batch: object) -> bytes:
    made = batch_of(rows, **batch)  # type: ignore[arg-type]
    return Rendering(layout(form), showing).render(made)


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("%s|", b"value|"),
        ("%v|", b"value|"),
        ("<%s>", b"<value>"),
        ("%k", b"key"),
        ("%t/%p/%o/%e/%i", b"orders/3/10/7/1"),
        ("%S %V %K %H", b"5 5 3 2"),
        ("%R%s", b"\0\0\0\x05value"),
        ("%T %d", b"1714550400123 1714550400123"),
        ("%h", b"a=1,b=NULL"),
        ("%h{[%k=%v %K %V]}", b"[a=1 1 1][b= 1 -1]"),
        ("%h{%v{hex};}", b"31;;"),
        ("%v{hex} %k{base64} %k{base64raw} %t{hex}", b"76616c7565 a2V5 a2V5 6f7264657273"),
        ("%k{unpack[>HB$]}", b"27493 121"),
        ("%d{strftime[%F %T]}", b"2024-05-01 08:00:00"),
        ("%d{hex64} %o{big16}", b"0000018f332ae47b \0\x0a"),
        ("%o{hex} %o{hex8} %o{byte} %o{bool} %o{little32}", b"a 0a \n true \n\0\0\0"),
        ("%a{timestamp-type} %a{timestamp-type;bool}", b"0 false"),
        ("nothing %%", b"nothing %"),
        ("%% %s %{%}", b"% value {}"),
    ],
)
def test_a_record_is_written_by_a_format(form: str, text: bytes) -> None:
    assert text == rendered(form, (b"key", b"value"), headers=[HEADERS])


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("%s\\n", b"a\nb\nc\n"),
        ("<%s>", b"<a><b><c>"),
        ("%i:%s ", b"1:a 2:b 3:c "),
        ("%t ", b"orders orders orders "),
        ("%p%t", b"3orders3orders3orders"),
        ("x", b"xxx"),
    ],
)
def test_records_follow_one_another(form: str, text: bytes) -> None:
    assert text == rendered(form, (None, b"a"), (None, b"b"), (None, b"c"))


def test_records_are_counted_from_batch_to_batch() -> None:
    rendering = Rendering(layout("%i "))

    assert b"1 2 " == rendering.render(batch_of([(None, b"")] * 2))
    assert b"3 " == rendering.render(batch_of([(None, b"")]))
    assert b"" == rendering.render(batch_of([]))


def test_a_batch_that_cannot_be_written_is_not_counted() -> None:
    rendering = Rendering(layout("%i:%s "), Showing(value=Packing("B$")))

    with pytest.raises(PackError):
        rendering.render(batch_of([(None, b"a"), (None, b"bc")]))
    assert b"1:97 " == rendering.render(batch_of([(None, b"a")]))


def test_null_is_nothing_or_what_stands_for_it_and_its_length_is_minus_one() -> None:
    assert b"|,-1,-1;" == rendered("%k|%s,%K,%S;", (None, None))
    assert b"NULL|NULL;" == rendered("%k|%s;", (None, None), showing=Showing(null=b"NULL"))
    assert b"|;" == rendered("%k|%s;", (b"", b""), showing=Showing(null=b"NULL"))
    assert b"\xff\xff\xff\xff" == rendered("%R", (None, None))


def test_keys_and_values_are_made_of_what_was_said() -> None:
    showing = Showing(key=Packing("long"), value=Packing("hB"))
    row = struct.pack(">q", 5), struct.pack("<hB", -1, 2)

    assert b"5: -1 2\n" == rendered("%k: %s\\n", row, showing=showing)
    assert b"0000000000000005" == rendered("%k{hex}", row, showing=showing)
    with pytest.raises(PackError):
        rendered("%k", (b"short", None), showing=showing)


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ("%q", "allowed: %t %p"),
        ("%x", "the producer id"),
        ("%]", "trionet topics offsets"),
        ("%v{rot13}", "hex, base64"),
        ("%o{roman}", "ascii, hex"),
        ("%d{go[2006]}", "ascii, hex"),
        ("%a", "timestamp-type"),
        ("%a{timestamp-type;x}", "ascii, hex"),
        ("%h{%o}", "allowed in headers: %k"),
        ("%v{unpack[z]}", "pack-string"),
    ],
)
def test_a_verb_that_there_is_not_is_reported(form: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Rendering(layout(form))

    assert told in str(caught.value)


@pytest.fixture
def far_west(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A local time zone that is not UTC."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "XXX11")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("far_west")
@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("%s", b"1714550400"),
        ("%%s=%-s, %F %T %Z", b"%s=1714550400, 2024-05-01 08:00:00 UTC"),
    ],
)
def test_a_time_does_not_depend_on_the_local_time_zone(form: str, text: bytes) -> None:
    row = (None, b"")
    assert text == rendered(f"%d{{strftime[{form}]}}", row, timestamp=1714550400123)


def test_a_time_that_no_calendar_has_is_its_number() -> None:
    text = rendered("%d{strftime[%F]}", (None, b""), timestamp=2**62)

    assert b"%d" % 2**62 == text


def test_a_terminal_is_given_nothing_that_it_might_obey() -> None:
    showing = Showing(is_terminal=True)
    row = b"\x1b[2J", "a\tb\nc\u202e\x9b31m\\é".encode()

    text = rendered("%k=%s %h\\n", row, headers=[[("\x07", b"\xff")]], showing=showing)

    expected = "\\u001b[2J=a\tb\nc\\u202e\\u009b31m\\é \\u0007=\\xff\n"
    assert expected == text.decode()


@given(st.binary())
def test_what_a_terminal_is_given_has_no_control_characters(data: bytes) -> None:
    text = safe(data).decode()

    assert all(each.isprintable() or each in "\n\t" for each in text)


@given(st.lists(st.tuples(st.none() | st.binary(), st.none() | st.binary())))
def test_columns_are_written_as_the_records_would_be_one_by_one(rows: list[Row]) -> None:
    text = rendered("%o %K %k%%|%s;", *rows)

    expected = b"".join(
        b"%d %d %b%%|%b;" % (10 + n, -1 if key is None else len(key), key or b"", value or b"")
        for n, (key, value) in enumerate(rows)
    )
    assert expected == text


def documents(lines: JsonLines, *rows: Row, **batch: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines.render(batch_of(rows, **batch)).splitlines()]


def test_a_record_has_kcats_shape() -> None:
    headers = [[("a", b"1"), ("b", None)]]

    (found,) = documents(JsonLines(), (b"key", '"é"\n'.encode()), headers=headers, broker_id=2)

    assert {
        "topic": "orders",
        "partition": 3,
        "offset": 10,
        "tstype": "create",
        "ts": 1714550400123,
        "broker": 2,
        "headers": ["a", "1", "b", None],
        "key": "key",
        "payload": '"é"\n',
    } == found
    assert [*found] == [
        "topic",
        "partition",
        "offset",
        "tstype",
        "ts",
        "broker",
        "headers",
        "key",
        "payload",
    ]


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


def test_keys_and_values_in_json_are_made_of_what_was_said() -> None:
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


def test_json_gives_a_terminal_nothing_that_it_might_obey() -> None:
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
