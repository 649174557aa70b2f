"""Records: batches of 1,000 encoded and decoded, beside kafka-python and aiokafka's compiled code.

Every side checks nothing but what it must, and reads every attribute of every record. ``pure`` is
what runs without a C compiler; the other sides of trionet are missing in such a build.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from types import ModuleType
from typing import Any

from aiokafka.record import default_records as aiokafka
from kafka.record import default_records as kafka

import trionet
from bench.measured import Figure, Measured
from bench.options import Options
from trionet.protocol.records import (
    _implementation as implementation,
)
from trionet.protocol.records import (
    _pure_reader as pure_reader,
)
from trionet.protocol.records import (
    _pure_writer as pure_writer,
)
from trionet.protocol.records import (
    _typed_reader as typed_reader,
)
from trionet.protocol.records import (
    _typed_writer as typed_writer,
)
from trionet.protocol.records._records import (
    batch_chunks,
    decode_batch,
    decode_columns,
    decode_values,
)
from trionet.protocol.records._types import NewRecord

RUNS = 5
SECONDS = 0.5
RECORDS = 1000
SHAPES = {
    "100 B": (None, 100, 100),
    "50 to 150 B, 8-B key": (b"12345678", 50, 150),
    "1 KB, 8-B key": (b"12345678", 1024, 1024),
}
NOW = 1_700_000_000_000

Side = Callable[[], object]


def measure(options: Options) -> Measured:
    """Run the benchmark."""
    measured = Measured(
        f"{RECORDS} records, one batch", (Figure("per_s", "records/s"), Figure("ns", "ns/record"))
    )
    if not trionet.is_compiled():
        measured.skipped["trionet"] = "nothing is compiled here"
    if "_crecords" not in aiokafka.DefaultRecordBatch.__module__:
        raise RuntimeError("aiokafka runs without its compiled reader")
    for shape, (key, least, most) in SHAPES.items():
        rng = random.Random(least)
        rows: list[NewRecord] = [
            (NOW + number // 3, key, rng.randbytes(rng.randint(least, most)), [])
            for number in range(RECORDS)
        ]
        for case, sides in (
            (f"encode, {shape}", _encoders(rows)),
            (f"decode, {shape}", _decoders(rows)),
        ):
            if options.wants_case(case):
                wanted = {name: side for name, side in sides.items() if options.wants(name)}
                for _ in range(options.runs):
                    for name, seconds in _fastest(wanted, options.seconds).items():
                        figures = {"per_s": RECORDS / seconds, "ns": seconds / RECORDS * 1e9}
                        measured.add(case, name, figures)
    return measured


def _fastest(sides: dict[str, Side], seconds: float) -> dict[str, float]:
    """The shortest time of each side, in turns: a shared machine disturbs most of them."""
    found = dict.fromkeys(sides, float("inf"))
    until = perf_counter() + seconds * len(sides)
    while perf_counter() < until:
        for name, side in sides.items():
            began = perf_counter()
            side()
            found[name] = min(found[name], perf_counter() - began)
    return found


def _encoders(rows: Sequence[NewRecord]) -> dict[str, Side]:
    def ours(builder: Callable[[], pure_writer.BatchBuilder]) -> list[bytes]:
        built = builder()
        append = built.append
        for timestamp, key, value, headers in rows:
            append(timestamp, key, value, headers)
        return batch_chunks(built)

    def theirs(module: Any) -> object:
        built = module.DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 30)
        append = built.append
        for number, (timestamp, key, value, headers) in enumerate(rows):
            append(number, timestamp, key, value, headers)
        return built.build()

    sides: dict[str, Side] = {}
    if trionet.is_compiled():
        sides["trionet"] = lambda: ours(typed_writer.BatchBuilder)  # type: ignore[arg-type]
    sides["trionet pure"] = lambda: ours(pure_writer.BatchBuilder)
    sides["aiokafka"] = lambda: theirs(aiokafka)
    sides["kafka-python"] = lambda: theirs(kafka)
    return sides


def _decoders(rows: Sequence[NewRecord]) -> dict[str, Side]:
    data = b"".join(batch_chunks(pure_writer.build_rows(rows)))

    def ours(decode: Callable[[bytes], object], reader: ModuleType) -> object:
        implementation.reader = reader
        return decode(data)

    def theirs(batch: Any) -> None:
        for record in batch:
            _ = record.offset, record.timestamp, record.key, record.value, record.headers

    sides: dict[str, Side] = {}
    readers: dict[str, ModuleType] = {"trionet pure": pure_reader}
    if trionet.is_compiled():
        readers = {"trionet": typed_reader, **readers}
    ways = {"": decode_batch, ", columns": decode_columns, ", values": decode_values}
    for name, reader in readers.items():
        for way, decode in ways.items():
            sides[name + way] = partial(ours, decode, reader)
    sides["aiokafka"] = lambda: theirs(aiokafka.DefaultRecordBatch(data))
    sides["kafka-python"] = lambda: theirs(kafka.DefaultRecordBatch(memoryview(data)))
    return sides
