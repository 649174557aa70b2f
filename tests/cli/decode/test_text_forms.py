"""Every dress in which people copy bytes: all of them give the same bytes."""

from __future__ import annotations

import base64
import shutil
import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trionet.cli.decode._sources import BASE64, HEX, TextFormError, read_text

DATA = bytes.fromhex("00000014 0012 0000 00000001 000a") + b"kafka-tool"
HEX_DIGITS = DATA.hex()


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("hex", HEX_DIGITS),
        ("hex", HEX_DIGITS.upper()),
        ("hex", DATA.hex(" ")),
        ("hex", DATA.hex(":")),
        ("hex", DATA.hex("-", 2)),
        ("hex", DATA.hex(" ", 2)),
        ("hex", f"0x{HEX_DIGITS}\n"),
        ("hex", ", ".join(f"0x{byte:02x}" for byte in DATA)),
        ("hex", "{" + ", ".join(f"0x{byte:02X}" for byte in DATA) + "};"),
        (
            "hex",
            f"unsigned char a[] = {{\n {', '.join(f'0x{byte:02x}' for byte in DATA)}\n}};\nint n;",
        ),
        (
            "hex",
            "static const unsigned char pkt7[24] = {\n"
            + ", ".join(f"0x{byte:02x}" for byte in DATA)
            + " /* {0x00}...kafka-tool */\n};",
        ),
        ("hex", "\r\n".join([HEX_DIGITS[:10], "  " + HEX_DIGITS[10:]])),
        ("hex", "".join(f"\\x{byte:02x}" for byte in DATA)),
        ("escapes", repr(DATA)),
        ("escapes", repr(DATA)[2:-1]),
        (
            "escapes",
            '"\\x00\\x00\\x00\\x14\\x00\\x12\\x00\\x00"\n"\\x00\\x00\\x00\\x01\\0\\nkafka-tool"',
        ),
        ("base64", base64.b64encode(DATA).decode()),
        ("base64", base64.urlsafe_b64encode(DATA).decode().rstrip("=")),
        ("base64", base64.encodebytes(DATA * 5).decode()),
    ],
)
def test_a_form_is_recognised(form: str, text: str) -> None:
    data, recognised = read_text(text)

    assert form == recognised
    assert data in {DATA, DATA * 5}


XXD = """\
00000000: 0000 0014 0012 0000 0000 0001 000a 6b61  ..............ka
00000010: 666b 612d 746f 6f6c                      fka-tool
"""
HEXDUMP = """\
00000000  00 00 00 14 00 12 00 00  00 00 00 01 00 0a 6b 61  |..............ka|
00000010  66 6b 61 2d 74 6f 6f 6c                           |fka-tool|
00000018
"""
OD = """\
000000 00 00 00 14 00 12 00 00 00 00 00 01 00 0a 6b 61  >..............ka<
000010 66 6b 61 2d 74 6f 6f 6c                          >fka-tool<
000018
"""
WIRESHARK = """\
0000   00 00 00 14 00 12 00 00 00 00 00 01 00 0a 6b 61   ..............ka
0010   66 6b 61 2d 74 6f 6f 6c                           fka-tool
"""
OD_OCTAL = """\
0000000 00 00 00 14 00 12 00 00 00 00 00 01 00 0a 6b 61
0000020 66 6b 61 2d 74 6f 6f 6c
0000030
"""
TCPDUMP = """\
\t0x0000:  0000 0014 0012 0000 0000 0001 000a 6b61  ..............ka
\t0x0010:  666b 612d 746f 6f6c                      fka-tool
"""


@pytest.mark.parametrize(
    "text", [XXD, HEXDUMP, OD, OD_OCTAL, WIRESHARK, TCPDUMP, XXD.replace("\n", "\r\n")]
)
def test_a_hex_dump_is_read_without_its_offsets_and_characters(text: str) -> None:
    assert (DATA, "hex dump") == read_text(text)


def test_characters_that_look_like_hex_are_no_bytes() -> None:
    text = (
        "00000000: 6162 6364 6566 6162 6364 6566 6162 6364  abcdefabcdefabcd\n00000010: 6162  ab\n"
    )

    assert (b"abcdefabcdefabcdab", "hex dump") == read_text(text)


def test_several_dumps_are_one_after_the_other() -> None:
    assert (DATA * 2, "hex dump") == read_text(f"{WIRESHARK}\n{WIRESHARK}")


