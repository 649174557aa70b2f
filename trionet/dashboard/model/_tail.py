"""The last records of a topic, with values as text, JSON or hex."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import attrs

if TYPE_CHECKING:
    from ...client.consumer import ConsumerRecord

#: The maximum number of records kept.
RECORDS_MAX: Final = 500
#: The maximum number of bytes kept of each key and value.
BYTES_MAX: Final = 4096


class Form(StrEnum):
    """The form in which bytes are displayed."""

    NULL = "null"
    TEXT = "text"
    JSON = "json"
    HEX = "hex"


@attrs.frozen
class TailRow:
    """A record of the tail.

    Attributes:
        number: the sequence number of the record among the shown records.
        timestamp: the timestamp in ms since the epoch; -1 for none.
        key, value: the first 4,096 bytes of the key and the value; None for null.
        key_bytes, value_bytes: the full sizes of the key and the value.
        headers: the names and values of the headers.
        key_text, text: the key and the value in the most readable form.
        form: the form of the value.
    """

    number: int
    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    key_bytes: int
    value_bytes: int
    headers: Sequence[tuple[str, bytes | None]]
    key_text: str
    text: str
    form: Form

    @classmethod
    def of(cls, record: ConsumerRecord, number: int) -> TailRow:
        """Convert a record."""
        form, text = readable(record.value)
        return cls(
            number,
            record.topic,
            record.partition,
            record.offset,
            record.timestamp,
            _cut(record.key),
            _cut(record.value),
            len(record.key or b""),
            len(record.value or b""),
            tuple(record.headers),
            readable(record.key)[1],
            text,
            form,
        )


def _cut(data: bytes | None) -> bytes | None:
    return None if data is None else bytes(data[:BYTES_MAX])


def readable(data: bytes | None) -> tuple[Form, str]:
    """Return the most readable form of the bytes, and the bytes in this form.

    The form is JSON for an object or an array. A single number is text.
    """
    if data is None:
        return Form.NULL, "null"
    text = as_text(data)
    if text is None:
        return Form.HEX, as_hex(data)
    if text[:1] in ("{", "[") and len(data) <= BYTES_MAX:
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            pass
        else:
            return Form.JSON, text
    return Form.TEXT, text


def as_text(data: bytes) -> str | None:
    """Decode the first bytes as UTF-8, or return None if they are invalid or not printable."""
    cut = data[:BYTES_MAX]
    try:
        text = cut.decode()
    except UnicodeDecodeError as error:
        if len(data) <= BYTES_MAX or error.start < len(cut) - 3:
            return None
        text = cut[: error.start].decode()  # cut within a character
    shown = text.replace("\n", " ").replace("\t", " ").replace("\r", " ")
    return text if shown.isprintable() else None


def as_hex(data: bytes) -> str:
    """Format the first bytes as hex digits, separated by spaces."""
    return data[:BYTES_MAX].hex(" ")


def dump(data: bytes | None, width: int = 16) -> list[str]:
    """Format bytes as lines with offset, hex digits and characters, like hexdump."""
    if data is None:
        return ["null"]
    lines = []
    for start in range(0, len(data), width):
        part = data[start : start + width]
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        lines.append(f"{start:08x}  {part.hex(' '):<{3 * width - 1}}  {shown}")
    return lines


def pretty(data: bytes) -> list[str] | None:
    """Format JSON with one value per line, or return None if the data is not JSON."""
    try:
        return json.dumps(json.loads(data), indent=2, ensure_ascii=False).splitlines()
    except (ValueError, RecursionError):
        return None
