"""Bytes as numbers and texts, and back."""

from __future__ import annotations

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.cli.records._packing import PackError, Packing, packings
from trionet.errors import ConfigError


@pytest.mark.parametrize(
    ("pack", "data", "text"),
    [
        ("long", struct.pack(">q", -5), b"-5"),
        ("integer", struct.pack(">i", 7), b"7"),
        ("short", struct.pack(">h", 7), b"7"),
        ("double", struct.pack(">d", 0.5), b"0.5"),
        ("float", struct.pack(">f", 0.5), b"0.5"),
        ("boolean", b"\x01", b"true"),
        ("string", "é".encode(), "é".encode()),
        ("hB s", struct.pack("<hB", -2, 200) + b"rest of it", b"-2 200 rest of it"),
        (">I<I", struct.pack(">I", 1) + struct.pack("<I", 2), b"1 2"),
        ("cc", b"ab", b"a b"),
    ],
)
def test_bytes_are_shown_and_made_again(pack: str, data: bytes, text: bytes) -> None:
    packing = Packing(pack)

    assert text == packing.as_text(data)
    assert data == packing.packed(text)


@given(st.integers(-(2**63), 2**63 - 1), st.integers(0, 255), st.text())
def test_what_is_shown_is_made_again(number: int, byte: int, rest: str) -> None:
    packing = Packing(">qBs")
    data = struct.pack(">qB", number, byte) + rest.encode()

    assert data == packing.packed(packing.as_text(data))


def test_bytes_that_are_too_few_or_too_many_are_reported() -> None:
    with pytest.raises(PackError, match="3 bytes, too few for 'integer'"):
        Packing("integer").values(b"abc")
    with pytest.raises(PackError, match="1 byte left over"):
        Packing("integer").values(b"abcde")

    assert [1] == Packing("B").values(b"\x01more of it")


@pytest.mark.parametrize("text", [b"", b"x", b"5000000000", b"1 2", b"1.5"])
def test_text_that_is_no_such_number_is_reported(text: bytes) -> None:
    with pytest.raises(PackError):
        Packing("integer").packed(text)


def test_json_is_compacted_and_has_to_be_json() -> None:
    assert b'{"a":[1,"\xc3\xa9"]}' == Packing("json").packed('{"a": [1, "é"]}'.encode())
    for function in (Packing("json").packed, Packing("json").as_text, Packing("json").document):
        for bad in (b"{", b"[" * 100_000, b"[NaN]", b'"\xff"'):
            with pytest.raises(PackError, match="invalid JSON"):
                function(bad)


@pytest.mark.parametrize(
    ("data", "compacted"),
    [
        (b'{"a": 1,\r\n\t"a":2}', b'{"a":1,"a":2}'),
        (b"[1.10, 1e999, 12345678901234567890.5]", b"[1.10,1e999,12345678901234567890.5]"),
        (rb'{"\ud800": "a  \" , : \\"}', rb'{"\ud800":"a  \" , : \\"}'),
        (b'" "', b'" "'),
    ],
)
def test_json_is_otherwise_as_it_was_written(data: bytes, compacted: bytes) -> None:
    assert compacted == Packing("json").packed(data)
    assert compacted == Packing("json").as_text(data)
    assert compacted.decode() == Packing("json").document(data)


def test_json_of_json_is_ascii() -> None:
    assert r'"\u00e9\u202e\ud83d\ude00\u007f"' == Packing("json").document(
        '"é\u202e😀\x7f"'.encode()
    )


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.text()
        | st.floats(allow_nan=False, allow_infinity=False),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    ),
    st.sampled_from([None, 1, "\t"]),
)
def test_compacting_changes_no_document(document: object, indent: int | str | None) -> None:
    text = json.dumps(document, indent=indent)

    assert document == json.loads(Packing("json").packed(text.encode()))
    assert document == json.loads(Packing("json").document(text.encode()))


@pytest.mark.parametrize("pack", ["z", "i$i", "si", "utf8"])
def test_a_pack_string_that_there_is_not_is_reported(pack: str) -> None:
    with pytest.raises(ConfigError, match="string, boolean, short"):
        Packing(pack)


def test_keys_and_values_are_made_of_different_things() -> None:
    key, value = packings(["key=long", "value=json"])
    assert key is not None
    assert value is not None
    assert ("long", "json") == (key.text, value.text)

    both = packings(["integer"])
    assert ["integer", "integer"] == [each.text for each in both if each is not None]
    assert (None, None) == packings([])
    with pytest.raises(ConfigError, match="key=TYPE, value=TYPE"):
        packings(["header=long"])
