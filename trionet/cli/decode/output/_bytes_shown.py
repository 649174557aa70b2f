"""How much of bytes is shown, and when as text."""

from __future__ import annotations

from typing import Final

#: How much of keys, values and other bytes is shown, and of a text; ``--full`` shows all.
BYTES_SHOWN: Final = 200


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
