"""Whole Kafka requests, built byte by byte: nothing here is trionet's own."""

from __future__ import annotations

import struct

from bench.load import Frame

PRODUCE, FETCH, API_VERSIONS = 0, 1, 18
_NO_TAGS = b"\0"
CLIENT = "bench"


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _zigzag(value: int) -> bytes:
    return _varint(value << 1 if value >= 0 else (-value << 1) - 1)


def _compact(data: bytes) -> bytes:
    return _varint(len(data) + 1) + data


def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def _frame(api_key: int, version: int, body: bytes, zeros: tuple[int, ...], client: str) -> Frame:
    """A request with header version 2 (KIP-482); the generator fills in the correlation id."""
    client_id = client.encode()
    header = struct.pack(">hhih", api_key, version, 0, len(client_id)) + client_id + _NO_TAGS
    content = header + body
    return Frame(len(content).to_bytes(4, "big") + content, is_kafka=True, zeros=zeros)


def api_versions(client: str = CLIENT) -> Frame:
    """ApiVersions v3; its response has header version 0, then the error code."""
    return _frame(API_VERSIONS, 3, _compact(b"bench") + _compact(b"1") + _NO_TAGS, (8,), client)


def record_batch(value: bytes) -> bytes:
    """A record batch (magic 2) of one record without key and headers."""
    record = b"\0" + _zigzag(0) + _zigzag(0) + _zigzag(-1) + _zigzag(len(value)) + value
    record += _zigzag(0)
    record = _zigzag(len(record)) + record
    timestamp = 1_700_000_000_000
    checked = struct.pack(">hiqqqhii", 0, 0, timestamp, timestamp, -1, -1, -1, 1) + record
    rest = struct.pack(">ibI", -1, 2, _crc32c(checked)) + checked
    return struct.pack(">qi", 0, len(rest)) + rest


def produce(topic: str, value: bytes, client: str = CLIENT) -> Frame:
    """Produce v9 of one record to partition 0, acks=1."""
    partition = struct.pack(">i", 0) + _compact(record_batch(value)) + _NO_TAGS
    topics = _varint(2) + _compact(topic.encode()) + _varint(2) + partition + _NO_TAGS
    body = _compact_null() + struct.pack(">hi", 1, 30_000) + topics + _NO_TAGS
    # size, correlation id, tags, count, topic, count, index: then the partition's error code
    return _frame(PRODUCE, 9, body, (4 + 4 + 1 + 1 + 1 + len(topic) + 1 + 4,), client)


def _compact_null() -> bytes:
    return b"\0"


def empty_fetch(topic: str, client: str = CLIENT) -> Frame:
    """Fetch v12 without a session (KIP-227) from offset 0 of an empty partition 0, max wait 0."""
    partition = struct.pack(">iiqiqi", 0, -1, 0, -1, -1, 1 << 20) + _NO_TAGS
    topics = _varint(2) + _compact(topic.encode()) + _varint(2) + partition + _NO_TAGS
    body = struct.pack(">iiiibii", -1, 0, 1, 1 << 20, 0, 0, -1) + topics
    body += _varint(1) + _compact(b"") + _NO_TAGS
    # size, correlation id, tags, throttle time: error code; session id, count, topic, count, index
    whole = 4 + 4 + 1 + 4
    zeros = (whole, whole + 2 + 4 + 1 + 1 + len(topic) + 1 + 4)
    return _frame(FETCH, 12, body, zeros, client)
