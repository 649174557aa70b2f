"""How bytes are shown: as text or not, and how many of them."""

from __future__ import annotations

from typing import Final

#: Most bytes shown of a value, and characters of a text; ``--full`` shows all.
BYTES_SHOWN: Final = 200


def text_of(data: bytes) -> str | None:
    """Decode bytes to text if all of it is printable, newlines and tabs included."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if all(each.isprintable() or each in "\n\r\t" for each in text) else None


def truncate(data: bytes, limit: int | None) -> bytes:
    """Return the start of bytes, without splitting a UTF-8 character."""
    if limit is None or len(data) <= limit:
        return data
    end = limit
    while end > limit - 3 and data[end] & 0xC0 == 0x80:
        end -= 1
    return data[:end]
