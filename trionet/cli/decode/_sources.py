"""Sources of bytes: files, standard input, and bytes written as text."""

from __future__ import annotations

import ast
import base64
import binascii
import io
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from itertools import groupby
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from trionet._util._text import printable
from trionet.errors import ConfigError

#: The encodings of inputs.
AUTO: Final = "auto"
HEX: Final = "hex"
BASE64: Final = "base64"
RAW: Final = "raw"
FORMATS: Final = (AUTO, HEX, BASE64, RAW)


class Kind(Enum):
    """What raw bytes contain."""

    FRAMES = "size-prefixed frames"
    BARE = "one message without a size prefix"
    BATCHES = "record batches"


#: The chunk size for skipping.
_SKIPPED_BYTES: Final = 64 * 1024


class Source:
    """A sequential reader of bytes with look-ahead.

    Args:
        name: the name of the source in messages.
        file: the file to read; the caller closes it.
        form: the encoding of the original input.

    Attributes:
        offset: the number of bytes read or skipped.
    """

    def __init__(self, name: str, file: BinaryIO, form: str = "raw") -> None:
        self.name = name
        self.form = form
        self.offset = 0
        self._file = file
        self._ahead = b""

    def peek(self, count: int) -> bytes:
        """Return the next ``count`` bytes, or fewer at the end, without consuming them."""
        missing = count - len(self._ahead)
        if missing > 0:
            self._ahead += self._file.read(missing)
        return self._ahead[:count]

    def read(self, count: int) -> bytes:
        """Read the next ``count`` bytes, or fewer at the end."""
        data, self._ahead = self._ahead[:count], self._ahead[count:]
        if len(data) < count:
            data += self._file.read(count - len(data))
        self.offset += len(data)
        return data

    def skip(self, count: int) -> int:
        """Skip ``count`` bytes, or fewer at the end, and return the number of bytes skipped."""
        left = count
        while left:
            passed = len(self.read(min(left, _SKIPPED_BYTES)))
            if not passed:
                break
            left -= passed
        return count - left


def source_of(name: str, data: bytes, form: str) -> Source:
    """Return a source of bytes in memory."""
    return Source(name, io.BytesIO(data), form)


STANDARD_INPUT: Final = "-"

#: The maximum size of a hex or base64 text, which is held in memory, unlike raw bytes.
TEXT_BYTES_MAX: Final = 256 * 1024 * 1024

#: The number of bytes examined to distinguish text from raw bytes.
_EXAMINED_BYTES: Final = 512
#: The minimum length of a base64 argument. Shorter arguments are treated as names of missing files.
_BASE64_LENGTH_MIN: Final = 12

_TEXT: Final = frozenset(range(0x20, 0x7F)) | set(b"\t\n\r\f")
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


def open_sources(arguments: Sequence[str], form: str) -> Iterator[Source]:
    """Yield the sources in order, closing each before the next one is opened.

    Args:
        arguments: file names, ``-``, or bytes as text; adjacent words of text form one source.
        form: the encoding, one of ``FORMATS``.

    Raises:
        ConfigError: an argument is neither a file nor text in a known form, a text is too long, or
            standard input is closed.
        OSError: a file cannot be read.
    """
    for is_text, words in groupby(arguments or [STANDARD_INPUT], lambda each: not _is_file(each)):
        if is_text:
            yield _of_words(list(words), form)
            continue
        for name in words:
            with _opened(name, form) as source:
                yield source


def _is_file(argument: str) -> bool:
    # The system rejects names of many megabytes with an error.
    try:
        return argument == STANDARD_INPUT or (argument != "" and Path(argument).exists())
    except (OSError, ValueError):
        return False


def _of_words(words: list[str], form: str) -> Source:
    text = " ".join(words)
    shown = printable(text if len(text) <= 40 else f"{text[:40]}...")
    if form == RAW or (form == AUTO and _looks_like_file_name(text)):
        raise ConfigError(f"{shown}: no such file, and neither hex nor base64")
    return _of_text("argument", text, form, about=shown)


