"""What a format writes, the same format reads."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.cli_records import batch_of
from trionet.cli.records._layout import layout
from trionet.cli.records._lines import InputError, RecordColumns, Shape
from trionet.cli.records._packing import Packing
from trionet.cli.records._parsing import FormatInput
from trionet.cli.records._rendering import Rendering
from trionet.errors import ConfigError


def reader(form: str, size_max: int = 1000, **shape: object) -> FormatInput:
    return FormatInput(layout(form), Shape(**shape), size_max)  # type: ignore[arg-type]


def read(form: str, data: bytes, **shape: object) -> list[RecordColumns]:
    found = reader(form, **shape)  # type: ignore[arg-type]
    taken = found.feed(data)
    error = found.take_error()
    if error is None:
        taken += found.end()
        error = found.take_error()
    if error is not None:
        raise error
    return taken


def one(form: str, data: bytes) -> RecordColumns:
    (taken,) = read(form, data)
    return taken


@pytest.mark.parametrize(
    ("form", "data", "key", "value"),
    [
        (r"%k %v\n", b"a b c\n", b"a", b"b c"),
        (r"%k %v\n", b"a b", b"a", b"b"),
        (r"%K{big32}%k%V{big32}%v", b"\0\0\0\1k\0\0\0\2vv", b"k", b"vv"),
        (r"%K %S|%k%s", b"1 -1|k", b"k", None),
        (r"%K{3}%k%V{2}%v\n", b"abcde\n", b"abc", b"de"),
        (r"%R%s%k\n", b"\xff\xff\xff\xffk\n", b"k", None),
        (r"%k{hex} %v{base64}\n", b"6b Zm9v\n", b"k", b"foo"),
        (r"%k%%%v{json}\n", b'k%{"a": 1}\n', b"k", b'{"a":1}'),
        (r"%o %e %i %k %v\n", b"5 6 7 k v\n", b"k", b"v"),
        (r"%k=%v", b"k=all\nthe rest", b"k", b"all\nthe rest"),
        (r"%V{bool}%v.%k\n", b"truex.k\n", b"k", b"x"),
        (r"%K{1}%k%V{1}%v\n", b"kv", b"k", b"v"),
        (r"%K{hex8}%k%V{hex8}%v\n", b"01k02vv\n", b"k", b"vv"),
        (r"%K{hex16} %k%V{hex32}%v\n", b"0001 kffffffff\n", b"k", None),
    ],
)
def test_a_record_is_read_by_a_format(form: str, data: bytes, key: bytes, value: bytes) -> None:
    taken = one(form, data)

    assert ([key], [value]) == (taken.keys, taken.values)


def test_where_records_go_and_when_they_were_is_read() -> None:
    data = b"a 0 5 x\nb 1 6 y\na 0 7 z\n"

    first, second = read(r"%t %p %T %v\n", data)

    assert ("a", 0, [b"x", b"z"], [5, 7], [1, 3]) == (
        first.topic,
        first.partition,
        first.values,
        first.timestamps,
        [*first.numbers],
    )
    assert ("b", 1, [b"y"], [6], [2]) == (
        second.topic,
        second.partition,
        second.values,
        second.timestamps,
        [*second.numbers],
    )


def test_headers_are_counted_and_read_by_a_format_of_their_own() -> None:
    taken = one(r"%H%h{ %k=%v;}%v\n", b"2 a=1; b=;value\n")

    assert [[("a", b"1"), ("b", b"")]] == taken.headers
    assert [b"value"] == taken.values


def test_headers_are_read_as_kcat_lists_them_and_come_after_those_of_all() -> None:
    (taken,) = read(r"%h|%v\n", b"a=1,b=NULL,c|v\n|w\n", headers=[("x", b"0")])

    assert [
        [("x", b"0"), ("a", b"1"), ("b", None), ("c", None)],
        [("x", b"0")],
    ] == taken.headers


def test_what_was_read_is_packed() -> None:
    (taken,) = read(r"%k %v\n", b"1 2\n", key_packing=Packing("short"))

    assert ([b"\0\1"], [b"2"]) == (taken.keys, taken.values)


@pytest.mark.parametrize(
    ("form", "data", "told"),
    [
        (r"%K %k\n", b"x k\n", "record 1: invalid number b'x k\\n' for %K"),
        (r"%p %v\n", b"-1 k\n", "-1 is too small for %p"),
        (r"%T %v\n", b"-2 k\n", "-2 is too small for %T"),
        (r"%K{hex16}%k\n", b"0x1_k\n", "invalid number b'0x1_' for %K{hex16}"),
        (r"%K %k\n", b"-2 k\n", "invalid length -2"),
        (r"%k{hex}\n", b"zz\n", "invalid hexadecimal"),
        (r"%v{base64}\n", b"a!b\n", "invalid base64"),
        (r"%v{json}\n", b"{\n", "invalid JSON"),
        (r"%K{1}%k\n", b"ab\n", "expected b'\\n', found b'b\\n'"),
        (r"%K{5}%k", b"abc", "the input ends before the record does, after 3 bytes"),
        (r"%V{big64}%v", b"\x7f" * 8, "the input ends before"),
        (r"%p{big16}\n%v", b"ab", "the input ends before"),
        (r"%H %h{%k}", b"9999999 ", "invalid length 9999999 for %H"),
        (r"%p %v\n", b"9" * 30, "invalid number"),
    ],
)
def test_what_is_no_record_is_reported(form: str, data: bytes, told: str) -> None:
    with pytest.raises(InputError) as caught:
        read(form, data)

    assert told in str(caught.value)


def test_records_in_front_of_what_is_none_are_sent() -> None:
    found = reader(r"%p %v\n")

    (taken,) = found.feed(b"0 a\n0 b\nx c\n0 d\n")

    assert [b"a", b"b"] == taken.values
    assert str(found.take_error()).startswith("record 3: ")
    assert not found.can_go_on


def test_a_record_that_grows_too_large_is_reported() -> None:
    found = reader(r"%v\r\n", size_max=10)
    found.feed(b"x" * 11)

    assert "larger than 10 bytes (max.request.size)" in str(found.take_error())


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ("", "at least one verb"),
        ("text", "at least one verb"),
        ("%k%v", "does not define where it ends"),
        ("%k %k", "twice"),
        ("%v %s", "twice"),
        ("%k %K", "must precede the field it measures"),
        ("%q", "unknown verb"),
        ("%a{timestamp-type} %v", "unknown verb"),
        ("%v{unpack[>i]}", "hex, base64"),
        ("%d{strftime[%F]} %v", "milliseconds since the epoch"),
        ("%h{%k}", "must be preceded by %H"),
        ("%H %h{%o}", "allowed in headers"),
        ("%p{3} %v", "only lengths and counts"),
        ("%p{roman} %v", "ascii, hex"),
    ],
)
def test_a_format_that_reads_nothing_is_reported(form: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        reader(form)

    assert told in str(caught.value)


_BYTES = st.none() | st.binary(max_size=20)
_HEADERS = st.lists(st.tuples(st.text(max_size=5), _BYTES), max_size=3)
_EVERYTHING = "%t %p %T %K{big32}%k%S,%s%H{hex8}%h{%K{big16}%k%V{little32}%v}"


@given(st.lists(st.tuples(_BYTES, _BYTES, _HEADERS), max_size=5), st.lists(st.integers(0, 500)))
def test_what_was_written_is_read_in_whatever_pieces_it_comes(
    rows: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]],
    places: list[int],
) -> None:
    written = batch_of([row[:2] for row in rows], headers=[row[2] for row in rows])
    text = Rendering(layout(_EVERYTHING)).render(written)
    at = [0, *sorted(each % (len(text) + 1) for each in places), len(text)]
    found = reader(_EVERYTHING, size_max=10_000)

    taken = [each for start, end in pairwise(at) for each in found.feed(text[start:end])]
    taken += found.end()

    assert found.take_error() is None
    assert {("orders", 3)} >= {(each.topic, each.partition) for each in taken}
    assert rows == [
        (key, value, headers)
        for each in taken
        for key, value, headers in zip(
            each.keys or (), each.values, each.headers or (), strict=True
        )
    ]


@given(st.binary(max_size=200), st.sampled_from([_EVERYTHING, r"%k %v\n", r"%p,%R%s"]))
def test_garbage_is_records_or_an_error(data: bytes, form: str) -> None:
    try:
        read(form, data)
    except InputError:
        pass
