"""Micro-batches in Spark: what they write is what plain Python counts, also when repeated."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark.pipeline import labelled_log
from spark.pipeline.detected import FIRST, incidents, signals_of
from spark.pipeline.job_without_spark import Job
from spark.pipeline.labelled_faults import Fault, faulty_log
from spark.pipeline.logged import (
    BEGIN,
    MINUTE,
    Logged,
    closed,
    counted,
    nearest_rank,
    request,
    table,
    traffic,
    window_of,
)
from spark.pipeline.written_results import documents, published, tables, without_batches
from trionet.protocol.request_log import UINT32_MAX, UINT64_MAX, encode
from trionet.spark._data_source import TrionetDataSource
from trionet.spark.pipeline._batches import BatchProcessor
from trionet.spark.pipeline._closing import Outputs
from trionet.spark.pipeline._estimates import api_name
from trionet.spark.pipeline._objectives import Objective
from trionet.spark.pipeline._partials import PHASES
from trionet.spark.pipeline._storage import StateStore, Storage
from trionet.spark.pipeline.report._inputs import Filters, TimeRange
from trionet.spark.pipeline.report._json import document
from trionet.spark.pipeline.report._page import page
from trionet.spark.pipeline.report._report import make_report
from trionet.spark.pipeline.report._terminal import write
from trionet.testing._threaded import ThreadedBroker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


pytest.importorskip("pyspark", reason="PySpark cannot be imported")


pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),  # two other streams of tests may run beside it, on two cores
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

DELAY_US = 30_000_000


@attrs.frozen
class Rig:
    """Runs micro-batches as Spark does, for one folder and topic."""

    spark: SparkSession
    broker: ThreadedBroker
    topic: str
    folder: Path

    def batches(
        self, objectives: Sequence[str] = (), keep_days: int | None = None
    ) -> BatchProcessor:
        """What a job has that was started just now."""
        sink = {"kafka.bootstrap.servers": self.broker.bootstrap_servers, "topic": self.topic}
        checkpoint = f"{self.folder}/_checkpoint"
        promised = tuple(map(Objective.parse, objectives))
        outputs = Outputs(str(self.folder), checkpoint, sink, promised, keep_days)
        return BatchProcessor(outputs, DELAY_US)

    def records(
        self, records: Sequence[Logged | bytes], read_at: float = BEGIN + 3 * 3600
    ) -> DataFrame:
        """Records as a micro-batch has them."""
        return self.spark.createDataFrame(pa.Table.from_batches([table(records, read_at)]))


@pytest.fixture
def rig(spark: SparkSession, kafka: ThreadedBroker, topic: str, tmp_path: Path) -> Rig:
    spark.dataSource.register(TrionetDataSource)
    kafka.create_topic(topic)
    return Rig(spark, kafka, topic, tmp_path / "results")


def is_over(logged: Logged, records: Sequence[Logged]) -> bool:
    """Whether the watermark has passed a record's minute."""
    latest = max(window_of(each) for each in records)
    return window_of(logged) < latest


def test_results_are_what_plain_python_counts(rig: Rig) -> None:
    records = traffic(seed=2, count=4000, seconds=15 * 60 + 45)
    batches = rig.batches()
    batches(rig.records([]), 0)
    batches(rig.records(records[:2500]), 1)
    batches(rig.records([*records[2500:], b"?", records[0]]), 2)

    found = tables(rig.folder)

    over = [each for each in records if is_over(each, records)]
    expected = counted(over)
    check_windows(expected["windows"], found["windows"])
    check_requests(expected["requests"], found["requests"])
    assert sum(row["requests"] for row in expected["errors"].values()) == sum(
        row["requests"] for row in found["errors"]
    )
    throttled = {key: row for key, row in expected["quotas"].items() if row["throttled"]}
    assert throttled.keys() == {
        (row["window"], row["client_id"], row["principal"], row["listener"])
        for row in found["quotas"]
    }
    check_talkers(expected["quotas"], found["talkers"])
    check_intake(found["intake"], found["windows"], read=len(records) + 2)
    check_topic(found, rig)


