"""Parses hex dumps: lines with an offset, bytes, and often the same bytes as characters.

The formats of ``xxd``, ``hexdump -C``, ``od -t x1``, ``tcpdump -X`` and Wireshark differ in
spacing, and none marks where the characters start. The number of bytes in a line follows from the
offset of the next line, so the parser has to guess only on the last line.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

#: A line of a dump. A colon or at least two spaces follow an offset, or the offset has six or seven
#: digits (``od``). Other words at the start of a line could be groups of bytes.
_LINE: Final = re.compile(
    r"\s*(?:0[xX])?"
    r"(?:(?P<offset>[0-9a-fA-F]{4,16})(?::\s*|\s{2,}|\s*\Z)|(?P<od>[0-9a-fA-F]{6,7})\s)"
    r"(?P<rest>.*)"
)
_OCTAL: Final = re.compile(r"[0-7]{7}")
_CHARACTERS: Final = re.compile(r"\s+(?:\|.*\||>.*<)\s*$")
_GROUP: Final = re.compile(r"(?:[0-9a-fA-F]{2})+")

#: The maximum size of a dump in bytes. A single ``*`` may stand for any number of repeated lines.
DUMP_BYTES_MAX: Final = 256 * 1024 * 1024

#: The line that ``hexdump`` prints in place of repeated lines.
_REPEATED: Final = "*"


class TextFormError(ValueError):
    """Raised when a text is not in the expected form."""


class _Line(NamedTuple):
    offset: int
    rest: str


def read_dump(text: str) -> bytes | None:
    """Parse one or more hex dumps, or return None if the text is not a hex dump.

    Raises:
        TextFormError: the dump consists of multi-byte words in an unknown byte order.
    """
    data = _read(_lines(text, 16))
    return _read(_lines(text, 8)) if data is None else data  # od prints octal offsets by default


def _read(lines: list[_Line | None] | None) -> bytes | None:
    if lines is None:
        return None
    out = bytearray()
    start = 0  # where the current dump starts in the output
    chunk = b""
    repeats = False
    for number, line in enumerate(lines):
        if line is None:
            repeats = True
            continue
        if line.offset == 0:
            start = len(out)
        gap = start + line.offset - len(out)
        if gap and not (repeats and chunk and gap > 0 and gap % len(chunk) == 0):
            return None
        if len(out) + gap > DUMP_BYTES_MAX:
            return None
        if gap:
            out += chunk * (gap // len(chunk))
        repeats = False
        read = _bytes_of(line, _next_offset(lines, number))
        if read is None:
            return None
        out += read
        chunk = read
    return bytes(out)


def _lines(text: str, base: int) -> list[_Line | None] | None:
    """Parse the lines of a dump; a line that consists of ``*`` becomes None.

    Returns None if a line cannot belong to a dump.
    """
    lines: list[_Line | None] = []
    are_words = False
    for raw in text.splitlines():
        if raw.strip() == _REPEATED:
            lines.append(None)
        elif raw.strip():
            found = _LINE.fullmatch(raw)
            if found is None:
                return None
            digits = found["offset"] or found["od"]
            if base == 8 and not _OCTAL.fullmatch(digits):
                return None
            lines.append(_Line(int(digits, base), found["rest"]))
            are_words = are_words or (found["od"] is not None and _is_word(found["rest"]))
    first = lines[0] if lines else None
    if first is None or first.offset != 0 or not first.rest:
        return None
    if are_words and len(lines) > 1:
        raise TextFormError(
            "a dump of multi-byte words in machine byte order, as printed by hexdump and od -x; "
            "use hexdump -C, od -t x1 or xxd, which print bytes"
        )
    return lines


def _is_word(rest: str) -> bool:
    first, *_ = rest.split(None, 1) or [""]
    return len(first) > 2 and _GROUP.fullmatch(first) is not None


def _next_offset(lines: list[_Line | None], number: int) -> int | None:
    following = lines[number + 1] if number + 1 < len(lines) else None
    return following.offset if following is not None and following.offset else None


def _bytes_of(line: _Line, until: int | None) -> bytes | None:
    if until is None:
        return _guess(line.rest)
    count = until - line.offset
    groups = bytearray()
    for word in line.rest.split():
        if len(groups) >= count:
            break
        if not _GROUP.fullmatch(word):
            return None
        groups += bytes.fromhex(word)
    return bytes(groups) if len(groups) == count else None


def _guess(rest: str) -> bytes | None:
    """Parse the last line, where at least two spaces precede the characters.

    Some formats also print two spaces after the eighth byte.
    """
    columns = re.split(r"\s{2,}", _CHARACTERS.sub("", rest).strip())
    words = columns[0].split()
    has_gap = len(words) == 8 and all(len(word) == 2 for word in words)
    if has_gap and len(columns) > 1 and all(map(_is_byte, columns[1].split())):
        words += columns[1].split()
    if not all(map(_GROUP.fullmatch, words)):
        return None
    return bytes.fromhex("".join(words))


def _is_byte(word: str) -> bool:
    return len(word) == 2 and _GROUP.fullmatch(word) is not None
