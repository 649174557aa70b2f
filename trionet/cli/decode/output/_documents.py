"""Entries as JSON: one document each."""

from __future__ import annotations

from typing import Any

from ..messages._tree import Blob, Entry, Meant, Tree
from ._bytes_shown import cut, text_of


def document(entry: Entry, bytes_shown: int | None) -> dict[str, Any]:
    """An entry as what ``json`` writes.

    A number that stands for something is followed by what it stands for, as ``error_code`` by
    ``error_code_name``; bytes are an object of their length and their ``text``, or ``hex``.

    Args:
        entry: what to show.
        bytes_shown: how much of bytes is given; None for all.
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
    shown = cut(data, bytes_shown)
    text = text_of(shown)
    fields: dict[str, Any] = {"bytes": len(data)}
    fields.update({"hex": shown.hex()} if text is None else {"text": text})
    if len(shown) < len(data):
        fields["cut"] = True
    return fields
