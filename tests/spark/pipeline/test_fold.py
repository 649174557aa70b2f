"""Records, folded and finished without Spark, are what plain Python counts."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import pyarrow as pa
import pytest

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
)
from trionet.protocol.request_log import encode
from trionet.spark.pipeline import _fold as folding
from trionet.spark.pipeline._estimates import (
    PER_MILLE,
    api_name,
    end_name,
    error_name,
    estimate,
)
from trionet.spark.pipeline._fold import AGE_SECONDS_MAX, folded
from trionet.spark.pipeline._partials import (
    CLOSES,
    ERRORS,
    INTAKE,
    PHASES,
    REQUESTS,
    SCHEMA,
    SUMS,
    TALKERS,
    TIMES,
)
from trionet.spark.pipeline.histogram import BUCKETS_MAX


def fold_of(batches: Iterable[Any]) -> list[Any]:
    return list(folded(batches))


def rows_of(kind: int, parts: list[Any]) -> list[dict[str, Any]]:
    """Finished rows of one kind, with their sums by name."""
    of_kind = [each for each in parts if each["kind"][0].as_py() == kind]
    return [
        {**row, **dict(zip(SUMS[kind], row["sums"], strict=True))}
        for batch in estimate(of_kind)
        for row in batch.to_pylist()
    ]


def intake_of(parts: list[Any]) -> dict[str, int]:
    total = dict.fromkeys(SUMS[INTAKE], 0)
    for batch in parts:
        for row in batch.to_pylist():
            if row["kind"] == INTAKE:
                for name, number in zip(SUMS[INTAKE], row["sums"], strict=True):
                    total[name] += number
    return total


@pytest.fixture(scope="module")
def records() -> list[Logged]:
    return traffic(seed=1, count=3000, seconds=240)


@pytest.fixture(scope="module")
def parts(records: list[Logged]) -> list[Any]:
    return fold_of(table(records[at : at + 700]) for at in range(0, len(records), 700))


def test_sums_of_each_api_client_and_listener(records: list[Logged], parts: list[Any]) -> None:
    names = ("records", "requests", "request_bytes", "response_bytes", "errors", "throttled")

    found = {
        (row["window"], row["api_key"], row["client_id"], row["listener"]): {
            name: row[name] for name in names
        }
        for row in rows_of(REQUESTS, parts)
    }

    expected = counted(records)["requests"]
    assert {key: {n: row[n] for n in names} for key, row in expected.items()} == found


def test_percentiles_are_within_one_percent_and_the_largest_is_exact(
    records: list[Logged], parts: list[Any]
) -> None:
    expected = counted(records)["requests"]

    for row in rows_of(REQUESTS, parts):
        times = expected[row["window"], row["api_key"], row["client_id"], row["listener"]]
        for number, phase in enumerate(PHASES):
            told = row["percentiles"][4 * number : 4 * number + 4]
            exact = [nearest_rank(times[phase], per_mille) for per_mille in PER_MILLE]
            assert max(times[phase]) == row["maxima"][number]
            assert all(abs(a - b) <= 0.01 * b for a, b in zip(told, exact, strict=True)), phase


def test_errors_by_what_they_are(records: list[Logged], parts: list[Any]) -> None:
    found = {
        (row["window"], row["api_key"], row["client_id"], row["listener"], row["end"], code): row[
            "requests"
        ]
        for row in rows_of(ERRORS, parts)
        for code in [row["error_code"]]
    }

    expected = {
        (*key[:4], end_name(key[4]), key[5]): row["requests"]
        for key, row in counted(records)["errors"].items()
    }
    assert expected == found


def test_closed_connections_by_their_reason(records: list[Logged], parts: list[Any]) -> None:
    names = ("connections", "requests", "bytes_received", "bytes_sent")

    found = {
        (row["window"], row["listener"], row["client_id"], row["reason"]): {
            name: row[name] for name in names
        }
        for row in rows_of(CLOSES, parts)
    }

    assert counted(records)["closes"] == found


def test_what_each_client_and_principal_takes(records: list[Logged], parts: list[Any]) -> None:
    names = ("requests", "throttled", "throttle_us", "bytes", "time_us")

    found = {
        (row["window"], row["client_id"], row["principal"], row["listener"]): {
            name: row[name] for name in names
        }
        for row in rows_of(TALKERS, parts)
    }

    assert counted(records)["quotas"] == found


def test_it_is_the_same_however_records_are_cut_and_in_whatever_order(
    records: list[Logged], parts: list[Any]
) -> None:
    random = Random(5)
    mixed = list(records)
    random.shuffle(mixed)
    others = fold_of([table(mixed[:10])]) + fold_of([table(mixed[10:2000]), table(mixed[2000:])])

    for kind in (REQUESTS, ERRORS, TALKERS, CLOSES):
        expected, found = (
            sorted(map(repr, rows_of(kind, each))) for each in (parts, reversed(others))
        )
        assert expected == found


def test_a_task_hands_on_what_it_cannot_keep(
    records: list[Logged], parts: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folding, "ROWS_MAX", 100)
    bounded = fold_of(table(records[at : at + 100]) for at in range(0, len(records), 100))

    assert sum(map(len, bounded)) > sum(map(len, parts))
    for kind in (REQUESTS, CLOSES):
        expected, found = (sorted(map(repr, rows_of(kind, each))) for each in (parts, bounded))
        assert expected == found


def test_a_sample_is_scaled_and_the_count_of_records_stands_beside() -> None:
    half = [request(1, sample_ppm=500_000, local_us=10, client_id="a") for _ in range(3)]
    whole = [request(1, local_us=1000, client_id="a")]

    [row] = rows_of(REQUESTS, fold_of([table(half + whole)]))

    assert (4, 7) == (row["records"], row["requests"])
    assert 700 == row["request_bytes"]
    assert 6 * 10 + 1000 == row["local_us"]
    # Six of the seven took 10, so that a rank of 950 of 1000 is the slow one.
    assert [10, 1000] == row["percentiles"][4:6]


@pytest.mark.parametrize("sample_ppm", [100_000, 300_000, 400_000, 700_000])
def test_percentiles_of_a_sample_are_those_of_its_records(sample_ppm: int) -> None:
    """Each stands for as many as another, also where that is no whole number."""
    fast, slow = [100] * 800, [round(1000 * 2 ** (number / 64)) for number in range(200)]
    records = [request(1, sample_ppm=sample_ppm, total_us=time) for time in fast + slow]

    [row] = rows_of(REQUESTS, fold_of([table(records)]))

    exact = [nearest_rank(fast + slow, per_mille) for per_mille in PER_MILLE]
    told = row["percentiles"][4 * PHASES.index("total") :]
    assert told[:4] == pytest.approx(exact, rel=0.02)  # two records are 1 % from one another
    of_time = [0] * len(TIMES)
    for cell, count in zip(row["cells"], row["counts"], strict=True):
        of_time[cell // BUCKETS_MAX] += count
    assert [row["requests"]] * len(TIMES) == of_time


def test_what_cannot_be_read_is_counted_and_ends_nothing() -> None:
    good = encode(request(1))
    newer = bytes([2]) + good[1:]
    cut = good[:-1]
    not_text = encode(request(1, client_id="ab")).replace(b"ab", b"\xff\xfe")
    no_sample = encode(request(1, sample_ppm=0))
    before_all_time = encode(request(-BEGIN - 1))
    wrong = [
        b"",
        b"\x01",
        b"\x01hello",
        cut,
        not_text,
        no_sample,
        before_all_time,
        b"\x00" + good[1:],
    ]
    values = pa.array([good, None, newer, *wrong, good], pa.binary())
    one = table([good] * len(values))
    batch = pa.RecordBatch.from_arrays([values, *one.columns[1:]], names=one.schema.names)

    parts = fold_of([batch])

    expected = {"requests_read": 2, "connections_read": 0, "newer": 1, "ahead": 0, "old": 0}
    assert {**expected, "malformed": 1 + len(wrong)} == intake_of(parts)
    assert [2] == [row["records"] for row in rows_of(REQUESTS, parts)]


def test_a_clock_that_is_far_ahead_closes_nothing() -> None:
    parts = fold_of([table([request(0), request(7200), closed(7200)], read_at=BEGIN)])

    assert 2 == intake_of(parts)["ahead"]
    assert [MINUTE] == [row["window"] for row in rows_of(REQUESTS, parts)]


def test_a_record_that_is_older_than_a_topic_keeps_is_in_no_minute() -> None:
    ages = (AGE_SECONDS_MAX, AGE_SECONDS_MAX + 1, BEGIN)
    records: list[Logged] = [*(request(-age) for age in ages), closed(-BEGIN), request(0)]

    parts = fold_of([table(records, read_at=BEGIN)])

    assert (2, 3, 0) == tuple(intake_of(parts)[n] for n in ("requests_read", "old", "malformed"))
    windows = [MINUTE - AGE_SECONDS_MAX // 60, MINUTE]
    assert windows == sorted(row["window"] for row in rows_of(REQUESTS, parts))


def test_how_old_a_record_may_be_is_a_setting() -> None:
    records = [request(0), request(-59), request(-61)]

    parts = list(folded([table(records, read_at=BEGIN)], age_max_us=60_000_000))

    assert (2, 1) == (intake_of(parts)["requests_read"], intake_of(parts)["old"])


def test_numbers_of_connections_that_cannot_be_do_not_overflow() -> None:
    huge = (1 << 64) - 1
    parts = fold_of([table([closed(0, open_us=huge, bytes_sent=huge)] * 3)])

    [row] = rows_of(CLOSES, parts)

    assert 3 * folding.CONNECTION_NUMBER_MAX == row["bytes_sent"]


def test_an_empty_batch_gives_nothing() -> None:
    assert [] == fold_of([table([])])
    assert [] == list(estimate([]))
    assert [] == list(estimate([pa.RecordBatch.from_pylist([], schema=SCHEMA)]))


def test_names_of_what_is_known_and_numbers_of_what_is_not() -> None:
    assert ("Produce", "Api 99") == (api_name(0), api_name(99))
    assert ("NOT_LEADER_OR_FOLLOWER", "NONE", "ERROR_999") == tuple(map(error_name, (6, 0, 999)))
    assert ("gone", "end 7") == (end_name(3), end_name(7))


def test_the_broker_s_time_is_without_the_wait_of_long_polls() -> None:
    times = {"local_us": 1000, "remote_us": 90_000, "total_us": 91_000}
    records = [request(1, api_key=api, **times) for api in (0, 1, 11)]

    rows = rows_of(REQUESTS, fold_of([table(records)]))

    told = {row["api_key"]: row["maxima"][TIMES.index("broker")] for row in rows}
    # The remote time of Produce is that of its replicas, and part of the work.
    assert {0: 91_000, 1: 1000, 11: 1000} == told


def test_errors_that_are_steps_of_the_protocol_have_not_failed() -> None:
    codes = {"MEMBER_ID_REQUIRED": 79, "REBALANCE_IN_PROGRESS": 27, "UNKNOWN_MEMBER_ID": 25}
    records = [request(1, api_key=11, error_code=code) for code in codes.values()]
    records += [request(1, api_key=0, error_code=79), request(1, api_key=11, end=3)]

    rows = {row["api_key"]: row for row in rows_of(REQUESTS, fold_of([table(records)]))}

    assert (4, 2) == (rows[11]["errors"], rows[11]["failed"])
    assert (1, 1) == (rows[0]["errors"], rows[0]["failed"])
