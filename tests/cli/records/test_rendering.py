"""Records as text by a format: every verb, every modifier, nulls, terminals."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.cli_records import Row, batch_of
from trionet.cli.records._layout import layout
from trionet.cli.records._packing import PackError, Packing
from trionet.cli.records._rendering import PLAIN, Rendering, Showing, safe
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
