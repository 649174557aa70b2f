"""Records as NumPy arrays: the same as rows, and as much refused."""

from __future__ import annotations

import gzip
import random
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.errors import WireFormatError
from trionet.protocol.records._batch import BatchHeader
from trionet.protocol.records._records import decode_batch, encode_batch
from trionet.protocol.records._types import NewRecord
from trionet.protocol.records.compression._codecs import GZIP, ZSTD

pytest.importorskip("numpy", reason="numpy is of the extra `spark`")

from support.column_rows import rows_of
from trionet.protocol.records.columnar._numpy_columns import decode_numpy

pytestmark = pytest.mark.usefixtures("each_implementation")

NOW = 1_700_000_000_000
SAMPLE: list[NewRecord] = [
    (NOW, b"key", b"value", ()),
    (NOW + 70, None, b"v" * 100, [("trace", b"1"), ("none", None), ("", b"")]),
    (NOW - 5, b"", None, ()),
    (NOW + 10**6, b"k" * 200, b"v" * 9000, [("h" * 200, b"w" * 70)]),
    (NOW + 10**6, None, None, ()),
]

values = st.none() | st.binary(max_size=200)
headers = st.lists(st.tuples(st.text(max_size=90), values), max_size=2)
new_records = st.lists(st.tuples(st.integers(0, 2**62), values, values, headers), min_size=1)
int64 = st.sampled_from([0, NOW, -1, 2**63 - 1, -(2**63)]) | st.integers(-(2**63), 2**63 - 1)


@given(new_records, st.integers(0, 2**40), st.sampled_from([0, ZSTD]))
def test_arrays_have_what_rows_have(rows: list[NewRecord], base_offset: int, codec: int) -> None:
    batch = encode_batch(rows, base_offset=base_offset, codec=codec)

    assert decode_batch(batch) == rows_of(decode_numpy(batch))


def test_arrays_of_a_batch_among_others() -> None:
    batch = encode_batch(SAMPLE, timestamp_type=1)
    between = b"before" + batch + b"behind"

    assert decode_batch(batch) == rows_of(decode_numpy(between, 6))
    assert decode_numpy(between, 6).body is between


def test_batch_without_records_has_empty_arrays() -> None:
    header = BatchHeader(0, 49, -1, 2, 0, 0, 3, NOW, NOW, -1, -1, -1, 0)

    assert [] == rows_of(decode_numpy(header.pack()))


def test_a_compressed_batch_without_records_has_empty_arrays() -> None:
    body = gzip.compress(b"")
    header = BatchHeader(0, 49 + len(body), -1, 2, 0, GZIP, 3, NOW, NOW, -1, -1, -1, 0)

    assert [] == decode_batch(header.pack() + body)
    assert [] == rows_of(decode_numpy(header.pack() + body))


def same_as_rows(batch: bytes) -> bool:
    try:
        expected = decode_batch(batch)
    except WireFormatError:
        with pytest.raises(WireFormatError):
            rows_of(decode_numpy(batch))
        return False
    assert expected == rows_of(decode_numpy(batch))
    return True


@given(st.binary(min_size=7, max_size=100), st.integers(0, 10), int64, int64)
def test_any_bytes(body: bytes, count: int, base_offset: int, base_timestamp: int) -> None:
    header = BatchHeader(
        base_offset, 49 + len(body), -1, 2, 0, 0, 0, base_timestamp, NOW, -1, -1, -1, count
    )
    same_as_rows(header.pack() + body)


def test_mutated_batches() -> None:
    rng = random.Random(13)
    batch = encode_batch(SAMPLE, base_offset=2**62)
    kept = 0
    for _ in range(1000):
        mutated = bytearray(batch)
        for _ in range(rng.randrange(1, 4)):
            at = 61 + rng.randrange(rng.choice((30, 170, len(batch) - 61)))
            mutated[at] = rng.choice((0, 1, 2, 127, 128, 254, 255, rng.randrange(256)))
        kept += same_as_rows(bytes(mutated))

    assert 50 < kept < 950


def test_nothing_else_imports_numpy_or_pyarrow() -> None:
    program = (
        "import sys, trionet.protocol.records._records, trionet.protocol.records._records\n"
        "print({'numpy', 'pyarrow'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert ("set()\n", "") == (done.stdout, done.stderr)