def _looks_like_file_name(text: str) -> bool:
    folder = os.path.dirname(text)
    if folder and Path(folder).is_dir():
        return True
    try:
        return read_text(text)[1] == BASE64 and len(text) < _BASE64_LENGTH_MIN
    except TextFormError:
        return Path(text).suffix != "" and " " not in text


def _of_text(name: str, text: str, form: str, about: str) -> Source:
    try:
        data, read_as = read_text(text, None if form == AUTO else form)
    except TextFormError as error:
        raise ConfigError(f"{about}: {error}") from None
    return source_of(name, data, read_as)


@contextmanager
def _opened(name: str, form: str) -> Iterator[Source]:
    if name != STANDARD_INPUT:
        with open(name, "rb") as file:
            yield _of_bytes(Source(name, file), form)
        return
    if sys.stdin is None:  # a shell's <&-
        raise ConfigError("standard input is closed; give a file, hex or base64")
    if sys.stdin.isatty():
        print("trionet decode: paste the input and end it with Ctrl-D", file=sys.stderr)
    yield _of_bytes(Source("standard input", sys.stdin.buffer), form)


def _of_bytes(source: Source, form: str) -> Source:
    # Raw frames and segments start with a zero byte unless a frame exceeds 16 MB.
    if form == RAW:
        return source
    if form == AUTO and (source.peek(1) in {b"", b"\0"} or not _is_text(source)):
        return source
    raw = source.read(TEXT_BYTES_MAX)
    if source.peek(1):
        raise ConfigError(
            f"{source.name}: text input is limited to {TEXT_BYTES_MAX} bytes; convert it to raw "
            "bytes first, for instance with `xxd -r`, or use --format raw if it is not text"
        )
    text = raw.removeprefix(_BYTE_ORDER_MARK).decode("utf-8", "replace")
    return _of_text(source.name, text, form, printable(source.name))


def _is_text(source: Source) -> bool:
    head = source.peek(_EXAMINED_BYTES).removeprefix(_BYTE_ORDER_MARK)
    return _TEXT.issuperset(head)


#: Text that may separate or surround hex digits: white space, 0x, \x, and the punctuation of lists.
_DECORATION: Final = re.compile(r"0[xX]|\\x|[\s:,;.\-_{}\[\]()<>\"']+")
_HEX: Final = re.compile(r"[0-9a-fA-F]*")
# What follows takes time linear in the text, whatever is opened in it and not closed.
#: A C array, as printed by ``xxd -i`` and Wireshark, if there is a hex number in it.
_ARRAY: Final = re.compile(r"\{([^{}]*)\}")
_HEX_NUMBER: Final = re.compile(r"\b0[xX]")
#: A comment; what is not closed ends with the text, and is none.
_COMMENT: Final = re.compile(r"/\*.*?(\*/|\Z)", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\x[0-9a-fA-F]{2}")
_LITERALS: Final = {
    quote: re.compile(rf"{quote}(?:[^{quote}\\]|\\.)*{quote}", re.DOTALL) for quote in "\"'"
}
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")


def read_text(text: str, form: str | None = None) -> tuple[bytes, str]:
    """Parse a text, and return the bytes and the name of the detected notation.

    Args:
        text: hex, a hex dump, escapes, or base64.
        form: ``HEX`` or ``BASE64``; None to detect the notation.

    Raises:
        TextFormError: the text is none of these.
    """
    if form == BASE64:
        return _read_base64(text), "base64"
    for name, read in (("hex dump", read_dump), ("hex", _read_hex), ("escapes", _read_escapes)):
        data = read(text)
        if data is not None:
            return data, name
    # Base64 of more than a few bytes has other letters: this is hex with an odd number of digits.
    if form == HEX or _HEX.fullmatch(_DECORATION.sub("", text)):
        raise TextFormError(_hex_error(text))
    try:
        return _read_base64(text), "base64"
    except TextFormError:
        raise TextFormError(
            f"neither hex nor base64: {_hex_error(text)}; use --format raw for raw bytes"
        ) from None


def _read_hex(text: str) -> bytes | None:
    code = _COMMENT.sub(lambda found: "" if found[1] else found[0], text)
    arrays = filter(_HEX_NUMBER.search, _ARRAY.findall(code))
    digits = _DECORATION.sub("", "".join(arrays) or text)
    if len(digits) % 2 or not _HEX.fullmatch(digits):
        return None
    return bytes.fromhex(digits)


def _read_escapes(text: str) -> bytes | None:
    r"""Parse escapes such as ``\x00\x1akafka``, as in Python, C and shells."""
    if not _ESCAPED.search(text) or not text.isascii():
        return None
    literals = list(_quoted(text)) or [f'"{line.strip()}"' for line in text.splitlines()]
    try:
        return b"".join(ast.literal_eval(f"b{literal}") for literal in literals)
    except (ValueError, SyntaxError):  # also raised for text that is not a literal
        return None


def _quoted(text: str) -> Iterator[str]:
    """Yield the quoted literals of a text."""
    quotes, at = "\"'", 0
    while quotes and (opening := re.compile(f"[{quotes}]").search(text, at)):
        literal = _LITERALS[opening[0]].match(text, opening.start())
        if literal is None:
            # No later quote of this kind closes anything either.
            quotes = quotes.replace(opening[0], "")
            at = opening.end()
        else:
            yield literal[0]
            at = literal.end()


def _read_base64(text: str) -> bytes:
    words = text.split()
    if not words or not all(map(_BASE64.fullmatch, words)):
        raise TextFormError(
            "base64 consists of letters, digits, + and / (or - and _), with = at the end"
        )
    # Padding before the end means that several values were encoded separately, as lines of a log.
    several = any(word.endswith("=") for word in words[:-1])
    if not several and len(set(map(len, words[:-1]))) > 1:
        raise TextFormError("all lines of base64 except the last must have the same length")
    try:
        return b"".join(map(_decode_word, words if several else ["".join(words)]))
    except binascii.Error as error:
        raise TextFormError(f"invalid base64: {error}") from None


def _decode_word(word: str) -> bytes:
    bare = word.rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)


