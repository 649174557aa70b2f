"""Numbers of things as people read them."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """``1 record``, ``2,000 records``.

    Args:
        number: how many.
        noun: one of them, of which an s makes many.
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
