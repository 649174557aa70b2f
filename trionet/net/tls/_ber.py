"""The elements of ASN.1 in BER, of which DER is a part.

Certificates and key stores are made of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Element(NamedTuple):
    """One element: its tag, what is in it, and all of it."""

    tag: int
    content: bytes
    whole: bytes


def elements(data: bytes) -> Iterator[Element]:
    """The elements of BER, not of DER alone: OpenSSL reads stores with indefinite lengths.

    Raises:
        ValueError: the data have another form.
    """
    position = 0
    while position < len(data):
        start, length = _header(data, position)
        end = _end_of_contents(data, start) if length is None else start + length
        if end > len(data):
            raise ValueError("cut short")
        following = end + 2 if length is None else end
        yield Element(data[position], data[start:end], data[position:following])
        position = following


def first(data: bytes) -> Element:
    """The first element; OpenSSL does not look at what is behind it.

    Raises:
        ValueError: there is none.
    """
    for element in elements(data):
        return element
    raise ValueError("cut short")


def _header(data: bytes, position: int) -> tuple[int, int | None]:
    """Where the content of an element starts, and its length; None if that is indefinite."""
    if position + 2 > len(data):
        raise ValueError("cut short")
    if data[position] & 0x1F == 0x1F:
        raise ValueError("a tag of many bytes")
    length, start = data[position + 1], position + 2
    if not length & 0x80:
        return start, length
    size = length & 0x7F
    if not size:
        return start, None
    return start + size, int.from_bytes(data[start : start + size], "big")


def _end_of_contents(data: bytes, position: int) -> int:
    """Where the two zero bytes are that end an element of indefinite length."""
    depth = 0
    while True:
        start, length = _header(data, position)
        if length is None:
            depth += 1
        elif data[position] == 0 and not length:
            if not depth:
                return position
            depth -= 1
        position = start + (length or 0)
