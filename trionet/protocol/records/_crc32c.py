"""CRC-32C (Castagnoli), the checksum of record batches.

trionet depends on fastcrc, which reaches 65 GB/s and accepts any buffer. If fastcrc cannot be
imported, slower packages that are often installed are used. The last resort is a table in Python,
with a warning.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from typing import Final, TypeAlias, cast

Bytes: TypeAlias = bytes | bytearray | memoryview
Checksum: TypeAlias = Callable[[Bytes, int], int]
Source: TypeAlias = Callable[[], Checksum]

#: The Castagnoli polynomial with reversed bits.
_POLYNOMIAL: Final = 0x82F63B78


def from_fastcrc() -> Checksum:
    """Return the checksum function of the fastcrc package; raises ImportError without it."""
    return cast(Checksum, importlib.import_module("fastcrc").crc32.iscsi)


def from_crc32c() -> Checksum:
    """Return the checksum function of the crc32c package; raises ImportError without it."""
    return cast(Checksum, importlib.import_module("crc32c").crc32c)


def from_google() -> Checksum:
    """Return the checksum function of the google-crc32c package; raises ImportError without it."""
    extend = importlib.import_module("google_crc32c").extend

    def checksum(data: Bytes, value: int) -> int:
        return cast(int, extend(value, bytes(data)))  # it accepts only bytes

    return checksum


def from_table() -> Checksum:
    """Return a checksum function in pure Python, which reaches about 10 MB/s."""
    warnings.warn(
        "cannot import fastcrc, crc32c or google-crc32c; the checksums of record batches are "
        "computed in Python, which is thousands of times slower; run `pip install fastcrc`",
        RuntimeWarning,
        stacklevel=2,
    )
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ _POLYNOMIAL if byte & 1 else byte >> 1
        table.append(byte)

    def checksum(data: Bytes, value: int) -> int:
        value ^= 0xFFFFFFFF
        for byte in memoryview(data):
            value = table[(value ^ byte) & 255] ^ value >> 8
        return value ^ 0xFFFFFFFF

    return checksum


def first_available(sources: tuple[Source, ...]) -> Checksum:
    """Return the checksum function of the first source that can be imported."""
    for source in sources[:-1]:
        try:
            return source()
        except ImportError:
            continue
    return sources[-1]()


_checksum: Final = first_available((from_fastcrc, from_crc32c, from_google, from_table))


def crc32c(data: Bytes, value: int = 0) -> int:
    """Return the CRC-32C of ``data``; ``value`` is the checksum of the preceding data."""
    return _checksum(data, value)
