"""The calls that a log gets: good batches, hostile ones, and everything going wrong in between."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import attrs
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from log_faults.rig import RECORDS_PER_BYTE, Rig, Trouble
from support.faulty_directory import MOMENTS
from support.hostile_batches import changed
from support.logs import batch
from trionet.broker.log import Directory, FolderDirectory, LogConfig, MemoryDirectory
from trionet.protocol.records._batch import HEADER_SIZE, read_header

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
EXTREMES_16 = st.sampled_from([-(2**15), -1, 0, 1, 0x10, 0x20, 2**15 - 1]) | st.integers(0, 15)
EXTREMES_32 = st.sampled_from([-(2**31), -1, 0, 1, 7, 2**24, INT32_MAX - 1, INT32_MAX])
EXTREMES_64 = st.sampled_from([-(2**63), -2, -1, 0, 1, 2**31, INT64_MAX - 1, INT64_MAX])

#: Long enough to claim as many records as the field can say, if the codec is zstd.
VAST = batch(1, b"x" * 470_000)

#: After so many lines, and so many more of what handles the first exception.
LINES = st.lists(st.integers(0, 120), max_size=1) | st.tuples(
    st.integers(0, 120), st.integers(0, 40)
)
CALLS = st.dictionaries(st.integers(0, 8), st.sampled_from(MOMENTS), max_size=2)
TROUBLE = st.just(Trouble()) | st.builds(
    lambda lines, calls: Trouble(tuple(lines), calls), LINES, CALLS
)
NO_TROUBLE = Trouble()

CONFIG = st.builds(
    LogConfig,
    segment_bytes=st.sampled_from([300, 700, 2_000, 10_000_000]),
    index_interval_bytes=st.sampled_from([0, 150, 4096]),
    segment_index_bytes=st.sampled_from([48, 10_485_760]),
    flush_messages=st.sampled_from([1, INT64_MAX]),
)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "base_offset": EXTREMES_64,
        "leader_epoch": EXTREMES_32,
        "attributes": EXTREMES_16,
        "last_offset_delta": EXTREMES_32,
        "base_timestamp": EXTREMES_64,
        "max_timestamp": EXTREMES_64,
        "producer_id": EXTREMES_64,
        "producer_epoch": EXTREMES_16,
        "base_sequence": EXTREMES_32,
        "count": EXTREMES_32,
    },
)
# Where a log begins: at 0, and where its numbers get large.
STARTS = st.sampled_from([0, 0, 0, INT32_MAX - 5, 2**40, INT64_MAX - 40])

#: Counts what the machines of this process have done.
totals = {"machines": 0, "steps": 0, "interrupted": 0, "stored late": 0, "acknowledged": 0}


class LogUnderFaults(RuleBasedStateMachine):
    """Whatever happens: what was acknowledged is there, and nothing that nobody sent."""

    rig: Rig

    def __init__(self) -> None:
        super().__init__()
        self._folder: Path | None = None
        self._last: dict[int, bytes] = {}
        self._acknowledged = 0

    @initialize(on_disk=st.booleans(), config=CONFIG, start_offset=STARTS)
    def open(self, on_disk: bool, config: LogConfig, start_offset: int) -> None:
        directory: Directory = MemoryDirectory(is_virtual=True)
        if on_disk:
            # Where syncing costs nothing, if there is such a place.
            memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
            self._folder = Path(tempfile.mkdtemp(prefix="trionet-log-faults-", dir=memory))
            directory = FolderDirectory(self._folder)
        self.rig = Rig(directory, config, start_offset)

    def teardown(self) -> None:
        if hasattr(self, "rig"):
            self.rig.stop(NO_TROUBLE)
            self.rig.kill()
            totals["machines"] += 1
            totals["steps"] += self.rig.steps
            totals["interrupted"] += self.rig.interrupted
            totals["stored late"] += self.rig.stored_late
            totals["acknowledged"] += self._acknowledged
        if self._folder is not None:
            shutil.rmtree(self._folder)

    def _append(self, records: bytes, trouble: Trouble, transaction_version: int = -1) -> bool:
        is_acknowledged = self.rig.append(records, trouble, transaction_version)
        self._acknowledged += is_acknowledged
        return is_acknowledged

    @rule(
        counts=st.lists(st.integers(1, 4), min_size=1, max_size=6),
        size=st.integers(0, 120),
        timestamp=st.integers(0, 5_000),
        codec=st.sampled_from([0, 0, 1, 4]),
        trouble=TROUBLE,
    )
    def append(
        self, counts: list[int], size: int, timestamp: int, codec: int, trouble: Trouble
    ) -> None:
        value = b"v" * size
        records = b"".join(batch(each, value, timestamp, codec=codec) for each in counts)
        self._append(records, trouble)

    @rule(producer_id=st.integers(1, 3), count=st.integers(1, 3), trouble=TROUBLE)
    def append_of_a_producer(self, producer_id: int, count: int, trouble: Trouble) -> None:
        """Sent until it is acknowledged; not stored twice, whatever became of the first time."""
        known = self.rig.log._producers.get(producer_id)
        sequence = (known.last_sequence + 1) & INT32_MAX if known is not None else 0
        epoch = known.epoch if known is not None else 0
        records = batch(count, b"p", producer=(producer_id, epoch, sequence))
        before = self.rig.log.end_offset
        if not self._append(records, trouble) and before < INT64_MAX - 100:
            assert self._append(records, NO_TROUBLE)
            assert self.rig.log.end_offset == before + count
        self._last[producer_id] = records

    @rule(
        producer_id=st.integers(4, 6),
        count=st.integers(1, 3),
        version=st.integers(0, 2),
        trouble=TROUBLE,
    )
    def append_in_a_transaction(
        self, producer_id: int, count: int, version: int, trouble: Trouble
    ) -> None:
        """As a producer does: again and again until it is acknowledged."""
        known = self.rig.log.producers.get(producer_id)
        sequence = (known.last_sequence + 1) & INT32_MAX if known is not None else 0
        epoch = known.epoch if known is not None else 0
        records = batch(count, b"t", producer=(producer_id, epoch, sequence), transactional=True)
        before = self.rig.log.end_offset
        if not self._append(records, trouble, version) and before < INT64_MAX - 100:
            assert self._append(records, NO_TROUBLE, version)
            assert self.rig.log.end_offset == before + count
        assert producer_id in self.rig.log.open_transactions or before >= INT64_MAX - 100

    @rule(
        producer_id=st.integers(4, 6),
        is_commit=st.booleans(),
        version=st.integers(0, 2),
        trouble=TROUBLE,
    )
    def end_transaction(
        self, producer_id: int, is_commit: bool, version: int, trouble: Trouble
    ) -> None:
        """As a coordinator does; in version 2 with the next epoch."""
        known = self.rig.log.producers.get(producer_id)
        epoch = (0 if known is None else known.epoch) + (version == 2)
        rig = self.rig
        before = rig.log.end_offset
        if not rig.append_marker(
            producer_id, epoch, trouble, is_commit=is_commit, version=version
        ) and (before < INT64_MAX - 100):
            assert rig.append_marker(
                producer_id, epoch, NO_TROUBLE, is_commit=is_commit, version=version
            ), "a repeated marker of the same epoch"
        assert producer_id not in rig.log.open_transactions or before >= INT64_MAX - 100

    @rule(producer_id=st.integers(1, 3), trouble=TROUBLE)
    def repeat(self, producer_id: int, trouble: Trouble) -> None:
        known = self.rig.log._producers.get(producer_id)
        if producer_id in self._last and known is not None:
            header = read_header(self._last[producer_id])
            is_last = (known.epoch, known.last_sequence) == (
                header.producer_epoch,
                header.base_sequence + header.last_offset_delta,
            )
            before = self.rig.log.end_offset
            self._append(self._last[producer_id], trouble)
            assert not is_last or self.rig.log.end_offset == before

    @rule(
        fields=FIELDS,
        count=st.integers(1, 3),
        codec=st.integers(0, 4),
        version=st.integers(-1, 2),
        trouble=TROUBLE,
    )
    def append_with_a_hostile_header(
        self, fields: dict[str, int], count: int, codec: int, version: int, trouble: Trouble
    ) -> None:
        records = changed(batch(count, codec=codec), **fields)
        self._append_hostile(records, trouble, version)

    @rule(
        claimed=st.sampled_from([2**24, 2**30, INT32_MAX - 1, INT32_MAX]) | st.integers(1, 40_000),
        codec=st.integers(0, 7),
        copies=st.sampled_from([1, 1, 2, 200]),
        trouble=TROUBLE,
    )
    def append_claiming_more_records_than_there_are(
        self, claimed: int, codec: int, copies: int, trouble: Trouble
    ) -> None:
        records = changed(batch(), count=claimed, last_offset_delta=claimed - 1, attributes=codec)
        self._append_hostile(records * copies, trouble)

    @rule(claimed=st.integers(INT32_MAX - 4, INT32_MAX), copies=st.sampled_from([1, 1, 2]))
    def append_claiming_as_many_as_a_segment_has_offsets(self, claimed: int, copies: int) -> None:
        config = attrs.evolve(self.rig.log.config, segment_bytes=10_000_000)
        self.rig.configure(config)
        records = changed(VAST, count=claimed, last_offset_delta=claimed - 1, attributes=4)
        self._append_hostile(records * copies, NO_TROUBLE)
        # So that not every later step has half a megabyte to compare.
        self.rig.delete_before(self.rig.log.high_watermark, NO_TROUBLE)

    def _append_hostile(self, records: bytes, trouble: Trouble, version: int = -1) -> None:
        if self._append(records, trouble, version):
            header = read_header(records)
            bytes_ = header.size - HEADER_SIZE
            assert header.count <= bytes_ * RECORDS_PER_BYTE[header.attributes & 7], header
            assert header.last_offset_delta == header.count - 1, header

    @rule(part=st.floats(0, 1), trouble=TROUBLE)
    def delete_records(self, part: float, trouble: Trouble) -> None:
        log = self.rig.log
        offset = log.start_offset + round((log.high_watermark - log.start_offset) * part)
        self.rig.delete_before(min(offset, log.high_watermark), trouble)

    @rule(trouble=TROUBLE)
    def flush(self, trouble: Trouble) -> None:
        self.rig.flush(trouble)

    @rule(config=CONFIG)
    def configure(self, config: LogConfig) -> None:
        self.rig.configure(config)

    @rule()
    def begin_epoch(self) -> None:
        self.rig.begin_epoch()

    @rule(trouble=st.just(NO_TROUBLE) | TROUBLE)
    def stop_and_start(self, trouble: Trouble) -> None:
        self.rig.stop(trouble)

    @rule()
    def kill_and_start(self) -> None:
        self.rig.kill()
