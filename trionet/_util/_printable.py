"""Escapes untrusted text so that it is safe to show on a terminal."""

from __future__ import annotations

from typing import Final

_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def quoted(text: str) -> str:
    """Return the text in quotes, with escapes for what a terminal might obey or hide.

    That is control characters, and characters that have no width or change the text direction.
    """
    shown = "".join(
        _ESCAPES.get(each) or (each if each.isprintable() else _escape(each)) for each in text
    )
    return f'"{shown}"'


def printable(text: str) -> str:
    """Return the text without quotes, with the same escapes for all but quotes."""
    return quoted(text)[1:-1].replace('\\"', '"')


def _escape(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"
