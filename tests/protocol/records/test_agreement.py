"""The two implementations do the same with everything, malformed bytes included."""

from __future__ import annotations

import random
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.errors import WireFormatError
from trionet.protocol.records import (
    _implementation as implementation,
)
from trionet.protocol.records import (
    _pure_reader as pure_reader,
)
from trionet.protocol.records import (
    _typed_reader as typed_reader,
)
from trionet.protocol.records._batch import BatchHeader
from trionet.protocol.records._records import (
    decode_batch,
    decode_columns,
    decode_values,
    encode_batch,
    open_batch,
    read_to_end,
)
from trionet.protocol.records._types import NewRecord

NOW = 1_700_000_000_000


def timestamps(batch: bytes) -> list[int]:
    header, body, start, end = open_batch(batch, 0)
    read = implementation.reader.read_timestamps
    return read_to_end(read, end, body, start, header.count, header.base_timestamp)


DECODERS = (decode_batch, decode_columns, decode_values, timestamps)


def outcome(batch: bytes, reader: ModuleType) -> list[object]:
    """What each way to read a batch gives, or the text of its error."""
    found: list[object] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(implementation, "reader", reader)
        for decode in DECODERS:
            try:
                found.append(decode(batch))
            except WireFormatError as error:
                found.append(str(error))
    return found


def accepted(outcomes: list[object]) -> list[object]:
    return [None if isinstance(each, str) else each for each in outcomes]


def batch_around(body: bytes, count: int, base_offset: int, base_timestamp: int) -> bytes:
    header = BatchHeader(
        base_offset, 49 + len(body), -1, 2, 0, 0, 0, base_timestamp, NOW, -1, -1, -1, count
    )
    return header.pack() + body


int64 = st.sampled_from([0, NOW, -1, 2**63 - 1, -(2**63)]) | st.integers(-(2**63), 2**63 - 1)


@given(st.binary(min_size=7, max_size=100), st.integers(0, 10), int64, int64)
def test_any_bytes(body: bytes, count: int, base_offset: int, base_timestamp: int) -> None:
    batch = batch_around(body, count, base_offset, base_timestamp)

    # Of several faults either may be reported.
    assert accepted(outcome(batch, pure_reader)) == accepted(outcome(batch, typed_reader))


def test_mutated_batches() -> None:
    rng = random.Random(12)
    rows: list[NewRecord] = [
        (NOW, b"key", b"value", ()),
        (NOW + 70, None, b"v" * 100, [("trace", b"1"), ("none", None), ("", b"")]),
        (NOW - 5, b"", None, ()),
        (NOW + 10**6, b"k" * 200, b"v" * 9000, [("h" * 200, b"w" * 70)]),
    ]
    batch = encode_batch(rows, base_offset=2**62)
    refused = 0
    for _ in range(2000):
        mutated = bytearray(batch)
        for _ in range(rng.randrange(1, 5)):
            # What is near the fields more often than what is inside of the large value.
            at = 61 + rng.randrange(rng.choice((30, 170, len(batch) - 61)))
            mutated[at] = rng.choice((0, 1, 2, 127, 128, 254, 255, rng.randrange(256)))
        found = outcome(bytes(mutated), pure_reader)
        refused += isinstance(found[0], str)

        assert found == outcome(bytes(mutated), typed_reader)
    assert 500 < refused < 2000
