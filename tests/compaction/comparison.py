"""One history, cleaned by all who take part; what each of them keeps must be the same."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from compaction.history import CONFIG, START_MS, History
from compaction.participants import Kafka, Model, Trionet
from support.compaction_model import KeptBatch, ModelSegment
from support.kafka_cleaner import KafkaCleaner
from support.kafka_node import memory_folder
from trionet.broker.log import Directory, FolderDirectory, Log, MemoryDirectory

ROUNDS = 4
STEPS_MAX = 40
#: Sizes of Kafka's segments: none is joined with another, some are, all are.
SEGMENT_BYTES = (1, 500, 2000, 10_000)


def compare(rng: random.Random, cleaner: KafkaCleaner | None = None) -> Counter[str]:
    """Play a history.

    Args:
        rng: decides all of it.
        cleaner: Kafka's; None compares only trionet with the model.

    Returns:
        How much of what there was.

    Raises:
        AssertionError: something differs.
    """
    counts: Counter[str] = Counter()
    with _folders(cleaner is not None) as (directory, kafka_folder):
        history = History(rng, Log(directory, CONFIG, now_ms=START_MS))
        model, trionet = Model(), Trionet(rng)
        kafka = None
        if cleaner is not None and directory.path is not None:
            kafka = Kafka(cleaner, Path(directory.path), kafka_folder)
        first_dirty = 0
        for _ in range(ROUNDS):
            history.go_on(rng.randint(5, STEPS_MAX))
            told = history.next_round(first_dirty)
            if told is None:
                continue
            if kafka is not None:
                history.reopen()
            source = history.segments()
            model.take(source)
            first_dirty = model.clean(told)
            expected = _left(model.segments)
            trionet.take(source)
            assert first_dirty == trionet.clean(told), told
            _check_same(_without_fillers(expected), _without_fillers(_left(trionet.segments)))
            if kafka is not None:
                kafka.take(source, history.log.end_offset)
                assert first_dirty == kafka.clean(told, rng.choice(SEGMENT_BYTES)), told
                _check_same(expected, _left(kafka.segments))
                assert kafka.producers == told.last_records
            counts += _counted(model.segments, first_dirty < told.end_offset)
    return counts


@contextmanager
def _folders(on_disk: bool) -> Iterator[tuple[Directory, Path]]:
    """Where the log is that is not cleaned, and an empty folder if Kafka takes part."""
    if not on_disk:
        yield MemoryDirectory(is_virtual=True), Path()
        return
    with tempfile.TemporaryDirectory(prefix="trionet-compaction-", dir=memory_folder()) as name:
        folder = Path(name) / "kafka" / "orders-0"
        folder.mkdir(parents=True)
        yield FolderDirectory(Path(name) / "orders-0"), folder


def _left(segments: Iterable[ModelSegment]) -> list[object]:
    """All that is left of a log, whatever files it is in."""
    segments = list(segments)
    batches = [batch for segment in segments for batch in segment.batches]
    return batches + [entry for segment in segments for entry in segment.aborted]


def _without_fillers(left: list[object]) -> list[object]:
    """Ours ends each file with an empty batch, so that none is missed; Kafka has gaps."""
    return [each for each in left if not (isinstance(each, KeptBatch) and each.is_filler)]


def _check_same(expected: list[object], found: list[object]) -> None:
    if expected == found:
        return
    missing = [each for each in expected if each not in found]
    superfluous = [each for each in found if each not in expected]
    assert not missing, f"missing: {missing}; instead: {superfluous}"
    assert not superfluous, f"superfluous: {superfluous}"
    raise AssertionError("the order differs")


def _counted(segments: list[ModelSegment], was_map_full: bool) -> Counter[str]:
    batches = [batch for segment in segments for batch in segment.batches]
    return Counter(
        {
            "rounds": 1,
            "rounds with a full map": int(was_map_full),
            "batches left": len(batches),
            "empty batches": sum(not batch.records for batch in batches),
            "delete horizons": sum(batch.delete_horizon is not None for batch in batches),
            "aborted transactions": sum(len(segment.aborted) for segment in segments),
        }
    )