def _hex_error(text: str) -> str:
    digits = _DECORATION.sub("", text)
    wrong = re.search(r"[^0-9a-fA-F]", digits)
    if wrong:
        return f"{wrong[0]!a} is not a hex digit"
    return f"odd number of hex digits ({len(digits)})" if digits else "the input is empty"


#: A line of a dump. A colon or at least two spaces follow an offset, or the offset has six or seven
#: digits (``od``). Other words at the start of a line could be groups of bytes.
_LINE: Final = re.compile(
    r"\s*(?:0[xX])?"
    r"(?:(?P<offset>[0-9a-fA-F]{4,16})(?::\s*|\s{2,}|\s*\Z)|(?P<od>[0-9a-fA-F]{6,7})\s)"
    r"(?P<rest>.*)"
)
_OCTAL: Final = re.compile(r"[0-7]{7}")
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

    A dump consists of lines with an offset, bytes, and often the same bytes as characters. The
    formats of ``xxd``, ``hexdump -C``, ``od -t x1``, ``tcpdump -X`` and Wireshark differ in
    spacing, and none marks where the characters start. The number of bytes in a line follows from
    the offset of the next line, so the parser has to guess only on the last line.

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
    columns = re.split(r"\s{2,}", _without_characters(rest).strip())
    words = columns[0].split()
    has_gap = len(words) == 8 and all(len(word) == 2 for word in words)
    if has_gap and len(columns) > 1 and all(map(_is_byte, columns[1].split())):
        words += columns[1].split()
    if not all(map(_GROUP.fullmatch, words)):
        return None
    return bytes.fromhex("".join(words))


def _without_characters(rest: str) -> str:
    """Return a line without the characters after its bytes, between ``|`` or ``>`` and ``<``."""
    rest = rest.rstrip()
    opening = {"|": "|", "<": ">"}.get(rest[-1:])
    if opening is None:
        return rest
    found = re.search(rf"\s\{opening}", rest[:-1])
    return rest if found is None else rest[: found.start()]


def _is_byte(word: str) -> bool:
    return len(word) == 2 and _GROUP.fullmatch(word) is not None
