"""Hex dumps: lines of an offset, bytes, and often the same bytes as characters.

Those of ``xxd``, ``hexdump -C``, ``od -t x1``, ``tcpdump -X`` and Wireshark differ in their spaces,
and none says where the characters begin. The next line's offset does: it says how many bytes this
line has. Only the last line needs a guess.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

#: An offset is set off by a colon, by more than a space, or by its odd width (``od``): anything
#: else may be one of the groups that the bytes stand in.
_LINE: Final = re.compile(
    r"\s*(?:0[xX])?"
    r"(?:(?P<offset>[0-9a-fA-F]{4,16})(?::\s*|\s{2,}|\s*\Z)|(?P<od>[0-9a-fA-F]{6,7})\s)"
    r"(?P<rest>.*)"
)
_OCTAL: Final = re.compile(r"[0-7]{7}")
_CHARACTERS: Final = re.compile(r"\s+(?:\|.*\||>.*<)\s*$")
_GROUP: Final = re.compile(r"(?:[0-9a-fA-F]{2})+")

#: How much a dump may stand for: one line may repeat any number of bytes.
DUMP_BYTES_MAX: Final = 256 * 1024 * 1024

#: ``hexdump`` writes this in place of lines that repeat the one before.
_REPEATED: Final = "*"


class TextFormError(ValueError):
    """The text is not in the form that it was taken for."""


class _Line(NamedTuple):
    offset: int
    rest: str


def read_dump(text: str) -> bytes | None:
    """The bytes of a hex dump, or of several one below the other; None if the text is none.

    Raises:
        TextFormError: it is a dump of words whose order of bytes is the machine's.
    """
    data = _read(_lines(text, 16))
    return _read(_lines(text, 8)) if data is None else data  # od counts in octal by itself


def _read(lines: list[_Line | None] | None) -> bytes | None:
    if lines is None:
        return None
    out = bytearray()
    start = 0  # of the dump that a line belongs to, in what was read so far
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
    """A line each, None for a star; None altogether if a line cannot be one of a dump."""
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
            "words of two bytes or more in the order of some machine, as hexdump and od -x print "
            "them; hexdump -C, od -t x1 and xxd print bytes"
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
    """A line that no other follows: the characters stand behind two spaces or more.

    After eight bytes there may be a wider space in the middle of the line.
    """
    columns = re.split(r"\s{2,}", _CHARACTERS.sub("", rest).strip())
    words = columns[0].split()
    in_middle = len(words) == 8 and all(len(word) == 2 for word in words)
    if in_middle and len(columns) > 1 and all(map(_is_byte, columns[1].split())):
        words += columns[1].split()
    if not all(map(_GROUP.fullmatch, words)):
        return None
    return bytes.fromhex("".join(words))


def _is_byte(word: str) -> bool:
    return len(word) == 2 and _GROUP.fullmatch(word) is not None