def test_clocks_that_differ_give_in_spark_what_they_give_without_it(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    """One is half an hour ahead, and alone for a micro-batch; and there are records of long ago."""

    def of(node: int, begin: int, end: int) -> list[Logged]:
        ahead = 1800 if node == 2 else 0
        return [request(second + ahead, node_id=node) for second in range(begin, end, 10)]

    both = [each for pair in zip(of(1, 0, 720), of(2, 0, 720), strict=True) for each in pair]
    old: list[Logged] = [request(-BEGIN), closed(-BEGIN + 86_400), request(-86_400 * 365)]
    parts: list[tuple[int, list[Logged | bytes]]] = [
        (720, [old[0], *both, b"?"]),
        (740, [*of(2, 720, 740), *old[1:]]),
        (1100, [*of(1, 720, 1100), *of(2, 1090, 1100)]),
    ]
    expected, batches = Job(), rig.batches()
    for number, (second, records) in enumerate(parts):
        batches(rig.records(records, BEGIN + second), number)
        expected.read(records, read_at=BEGIN + second)

    found = tables(rig.folder)
    minutes = {row["window"]: row["records"] + row["connections"] for row in found["windows"]}
    assert expected.closed == minutes
    state = StateStore(Storage(rig.spark), f"{rig.folder}/_checkpoint").load_before(99)
    of_spark = {name: getattr(state, name) for name in ("open_batches", "minutes", "closed")}
    assert attrs.evolve(expected.state, **of_spark) == state
    assert (0, 3) == tuple(sum(row[name] for row in found["intake"]) for name in ("late", "old"))
    ahead = [(row["ahead_node_id"], row["ahead_minutes"]) for row in found["intake"]]
    assert [(2, 30), (2, 29)] == sorted(ahead, reverse=True)
    warnings = [each.getMessage() for each in caplog.records if each.name.endswith("_batches")]
    assert ["the clock of broker 2 is 30 minutes ahead"] == warnings
    for session in (None, rig.spark):
        made = make_report(session, str(rig.folder), TimeRange(), Filters(), 10, datetime.now(UTC))
        assert (3, {2: 30}) == (made.intake.old, made.clocks_ahead)


def forged() -> list[Logged | bytes]:
    """What a stranger may write into the topic of a request log, with the largest numbers."""
    times = {f"{phase}_us": UINT32_MAX for phase in PHASES}
    largest = {**times, "request_bytes": UINT32_MAX, "response_bytes": UINT32_MAX}
    connection = closed(
        40, open_us=UINT64_MAX, requests=UINT64_MAX, bytes_received=UINT64_MAX, reason="?"
    )
    sampled = bytearray(encode(connection))
    sampled[15:19] = (1).to_bytes(4, "big")
    return [
        request(-BEGIN),  # 1970
        request(-BEGIN + 86_400 * 400),
        *(
            request(20 + number / 100, client_id=name, sample_ppm=1, **largest)
            for name in ("a", "b", "c")
            for number in range(2500)
        ),
        request(21, api_key=-32_768, error_code=-32_768, end=255, **largest),
        *[bytes(sampled)] * 5,
        b"",
        b"\x01",
        b"\xff" * 100,
        encode(connection)[:-1],
    ]


def test_no_record_ends_a_micro_batch_or_a_report(rig: Rig) -> None:
    honest = traffic(seed=3, count=1500, seconds=15 * 60 + 45)
    batches = rig.batches(["*=99.9% within 20ms", "*/each=99% within 1s"])

    batches(rig.records([*forged(), *honest[:900]]), 0)
    batches(rig.records([*honest[900:], *forged()]), 1)

    found = tables(rig.folder)
    expected = counted([each for each in honest if is_over(each, honest)])["requests"]
    by_key = {
        (r["window"], r["api_key"], r["client_id"], r["listener"]): r for r in found["requests"]
    }
    assert {key: len(times["total"]) for key, times in expected.items()} == {
        key: by_key[key]["records"] for key in expected
    }
    assert 16 == sum(row["malformed"] for row in found["intake"])
    folder, now = str(rig.folder), datetime.now(UTC)
    for session in (None, rig.spark):
        made = make_report(session, folder, TimeRange(), Filters(), 10, now)
        assert made.windows == len({row["window"] for row in found["windows"]})
        assert json.loads(document(made))["minutes"] == made.windows
        assert page(made, 10, now)
        write(made, 10, StringIO())


def check_windows(expected: dict[Any, Any], found: list[dict[str, Any]]) -> None:
    names = ("records", "requests", "connections", "request_bytes", "response_bytes", "errors")
    assert {key: {n: row[n] for n in names} for key, row in expected.items()} == {
        (row["window"],): {n: row[n] for n in names} for row in found
    }


def check_requests(expected: dict[Any, Any], found: list[dict[str, Any]]) -> None:
    by_key = {(r["window"], r["api_key"], r["client_id"], r["listener"]): r for r in found}
    assert expected.keys() == by_key.keys()
    for key, row in by_key.items():
        times = expected[key]
        assert api_name(key[1]) == row["api"]
        assert times["requests"] / 60 == row["requests_per_s"]
        for phase in PHASES:
            assert max(times[phase]) == row[f"{phase}_max_us"]
            assert sum(times[phase]) / len(times[phase]) == row[f"{phase}_mean_us"]
            for name, per_mille in {"p50": 500, "p95": 950, "p99": 990, "p999": 999}.items():
                exact = nearest_rank(times[phase], per_mille)
                assert abs(row[f"{phase}_{name}_us"] - exact) <= 0.01 * exact


def check_talkers(expected: dict[Any, Any], found: list[dict[str, Any]]) -> None:
    for measure, column in {"requests": "requests", "bytes": "bytes", "time": "time_us"}.items():
        for window in {key[0] for key in expected}:
            of_window = {key: row for key, row in expected.items() if key[0] == window}
            order = sorted(of_window.items(), key=lambda each: (-each[1][column], each[0]))[:10]
            total = sum(row[column] for row in of_window.values())
            told = sorted(
                (r for r in found if (r["window"], r["measure"]) == (window, measure)),
                key=lambda row: row["rank"],
            )
            assert [row[column] for _, row in order] == [row[column] for row in told]
            assert [key[1] for key, _ in order] == [row["client_id"] for row in told]
            shares = [row[column] / total for _, row in order]
            assert shares == pytest.approx([row["share"] for row in told])


def check_intake(intake: list[dict[str, Any]], windows: list[dict[str, Any]], *, read: int) -> None:
    """Each record is somewhere, and once: the first record came again when its minute was over."""
    total = {n: sum(row[n] for row in intake) for n in ("records", "late", "malformed", "newer")}
    told = sum(row["records"] + row["connections"] for row in windows)
    assert {"records": read, "late": 1, "malformed": 0, "newer": 1} == total
    assert read == told + 2 + max(intake, key=lambda row: row["batch"])["open_records"]


def check_topic(found: dict[str, list[dict[str, Any]]], rig: Rig) -> None:
    told = documents(published(rig.broker, rig.topic))
    kinds = {name: len(rows) for name, rows in found.items() if name != "intake"}
    assert kinds == {kind: sum(k["kind"] == kind for k, _ in told) for kind in kinds}
    row = found["requests"][0]
    [value] = [
        value
        for key, value in told
        if (key["kind"], key["window"]) == ("requests", _text(row["window"]))
        and [key[n] for n in ("api", "client_id", "listener")]
        == [row[n] for n in ("api", "client_id", "listener")]
    ]
    assert {"window": _text(row["window"])}.items() <= value.items()
    without = {"window", "batch", "cells", "counts"}
    assert {k: v for k, v in row.items() if k not in without}.items() <= value.items()


def _text(window: int) -> str:
    minute = window - MINUTE + 50
    day, hour = (22, 23) if minute < 60 else (23, 0)
    return f"2025-11-{day}T{hour:02}:{minute % 60:02}:00Z"


@pytest.mark.spark
def test_a_micro_batch_that_is_killed_after_a_step_is_repeated(rig: Rig) -> None:
    records = traffic(seed=3, count=1500, seconds=11 * 60 + 50)
    parts = [rig.records(records[:900]), rig.records(records[900:])]
    undisturbed = attrs.evolve(rig, folder=rig.folder.with_name("undisturbed"))
    undisturbed_batches, told = undisturbed.batches(), {}
    for number, part in enumerate(parts):
        undisturbed_batches(part, number)
    once = published(rig.broker, rig.topic)

    for number, part in enumerate(parts):
        batches = rig.batches()
        for last in ("folded", "cleared", "windows", "saved", "completed", "tidied"):
            batches = rig.batches()
            steps = batches.steps(part, number)
            assert last in steps  # they go on until it is there
            steps.close()
        told[number] = batches.results[number]
    # The last repetitions have found complete results, and left them as they were.
    assert told == undisturbed_batches.results
    assert_same(without_batches(tables(undisturbed.folder)), without_batches(tables(rig.folder)))
    assert once.keys() == published(rig.broker, rig.topic).keys()
    documents(published(rig.broker, rig.topic))


@pytest.mark.spark
def test_files_are_merged_and_days_deleted_and_both_engines_report_the_same(rig: Rig) -> None:
    """The first of three days is deleted; of the second, one of two files has a column less."""
    batches = rig.batches(keep_days=1)
    now = datetime.now(UTC)
    for number, begin in enumerate([0, 86_400, 86_400 + 300, 2 * 86_400]):
        first = begin + 12 * 60  # it is two minutes past midnight
        records = [request(first + second, error_code=6) for second in range(0, 290, 10)]
        read = pa.Table.from_batches([table(records, read_at=BEGIN + first + 300)])
        batches(rig.spark.createDataFrame(read), number)
        if number == 1:
            [file] = (rig.folder / "requests/day=2025-11-24/batch=1").glob("*.parquet")
            written = pq.ParquetFile(file).read()
            pq.write_table(written.drop_columns(["throttled"]), file)
            file.with_name(f".{file.name}.crc").unlink()

    made = {
        engine: document(make_report(engine, str(rig.folder), TimeRange(), Filters(), 10, now))
        for engine in (None, rig.spark)
    }

    assert made[None] == made[rig.spark]
    found = tables(rig.folder)
    days = sorted(each.name for each in (rig.folder / "windows").glob("day=*"))
    assert ["day=2025-11-24", "day=2025-11-25"] == days
    files = [each.name for each in (rig.folder / "windows/day=2025-11-24").rglob("*.parquet")]
    assert ["merged"] == [name.partition("-")[0] for name in files]
    assert sum(row["requests"] for row in found["windows"]) == sum(
        row["requests"] for row in found["requests"]
    )
    assert len({row["window"] for row in found["requests"]}) == len(found["windows"])
    assert not list(rig.folder.glob("_merging*"))


@pytest.mark.spark
def test_what_a_job_of_spark_had_not_finished_is_not_reported_with_what_comes_after_it(
    rig: Rig,
) -> None:
    """Hadoop's FileOutputCommitter takes for its own whatever is in its folder."""
    records = traffic(seed=6, count=300, seconds=3 * 60 + 50)
    parts = [rig.records(records[:200]), rig.records(records[200:])]
    undisturbed = attrs.evolve(rig, folder=rig.folder.with_name("undisturbed"))
    for number, part in enumerate(parts):
        undisturbed.batches()(part, number)
    rig.batches()(parts[0], 0)
    # Killed when the tasks of a table had ended, and the job had not.
    days = undisturbed.folder / "requests"
    for each in days.glob("day=*/batch=1/part-*"):
        left = rig.folder / "requests" / "_temporary/0/task_202511222350" / each.relative_to(days)
        left.parent.mkdir(parents=True, exist_ok=True)
        left.with_name(f"left-{each.name}").write_bytes(each.read_bytes())

    rig.batches()(parts[1], 1)

    assert_same(tables(undisturbed.folder), tables(rig.folder))


@pytest.mark.spark
def test_a_job_goes_on_after_a_pause_though_what_it_reported_before_is_deleted(rig: Rig) -> None:
    first = [request(60 * minute) for minute in range(12)]
    later = [request(5400 + 60 * minute) for minute in range(12)]
    batches = rig.batches()
    batches(rig.records(first), 0)
    told = len(tables(rig.folder)["windows"])
    for table_ in rig.folder.iterdir():
        if not table_.name.startswith("_"):
            shutil.rmtree(table_)

    batches(rig.records(later), 1)

    assert 10 == told  # the watermark is half a minute behind
    assert 2 + 10 == len(tables(rig.folder)["windows"])


@pytest.mark.spark
def test_rows_of_an_earlier_version_of_open_minutes_are_counted(rig: Rig) -> None:
    """They have no node id."""
    records = [request(10 * number) for number in range(60)]
    rig.batches()(rig.records(records[:30]), 0)
    for file in (rig.folder / "_checkpoint/trionet/open/batch=0").glob("part-*"):
        rows = pq.read_table(file).drop_columns(["node_id"])
        file.with_name(f".{file.name}.crc").unlink()
        pq.write_table(rows, file)

    rig.batches()(rig.records(records[30:]), 1)

    assert [6] * 9 == [row["requests"] for row in tables(rig.folder)["requests"]]


def assert_same(expected: dict[str, Any], found: dict[str, Any]) -> None:
    assert expected.keys() == found.keys()
    for name, rows in expected.items():
        assert rows == found[name], name


@pytest.mark.spark
def test_incidents_and_objectives_go_on_from_one_micro_batch_to_the_next(rig: Rig) -> None:
    """As the same steps find them in one process, without Spark and micro-batches."""
    faults = [Fault("errors of a client", 12 * 60 + 5, 17 * 60)]
    minutes = list(faulty_log(7, faults, 20))
    log = [labelled_log.table(each) for each in minutes]
    outputs = rig.batches(("Produce/clicks=99%",))
    for number, (begin, end) in enumerate([(0, 14), (14, 20)]):
        outputs(rig.spark.createDataFrame(pa.Table.from_batches(log[begin:end])), number)
    found = tables(rig.folder)

    # The last minute may go on, so that it is not judged yet.
    [expected] = incidents(signals_of(minutes[:19]), 19)
    last = max(found["incidents"], key=lambda row: row["window"])
    assert [expected.id] * len(found["incidents"]) == [r["incident"] for r in found["incidents"]]
    assert (expected.anomalies, "clicks") == (last["anomalies"], last["client_id"])
    assert len(found["anomalies"]) == expected.anomalies
    burned = {row["window"] - FIRST: row for row in found["objectives"]}
    assert list(range(19)) == sorted(burned)
    assert (None, "page") == (burned[11]["alert"], burned[15]["alert"])
    documented = documents(published(rig.broker, rig.topic))
    told = [value for key, value in documented if key["kind"] == "incidents"]
    assert len(found["incidents"]) == len(told)
    assert {expected.id} == {f"{value['start'][:16]}Z" for value in told}


@pytest.mark.spark
def test_results_do_not_depend_on_where_micro_batches_end(rig: Rig) -> None:
    records = traffic(seed=4, count=1500, seconds=13 * 60 + 50)
    others = attrs.evolve(rig, folder=rig.folder.with_name("others"))
    rig.batches()(rig.records(records), 0)
    for number, (begin, end) in enumerate([(0, 20), (20, 900), (900, 901), (901, 1500)]):
        others.batches()(others.records(records[begin:end]), number)

    assert_same(without_batches(tables(rig.folder)), without_batches(tables(others.folder)))
    documents(published(rig.broker, rig.topic))


def test_a_file_that_is_not_written_to_its_end_stays_what_it_was(rig: Rig) -> None:
    """As the state of the job, if that is killed: an empty file would be no state."""
    storage, name = Storage(rig.spark), f"{rig.folder}/remembered/1.json"
    storage.write(name, "{}")
    with pytest.raises(UnicodeEncodeError):
        storage.write(name, "\ud800")
    assert "{}" == storage.text(name)
    storage.write(name, "[]")
    assert "[]" == storage.text(name)
    assert ["1.json"] == storage.names(f"{rig.folder}/remembered")
