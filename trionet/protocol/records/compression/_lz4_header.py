"""The header checksum of lz4 frames, and the wrong one that message format 0 is stuck with.

Kafka's first lz4 streams took the checksum over the frame's magic number, too. Readers of that time
expect just that, so format 0 keeps it, and format 1 on has lz4's own (KIP-57; Kafka:
Lz4BlockOutputStream, ``useBrokenFlagDescriptorChecksum``).
"""

from __future__ import annotations

from typing import Final, TypeAlias

from trionet.errors import WireFormatError

Bytes: TypeAlias = bytes | bytearray | memoryview

#: Where the descriptor (flags and block size) starts: behind the magic number.
_DESCRIPTOR: Final = 4
_HAS_CONTENT_SIZE: Final = 0x08
_HAS_DICTIONARY: Final = 0x01

_MASK: Final = 0xFFFFFFFF
_PRIME_1: Final = 0x9E3779B1
_PRIME_2: Final = 0x85EBCA77
_PRIME_3: Final = 0xC2B2AE3D
_PRIME_4: Final = 0x27D4EB2F
_PRIME_5: Final = 0x165667B1

#: Longer data need a part of the algorithm that is not here; a header has 14 at most.
_SHORT_BYTES: Final = 16


def with_right_checksum(frame: Bytes) -> bytes:
    """The frame with lz4's own header checksum, whatever it has now.

    Raises:
        WireFormatError: the header ends too early or has a dictionary, which nobody could know.
    """
    end = _header_end(frame)
    return _replaced(frame, end, frame[_DESCRIPTOR:end])


def with_old_checksum(frame: Bytes) -> bytes:
    """The frame with the header checksum that readers of message format 0 expect.

    Raises:
        WireFormatError: the header ends too early or has a dictionary.
    """
    end = _header_end(frame)
    return _replaced(frame, end, frame[:end])


def _header_end(frame: Bytes) -> int:
    """Where the descriptor ends, and the byte of its checksum stands."""
    if len(frame) <= _DESCRIPTOR:
        raise WireFormatError("lz4 records end too early")
    flags = frame[_DESCRIPTOR]
    if flags & _HAS_DICTIONARY:
        raise WireFormatError("lz4 records want a dictionary")
    end = _DESCRIPTOR + 2 + (8 if flags & _HAS_CONTENT_SIZE else 0)
    if len(frame) <= end:
        raise WireFormatError("lz4 records end too early")
    return end


def _replaced(frame: Bytes, position: int, covered: Bytes) -> bytes:
    checksum = xxh32(bytes(covered)) >> 8 & 0xFF
    view = memoryview(frame)
    return b"".join((view[:position], bytes((checksum,)), view[position + 1 :]))


def xxh32(data: bytes) -> int:
    """The 32-bit xxHash, seed 0, of fewer than 16 bytes."""
    assert len(data) < _SHORT_BYTES, "longer data are hashed otherwise"
    value = _PRIME_5 + len(data)
    whole = len(data) & ~3
    for start in range(0, whole, 4):
        value += int.from_bytes(data[start : start + 4], "little") * _PRIME_3
        value = _rotated(value & _MASK, 17) * _PRIME_4
    for byte in data[whole:]:
        value += byte * _PRIME_5
        value = _rotated(value & _MASK, 11) * _PRIME_1
    value &= _MASK
    value = (value ^ value >> 15) * _PRIME_2 & _MASK
    value = (value ^ value >> 13) * _PRIME_3 & _MASK
    return value ^ value >> 16


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _MASK
