"""Frames to disturb a broker with: good ones of every API and version, and what chance makes of
them.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from typing import Any

from protocol.samples import samples
from support.calls import (
    PRODUCE_BY_NAME,
    batch,
    fetch_request,
    list_offsets_request,
    produce_request,
)
from support.client import CLIENT_ID, encode_request
from trionet.protocol import api_keys
from trionet.protocol._codec import REQUEST_KEYS, lookup
from trionet.protocol._header import encode_request_header
from trionet.protocol.messages.api_versions import ApiVersion
from trionet.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from trionet.protocol.messages.registry import APIS

TOPIC = "disturbed"
_SIZE_BYTES = 4
_SAMPLE_BYTES_MAX = 1500


def good_frames(served: list[ApiVersion]) -> list[bytes]:
    """Frames of everything that is served, without their sizes: random ones, and real work."""
    return [*_random_requests(served), *_real_requests(served)]


def _random_requests(served: list[ApiVersion]) -> Iterator[bytes]:
    versions = {api.api_key: range(api.min_version, api.max_version + 1) for api in served}
    for round_ in range(3):
        for sample in samples(f"fuzz {round_}", size_max=_SAMPLE_BYTES_MAX):
            key = REQUEST_KEYS.get(sample.name, -1)
            if sample.version in versions.get(key, ()):
                codec = lookup(key, sample.version)
                assert codec is not None
                yield encode_request_header(codec, 7, CLIENT_ID) + sample.wire


def _real_requests(served: list[ApiVersion]) -> Iterator[bytes]:
    versions = {api.api_key: api for api in served}

    def each_version(key: int, request: Any, *, since: int = 0, up_to: int = 99) -> Iterator[bytes]:
        first = max(versions[key].min_version, APIS[key][2], since)
        for version in range(first, min(up_to, versions[key].max_version) + 1):
            yield encode_request(request, version)[_SIZE_BYTES:]

    records = {0: batch(b"a" * 100, b"b") + batch(b"c", codec=1), 1: batch(b"d")}
    for acks in (-1, 0, 1):
        request = produce_request(TOPIC, records, acks=acks)
        yield from each_version(api_keys.PRODUCE, request, up_to=PRODUCE_BY_NAME)
    for max_wait_ms in (0, 20):
        reading = fetch_request({TOPIC: {0: 0, 1: 10**6}}, max_wait_ms=max_wait_ms)
        yield from each_version(api_keys.FETCH, reading, up_to=12)
    for timestamp in (-3, -2, -1, 0, 1_700_000_000_000):
        asking = list_offsets_request(TOPIC, [(0, timestamp), (1, timestamp)])
        yield from each_version(api_keys.LIST_OFFSETS, asking)
    topic = CreatableTopic(name="made", num_partitions=1, replication_factor=1)
    making = CreateTopicsRequest(topics=[topic], validate_only=True)  # which version 0 cannot say
    yield from each_version(api_keys.CREATE_TOPICS, making, since=1)


class Disturbance:
    """What peers send that mean no good.

    Args:
        good: frames without their sizes, to begin with.
        rng: decides.
    """

    def __init__(self, good: list[bytes], rng: random.Random) -> None:
        self._good = good
        self._chance = rng

    def next(self) -> bytes:
        """One frame, more or less."""
        rng = self._chance
        payload = rng.choice(self._good)
        kind = rng.random()
        if kind < 0.55:
            return _framed(self._mutated(payload))
        if kind < 0.8:
            return _framed(payload)
        if kind < 0.85:
            return _framed(payload[: rng.randrange(len(payload) + 1)])
        if kind < 0.9:
            return _framed(rng.randbytes(rng.choice((0, 1, 8, 9, 20, 500))))
        if kind < 0.95:  # ends, or stalls, in the middle
            return _framed(payload)[: rng.randrange(len(payload) + _SIZE_BYTES)]
        size = rng.choice((rng.getrandbits(32), 2**31 - 1, 2**31, 10**8, len(payload) * 100))
        return struct.pack(">I", size) + payload

    def _mutated(self, payload: bytes) -> bytes:
        rng = self._chance
        mutated = bytearray(payload)
        for _ in range(rng.choice((1, 1, 1, 3))):
            # Half of the times in the header and what follows it, where a change matters most.
            span = min(len(mutated), 40) if rng.random() < 0.5 else len(mutated)
            place = rng.randrange(span + 1)
            match rng.randrange(5):
                case 0:
                    mutated[place : place + 1] = rng.randbytes(1)
                case 1:
                    mutated[place : place + 1] = bytes([1 << rng.randrange(8)])
                case 2:
                    mutated[place:place] = rng.choice((b"\0", b"\xff\xff\xff\xff\x0f", b"\x7f"))
                case 3:
                    mutated[place : place + 4] = rng.choice((b"\xff" * 4, b"\x7f\xff\xff\xff"))
                case _:
                    del mutated[place : place + rng.randrange(1, 4)]
        return bytes(mutated)


def _framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload
