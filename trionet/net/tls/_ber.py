"""A parser that splits ASN.1 data in BER, which includes DER, into elements.

Certificates and keystores consist of such elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Element(NamedTuple):
    """One element: its tag, its content, and its whole encoding."""

    tag: int
    content: bytes
    whole: bytes


def elements(data: bytes) -> Iterator[Element]:
    """Yield the elements of BER data, including those of indefinite length, as OpenSSL does.

    Raises:
        ValueError: the data is malformed.
    """
    position = 0
    while position < len(data):
        start, length = _header(data, position)
        end = _end_of_contents(data, start) if length is None else start + length
        if end > len(data):
            raise ValueError("truncated data")
        following = end + 2 if length is None else end
        yield Element(data[position], data[start:end], data[position:following])
        position = following


def first(data: bytes) -> Element:
    """Return the first element; like OpenSSL, ignore the data after it.

    Raises:
        ValueError: the data is empty or malformed.
    """
    for element in elements(data):
        return element
    raise ValueError("truncated data")


def _header(data: bytes, position: int) -> tuple[int, int | None]:
    """Return the position and the length of an element's content; None for an indefinite length."""
    if position + 2 > len(data):
        raise ValueError("truncated data")
    if data[position] & 0x1F == 0x1F:
        raise ValueError("multi-byte tags are not supported")
    length, start = data[position + 1], position + 2
    if not length & 0x80:
        return start, length
    size = length & 0x7F
    if not size:
        return start, None
    return start + size, int.from_bytes(data[start : start + size], "big")


def _end_of_contents(data: bytes, position: int) -> int:
    """Return the position of the two zero bytes that end an element of indefinite length."""
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
