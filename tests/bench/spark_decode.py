"""What a task of a Spark source does with fetched records: whole responses to columns of Arrow.

Beside it a loop over the same records, which makes the columns of lists. Batches of 16 KB, as
producers make them by default, and large ones.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from time import perf_counter

import pyarrow as pa

from bench.measured import Figure, Measured
from bench.options import Options
from trionet.client._topic_partition import TopicPartition
from trionet.protocol.records._batch import iter_batches
from trionet.protocol.records._records import decode_columns, encode_batch
from trionet.protocol.records.compression._codecs import LZ4, NONE
from trionet.spark.source._arrow_decoder import ColumnDecoder, FetchedRecords

RUNS = 5
SECONDS = 0.5
ANSWER_BYTES = 1024 * 1024
#: Bytes of a value, of a batch, and the codec.
SHAPES = {
    "100 B, batches of 16 KB": (100, 16 * 1024, NONE),
    "100 B, batches of 1 MB": (100, ANSWER_BYTES, NONE),
    "100 B, batches of 16 KB, lz4": (100, 16 * 1024, LZ4),
    "1 KB, batches of 16 KB": (1024, 16 * 1024, NONE),
}
NOW = 1_700_000_000_000
NAME = TopicPartition("orders", 0)


def measure(options: Options) -> Measured:
    """Run the benchmark."""
    measured = Measured(
        "answers of 1 MB, keys null", (Figure("per_s", "records/s"), Figure("ns", "ns/record"))
    )
    for case, (size, batch_bytes, codec) in SHAPES.items():
        if not options.wants_case(case):
            continue
        data, count = _answer(size, batch_bytes, codec)
        sides: dict[str, Callable[[], int]] = {
            "trionet": lambda data=data: _by_columns(data),  # type: ignore[misc]
            "loop": lambda data=data: _by_loop(data),  # type: ignore[misc]
        }
        for _ in range(options.runs):
            for side, run in sides.items():
                if options.wants(side):
                    seconds = _fastest(run, options.seconds)
                    measured.add(
                        case, side, {"per_s": count / seconds, "ns": seconds / count * 1e9}
                    )
    return measured


def _answer(size: int, batch_bytes: int, codec: int) -> tuple[bytes, int]:
    """Batches up to the size of a response, and how many records they hold."""
    rng = random.Random(size)
    count = batch_bytes // (size + 10)
    batches: list[bytes] = []
    for first in range(0, ANSWER_BYTES // (size + 10), count):
        rows = [(NOW + each // 3, None, rng.randbytes(size), ()) for each in range(count)]
        batches.append(encode_batch(rows, base_offset=first, codec=codec))
    return b"".join(batches), count * len(batches)


def _by_columns(data: bytes) -> int:
    decoder = ColumnDecoder(NAME)
    return sum(each.num_rows for each in decoder.decode(FetchedRecords(data, 0, 2**62)))


def _by_loop(data: bytes) -> int:
    rows = 0
    for start, _ in iter_batches(data):
        columns = decode_columns(data, start)
        fields = columns.keys, columns.values, list(columns.offsets), columns.timestamps
        batch = pa.record_batch([pa.array(each) for each in fields], list("kvot"))
        rows += batch.num_rows
    return rows


def _fastest(run: Callable[[], int], seconds: float) -> float:
    """The shortest time: a shared machine disturbs most of them."""
    fastest = float("inf")
    until = perf_counter() + seconds
    while perf_counter() < until:
        began = perf_counter()
        run()
        fastest = min(fastest, perf_counter() - began)
    return fastest
