"""Text for messages and terminals: counts, hints at misspelt names, and untrusted text, escaped."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def counted(number: int, noun: str) -> str:
    """Format a count with its noun: ``1 record``, ``2,000 records``.

    Args:
        number: the count.
        noun: the noun in the singular; its plural must end in s.
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint for an error message about an unknown name: the closest known name, if any."""
    found = closest(name, known)
    return f"; the closest match is {found}" if found else ""


def closest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the known name that resembles an unknown one the most, if any does.

    Names are compared without case, hyphens and underscores.

    Args:
        name: the unknown name.
        known: the known names.
        cutoff: the least similarity, from 0 to 1; see :func:`difflib.get_close_matches`.
    """
    import difflib  # only for errors: importing it at the top would slow down every start

    folded = {_folded(each): each for each in known}
    found = difflib.get_close_matches(_folded(str(name)), folded, n=1, cutoff=cutoff)
    return folded[found[0]] if found else None


def _folded(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def quoted(text: str) -> str:
    """Return the text in quotes, escaping quotes, backslashes and all unprintable characters.

    Unprintable are characters that a terminal might obey or hide: control characters, and those
    that have no width or change the text direction.
    """
    shown = "".join(
        _ESCAPES.get(each) or (each if each.isprintable() else _escape(each)) for each in text
    )
    return f'"{shown}"'


def printable(text: str) -> str:
    """Return the text escaped as by :func:`quoted`, but with no quotes added or escaped."""
    return quoted(text)[1:-1].replace('\\"', '"')


def single_line(text: str) -> str:
    """Return the text on a single line, escaping all unprintable characters as ``repr`` does.

    Unlike :func:`printable`, this leaves backslashes as they are, for readability: a peer can send
    text that looks like an escape sequence, but it cannot forge a log line.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def _escape(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"
