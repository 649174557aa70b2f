from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.broker.log.state._producer_state import (
    BATCHES_KEPT,
    ProducerEntry,
    StoredBatch,
    decode_snapshot,
    encode_snapshot,
)
from trionet.errors import WireFormatError
from trionet.protocol.records._crc32c import crc32c

INT64 = st.integers(0, 2**63 - 1)
INT32 = st.integers(0, 2**31 - 1)
BATCHES = st.builds(StoredBatch, INT32, INT64, INT32, INT64)


@st.composite
def entries(draw: st.DrawFn) -> ProducerEntry:
    batches = tuple(draw(st.lists(BATCHES, max_size=BATCHES_KEPT)))
    return ProducerEntry(
        draw(st.integers(0, 2**15 - 1)),
        batches,
        batches[-1].timestamp if batches else draw(INT64),
        draw(st.integers(-1, 2**31 - 1)),
        draw(st.integers(-1, 2**63 - 1)),
    )


def test_file_is_kafkas_version_1() -> None:
    entry = ProducerEntry(3, (StoredBatch(9, 99, 4, 1234),), 1234, 6, 95)
    body = struct.pack(">i", 1) + struct.pack(">qhiqiqiq", 7, 3, 9, 99, 4, 1234, 6, 95)

    assert struct.pack(">hI", 1, crc32c(body)) + body == encode_snapshot({7: entry})
    assert 2 + 4 + 4 + 46 == len(encode_snapshot({7: entry}))


def test_batches_of_a_producer_are_entries_that_kafka_takes_the_last_one_of() -> None:
    """The earlier ones tell nothing of transactions, and expire no later."""
    batches = StoredBatch(4, 90, 0, 1300), StoredBatch(9, 99, 4, 1234)
    body = struct.pack(">i", 2)
    body += struct.pack(">qhiqiqiq", 7, 3, 4, 90, 0, 1234, 6, -1)
    body += struct.pack(">qhiqiqiq", 7, 3, 9, 99, 4, 1234, 6, 95)

    snapshot = encode_snapshot({7: ProducerEntry(3, batches, 1234, 6, 95)})

    assert struct.pack(">hI", 1, crc32c(body)) + body == snapshot


@given(st.dictionaries(INT64, entries(), max_size=6))
def test_batches_of_each_producer_survive(known: dict[int, ProducerEntry]) -> None:
    expected = {
        producer_id: entry._replace(
            batches=tuple(
                each._replace(timestamp=min(each.timestamp, entry.timestamp))
                for each in entry.batches
            )
        )
        for producer_id, entry in known.items()
    }

    assert expected == decode_snapshot(encode_snapshot(known))


def test_no_more_batches_than_a_producer_has_in_flight_are_read() -> None:
    batches = tuple(StoredBatch(each, each, 0, 1) for each in range(BATCHES_KEPT + 2))

    known = decode_snapshot(encode_snapshot({7: ProducerEntry(3, batches, 1)}))

    assert batches[2:] == known[7].batches


@given(st.binary(max_size=80))
def test_any_bytes_are_a_snapshot_or_refused(data: bytes) -> None:
    try:
        known = decode_snapshot(data)
    except WireFormatError:
        return

    assert data == encode_snapshot(known)


def test_snapshot_changed_at_any_bit_is_refused() -> None:
    data = encode_snapshot({7: ProducerEntry(3, (StoredBatch(9, 99, 4, 1234),), 1234)})

    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(WireFormatError):
            decode_snapshot(bytes(changed))


def test_snapshot_cut_anywhere_is_refused() -> None:
    data = encode_snapshot({7: ProducerEntry(3, (), 1), 8: ProducerEntry(3, (), 1)})

    for size in range(len(data)):
        with pytest.raises(WireFormatError):
            decode_snapshot(data[:size])


def test_count_that_does_not_fit_is_refused() -> None:
    body = struct.pack(">i", 2) + bytes(46)

    with pytest.raises(WireFormatError, match="do not fit"):
        decode_snapshot(struct.pack(">hI", 1, crc32c(body)) + body)
