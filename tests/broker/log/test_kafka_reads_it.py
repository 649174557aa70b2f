"""Kafka's own dump tool reads our files, and finds nothing wrong with them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import attrs
import pytest
import trio

from support.cache import Unavailable
from support.kafka_jars import class_path, java
from support.kafka_tools import DUMP_LOG
from support.transactions import end, send
from trionet.broker.log import FolderDirectory, LastShutdown, Log, LogConfig
from trionet.protocol.records._records import encode_batch
from trionet.protocol.records._types import NewRecord

pytestmark = pytest.mark.interop
#: The missing logger's greeting, and that the first record of a later segment does not follow -1:
#: with --deep-iteration the tool says so of every segment whose base offset is not 0.
HARMLESS = re.compile(r"SLF4J:|Non-consecutive offsets in |  -1 is followed by \d+$")

NOW = 1_700_000_000_000
BATCHES = 100
CONFIG = LogConfig(segment_bytes=5_000, index_interval_bytes=400)
STAMPING = attrs.evolve(CONFIG, message_timestamp_type="LogAppendTime")


def dump(*arguments: str | Path) -> str:
    """What the tool prints; fails if it complains, which it does on stderr with exit code 0."""
    try:
        command = [java(), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", class_path()]
    except Unavailable as reason:
        pytest.skip(str(reason))
    done = subprocess.run(
        [*command, DUMP_LOG, *map(str, arguments)], check=True, capture_output=True, text=True
    )
    complaints = [line for line in done.stderr.splitlines() if not HARMLESS.match(line)]
    assert [] == complaints
    return done.stdout


def rows(number: int, count: int) -> list[NewRecord]:
    return [
        (NOW + 10 * number - 3 * each, b"key", b"value %d" % number * 8, [("name", b"header")])
        for each in range(count)
    ]


def data_of(number: int, sequence: int) -> bytes:
    """Every second batch is of an idempotent producer."""
    is_idempotent = number % 2 == 1
    return encode_batch(
        rows(number, 1 + number % 4),
        codec=number % 5,
        producer_id=7000 if is_idempotent else -1,
        producer_epoch=3 if is_idempotent else -1,
        base_sequence=sequence if is_idempotent else -1,
    )


async def write(folder: FolderDirectory) -> None:
    """All sorts of batches in several segments, with a clean stop and a crash in between."""
    log = Log(folder, CONFIG, now_ms=NOW)
    sequence = 0
    for number in range(BATCHES):
        if number > 90:
            log.config = STAMPING
        if number in (30, 90):
            await log.begin_epoch(log.leader_epoch + 1)
        log.append(data_of(number, sequence), NOW + 10 * number)
        sequence += (1 + number % 4) * (number % 2)
        if number == 40:
            await log.flush()
        if number == 50:
            await log.close()
            log = Log(folder, CONFIG, now_ms=NOW, last_shutdown=LastShutdown(was_clean=True))
        if number == 60:
            log = Log(folder, CONFIG, now_ms=NOW, last_shutdown=LastShutdown(recovery_point=5))
    await log.close()
    assert len(log._segments.all) >= 3


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    path = tmp_path_factory.mktemp("data") / "orders-0"
    trio.run(write, FolderDirectory(path))
    return sorted(path.iterdir())


def of_kind(files: list[Path], suffix: str) -> str:
    return ",".join(str(path) for path in files if path.suffix == suffix)


def test_log_files_are_read_record_by_record(files: list[Path]) -> None:
    out = dump("--deep-iteration", "--print-data-log", "--files", of_kind(files, ".log"))

    assert BATCHES == len(re.findall(r"^baseOffset: ", out, re.MULTILINE))
    assert "isvalid: false" not in out
    assert [str(number) for number in range(250)] == re.findall(
        r"^\| offset: (\d+)", out, re.MULTILINE
    )
    assert {"none", "gzip", "snappy", "lz4", "zstd"} == set(
        re.findall(r"compresscodec: (\w+)", out)
    )
    assert "LogAppendTime" in out


def test_offset_indexes_point_at_the_right_batches(files: list[Path]) -> None:
    out = dump("--files", of_kind(files, ".index"))

    assert len(re.findall(r"offset: \d+ position: \d+", out)) > 20
    dump("--verify-index-only", "--files", of_kind(files, ".index"))
    assert "passed sanity check" in dump(
        "--index-sanity-check", "--files", of_kind(files, ".index")
    )


def test_time_indexes_hold_the_timestamps_of_their_batches(files: list[Path]) -> None:
    out = dump("--files", of_kind(files, ".timeindex"))

    assert len(re.findall(r"timestamp: \d+ offset: \d+", out)) > 20
    dump("--index-sanity-check", "--files", of_kind(files, ".timeindex"))


def test_producer_snapshots_are_read(files: list[Path]) -> None:
    out = dump("--files", of_kind(files, ".snapshot"))

    assert "producerId: 7000 producerEpoch: 3" in out
    assert re.search(r"lastSequence: \d+ lastOffset: \d+", out)


async def test_transactions_are_read(folder: FolderDirectory) -> None:
    """The markers, the index of aborted transactions, and what is still open."""
    log = Log(folder, CONFIG, now_ms=NOW)
    for producer_id in (7, 8, 9):
        send(log, producer_id)
    end(log, 7, is_commit=True, coordinator_epoch=5)
    end(log, 8, is_commit=False, coordinator_epoch=6)
    await log.close()
    path = Path(folder.path)
    text = dump("--deep-iteration", "--files", str(path / f"{0:020d}.log"))
    index = dump("--files", str(path / f"{0:020d}.txnindex"))
    snapshot = dump("--files", str(path / f"{5:020d}.snapshot"))

    assert re.search(r"offset: 3 .*endTxnMarker: COMMIT coordinatorEpoch: 5", text)
    assert re.search(r"offset: 4 .*endTxnMarker: ABORT coordinatorEpoch: 6", text)
    assert "isvalid: false" not in text
    assert "producerId: 8 firstOffset: 1 lastOffset: 4 lastStableOffset: 2" in index
    assert re.search(r"producerId: 9 .*currentTxnFirstOffset: OptionalLong\[2\]", snapshot)
    assert re.search(r"producerId: 8 producerEpoch: 1 coordinatorEpoch: 6", snapshot)


async def test_batches_that_take_the_place_of_missing_records_are_read(
    folder: FolderDirectory,
) -> None:
    await write(folder)
    names = [each for each in folder.names() if each.endswith(".log")]
    folder.remove(names[1])
    first, following = int(names[1][:20]), int(names[2][:20])
    Log(folder, CONFIG, now_ms=NOW, last_shutdown=LastShutdown(was_clean=True))
    text = dump("--deep-iteration", "--files", str(Path(folder.path) / names[1]))

    (batch,) = [line for line in text.splitlines() if line.startswith("baseOffset: ")]
    assert f"baseOffset: {first} lastOffset: {following - 1} count: 0 " in batch
    assert "isvalid: true" in batch
    assert "| offset: " not in text
