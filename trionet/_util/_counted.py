"""Formats counts for messages."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Format a count with its noun: ``1 record``, ``2,000 records``.

    Args:
        number: the count.
        noun: the singular, whose plural is formed with an s.
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