def test_a_star_stands_for_lines_like_the_one_before() -> None:
    row = " ".join(["00"] * 16)
    text = f"00000000  {row}  |................|\n*\n00000040  01  |.|\n00000041\n"

    assert (bytes(64) + b"\1", "hex dump") == read_text(text)


def test_groups_of_hex_that_look_like_offsets_are_bytes() -> None:
    assert (bytes.fromhex("00000014001200000000"), "hex") == read_text("0000 0014 0012\n0000 0000")


def test_an_offset_that_does_not_follow_is_no_dump() -> None:
    with pytest.raises(TextFormError):
        read_text(XXD.replace("00000010:", "00000020:"), HEX)


def test_one_line_does_not_repeat_more_than_there_is_room_for() -> None:
    """A few characters would stand for more bytes than a machine has."""
    row = " ".join(["00"] * 16)

    with pytest.raises(TextFormError):
        read_text(f"00000000  {row}\n*\nfffffffffff0  01\n")


@pytest.mark.parametrize("last", ["0000014", "000000e", "0000030"])
def test_words_in_the_order_of_a_machine_are_refused(last: str) -> None:
    """hexdump and od -x swap each two bytes, and so would whoever read them."""
    with pytest.raises(TextFormError, match=r"use hexdump -C, od -t x1 or xxd, which print bytes"):
        read_text(f"0000000 0000 1400 1200 0000 0000 0100 0a00\n{last}\n")


@pytest.mark.skipif(shutil.which("hexdump") is None, reason="hexdump is not installed")
def test_what_hexdump_prints_is_read() -> None:
    data = bytes(range(256)) + bytes(200) + b"end"
    done = subprocess.run(["hexdump", "-C"], input=data, capture_output=True, check=True)

    assert (data, "hex dump") == read_text(done.stdout.decode())


@pytest.mark.parametrize(
    ("text", "form", "message"),
    [
        (HEX_DIGITS[:-1], None, r"odd number of hex digits \(47\)"),
        (HEX_DIGITS[1:], None, r"odd number of hex digits \(47\)"),
        ("AAAAEwAD AAwAAAAHAARz aG9wAAAB", None, "neither hex nor base64"),
        ("abc", HEX, r"odd number of hex digits \(3\)"),
        ("00 zz", HEX, "'z' is not a hex digit"),
        ("", HEX, None),
        ("00 zz!", None, "neither hex nor base64"),
        ("A", BASE64, "invalid base64"),
        ("a b!", BASE64, "base64 consists of letters"),
    ],
)
def test_what_is_wrong_is_said(text: str, form: str | None, message: str | None) -> None:
    if message is None:
        assert (b"", "hex") == read_text(text, form)
        return
    with pytest.raises(TextFormError, match=message):
        read_text(text, form)


def test_lines_that_were_encoded_one_by_one_are_read_so() -> None:
    lines = "\n".join(base64.b64encode(part).decode() for part in (b"a", b"bc", b"def"))

    assert (b"abcdef", "base64") == read_text(lines)


@given(st.text() | st.text(alphabet="0123456789abcdefx:\\ \n*|=\"'b"))
@example("0000:\n*\n*")
def test_no_text_breaks_it(text: str) -> None:
    try:
        data, _ = read_text(text)
    except TextFormError:
        return
    assert isinstance(data, bytes)


@given(st.binary(min_size=1, max_size=80))
def test_dumps_of_any_bytes_are_read(data: bytes) -> None:
    rows = [data[start : start + 16] for start in range(0, len(data), 16)]
    lines = [
        f"{number * 16:08x}: {row.hex(' ', 2):<39}  "
        + "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        for number, row in enumerate(rows)
    ]

    assert data == read_text("\n".join(lines))[0]


#: Enough to take minutes where the time is quadratic.
MANY = 100_000


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("{ " + MANY * "0x0 ", bytes(MANY // 2)),
        ("{0x0 0x1} " + MANY * "/*", b"\1"),
        (MANY * "{0x0 /*", None),
        ('\\x00"' + MANY * r"\"", None),
        ("00000000  00" + MANY * " " + "x", b"\0"),
        ("00000000  " + MANY * "00 |" + "x", None),
    ],
    ids=["array", "comments", "both", "literal", "spaces", "characters"],
)
def test_what_is_opened_and_never_closed_takes_no_longer(text: str, data: bytes | None) -> None:
    if data is None:
        with pytest.raises(TextFormError):
            read_text(text)
    else:
        assert data == read_text(text)[0]


def test_literals_after_a_quote_that_is_not_closed_are_read() -> None:
    assert b"\0\1" == read_text(r"""it's "\x00" and b"\x01" """)[0]
