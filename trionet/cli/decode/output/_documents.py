"""Formats entries as JSON documents, with bytes as truncated text or hex."""

from __future__ import annotations

from typing import Any, Final

from ..messages._tree import Blob, Entry, Meant, Tree

#: The maximum number of bytes or characters shown per value without ``--full``.
BYTES_SHOWN: Final = 200


def text_of(data: bytes) -> str | None:
    """Decode printable text, which may contain newlines and tabs; return None for other data."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if all(each.isprintable() or each in "\n\r\t" for each in text) else None


def truncate(data: bytes, limit: int | None) -> bytes:
    """Return at most ``limit`` bytes of the data, without splitting a UTF-8 character."""
    if limit is None or len(data) <= limit:
        return data
    end = limit
    while end > limit - 3 and data[end] & 0xC0 == 0x80:
        end -= 1
    return data[:end]


def document(entry: Entry, bytes_shown: int | None) -> dict[str, Any]:
    """Return an entry as a JSON document.

    The meaning of a number follows the number under a separate key, such as ``error_code_name``
    after ``error_code``. Bytes become an object with their length and their ``text`` or ``hex``.

    Args:
        entry: the entry.
        bytes_shown: the maximum number of bytes shown per value; None for all.
    """
    problem = entry.problem
    return {
        "number": entry.number,
        "source": entry.source,
        "offset": entry.offset,
        "size": entry.size,
        "kind": entry.kind,
        **_value(entry.about, bytes_shown),
        "header": _value(entry.header, bytes_shown),
        "body": _value(entry.body, bytes_shown),
        "problem": problem and {"offset": problem.offset, "text": problem.text},
    }


def _value(tree: Tree, bytes_shown: int | None) -> Any:
    match tree:
        case Meant():
            return tree.value
        case Blob():
            return _blob(tree.data, bytes_shown)
        case dict():
            fields: dict[str, Any] = {}
            for name, value in tree.items():
                fields[name] = _value(value, bytes_shown)
                if isinstance(value, Meant):
                    fields[f"{name}_{value.kind}"] = value.meaning
            return fields
        case list():
            return [_value(item, bytes_shown) for item in tree]
        case _:
            return tree


def _blob(data: bytes, bytes_shown: int | None) -> dict[str, Any]:
    shown = truncate(data, bytes_shown)
    text = text_of(shown)
    fields: dict[str, Any] = {"bytes": len(data)}
    fields.update({"hex": shown.hex()} if text is None else {"text": text})
    if len(shown) < len(data):
        fields["cut"] = True
    return fields
