"""Text that is safe to show, whoever wrote it."""

from __future__ import annotations

from typing import Final

#: How much of keys, values and other bytes is shown, and of a text; ``--full`` shows all.
BYTES_SHOWN: Final = 200

_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def quoted(text: str) -> str:
    """The text in quotes, with escapes for what a terminal might obey or hide.

    Besides control characters that is what changes the direction of text, or has no width.
    """
    shown = "".join(
        _ESCAPES.get(each) or (each if each.isprintable() else _escape(each)) for each in text
    )
    return f'"{shown}"'


def printable(text: str) -> str:
    """The text without quotes, with the same escapes for all but quotes."""
    return quoted(text)[1:-1].replace('\\"', '"')


def _escape(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"


def text_of(data: bytes) -> str | None:
    """The text that bytes are, if all of it can be printed; line ends and tabs count as such."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if all(each.isprintable() or each in "\n\r\t" for each in text) else None


def cut(data: bytes, limit: int | None) -> bytes:
    """The beginning of bytes, not ending inside a character of UTF-8."""
    if limit is None or len(data) <= limit:
        return data
    end = limit
    while end > limit - 3 and data[end] & 0xC0 == 0x80:
        end -= 1
    return data[:end]
