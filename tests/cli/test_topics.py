"""`trionet topics` against a broker."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime
from pathlib import Path

import pytest

from support.command_runs import Run
from trionet.testing import ThreadedBroker as Broker


@pytest.fixture
def b(trionet_broker: Broker) -> list[str]:
    """Where the commands connect."""
    return ["-b", trionet_broker.bootstrap_servers]


def test_a_topic_is_made_listed_and_deleted(run: Run, b: list[str]) -> None:
    made = run("topics", "create", "orders", "payments", "-p", "3", "-s", "retention.ms=60000", *b)
    listed = run("topics", "list", *b)
    deleted = run("topics", "delete", "orders", "--yes", *b)
    left = run("topics", "list", "--json", *b)

    assert (0, "") == (made.status, made.err)
    assert [["orders", "3", "1"], ["payments", "3", "1"]] == made.rows == listed.rows
    assert [["orders"]] == deleted.rows
    assert ["payments"] == [each["name"] for each in left.json]
    assert {"name", "partitions", "replicas", "id", "internal"} == set(left.json[0])


def test_one_that_is_there_is_an_error_unless_that_is_well(run: Run, b: list[str]) -> None:
    run("topics", "create", "orders", *b)

    again = run("topics", "create", "orders", "others", *b)
    unless = run("topics", "create", "orders", "--if-not-exists", *b)

    assert 1 == again.status
    assert [["others", "1", "1"]] == again.rows
    assert "trionet topics create: topic orders: TOPIC_ALREADY_EXISTS" in again.err
    assert (0, []) == (unless.status, unless.rows)
    assert "trionet topics create: topic orders already exists\n" == unless.err


def test_only_why_is_reported_where_all_has_failed(run: Run, b: list[str]) -> None:
    for command in (["list"], ["describe"], ["offsets"], ["delete", "--yes"]):
        done = run("topics", *command, "nowhere", *b)

        assert (1, "") == (done.status, done.out)
        assert "topic nowhere: UNKNOWN_TOPIC_OR_PARTITION" in done.err


def test_a_dry_run_changes_nothing(run: Run, b: list[str]) -> None:
    done = run("topics", "create", "orders", "--dry-run", *b)

    assert 0 == done.status
    assert "nothing was changed" in done.err
    assert [] == run("topics", "list", *b).rows


def test_what_is_refused_is_reported(run: Run, b: list[str]) -> None:
    name = run("topics", "create", "no/name", *b)
    config = run("topics", "create", "orders", "-c", "retention.mss=1", *b)

    assert "INVALID_TOPIC_EXCEPTION" in name.err
    assert "INVALID_CONFIG" in config.err
    assert (1, 1) == (name.status, config.status)


def test_a_topic_is_described(run: Run, b: list[str]) -> None:
    run("topics", "create", "orders", "-p", "2", "-c", "retention.ms=60000", *b)

    text = run("topics", "describe", "orders", *b)
    [document] = run("topics", "describe", "--json", *b).json
    rows = list(csv.DictReader(io.StringIO(run("topics", "describe", "--format", "csv", *b).out)))

    assert 0 == text.status
    assert "retention.ms  60000  DYNAMIC_TOPIC" in text.out
    assert {"retention.ms": {"value": "60000", "source": "DYNAMIC_TOPIC"}} == document["configs"]
    assert [0, 1] == [each["partition"] for each in document["partitions"]]
    assert {
        "partition": 0,
        "leader": 1,
        "leader_epoch": 0,
        "replicas": [1],
        "in_sync": [1],
        "offline": [],
        "start_offset": 0,
        "end_offset": 0,
    } == document["partitions"][0]
    assert ["orders", "orders"] == [row["topic"] for row in rows]


def test_how_a_compacted_topic_is_cleaned_is_described(
    trionet_broker: Broker, run: Run, b: list[str]
) -> None:
    run("topics", "create", "table", "-c", "cleanup.policy=compact", *b)
    run("topics", "create", "orders", *b)
    trionet_broker.seed("table", [{"key": "k", "value": f"{number}"} for number in range(10)])
    trionet_broker.compact("table")

    text = run("topics", "describe", "table", *b)
    both = {each["name"]: each for each in run("topics", "describe", "--json", *b).json}

    assert "BYTES-BEFORE" in text.out
    assert [] == both["orders"]["compaction"]
    [cleaned] = both["table"]["compaction"]
    assert (0, 0, 10, 1, None) == tuple(
        cleaned[name]
        for name in ("partition", "dirty_ratio", "records_before", "records_after", "uncleanable")
    )
    assert cleaned["bytes_after"] < cleaned["bytes_before"]
    assert cleaned["cleaned"].startswith("20")


def test_all_settings_are_shown_if_asked_for(run: Run, b: list[str]) -> None:
    run("topics", "create", "orders", *b)

    done = run("topics", "describe", "orders", "--configs", "--json", *b)

    assert "segment.bytes" in done.json[0]["configs"]


def test_partitions_that_are_well_are_left_out(run: Run, b: list[str]) -> None:
    run("topics", "create", "orders", *b)

    assert [] == run("topics", "describe", "--only", "under-replicated", "--json", *b).json
    assert [] == run("topics", "describe", "--only", "unavailable", "--json", *b).json
    assert 1 == len(run("topics", "describe", "--only", "at-min-isr", "--json", *b).json)


def test_a_topic_that_is_not_there_is_reported_beside_the_others(run: Run, b: list[str]) -> None:
    run("topics", "create", "orders", *b)

    for command in (["list"], ["describe"], ["offsets"]):
        done = run("topics", *command, "orders", "nowhere", *b)

        assert 1 == done.status
        assert "orders" in done.out
        assert "topic nowhere: UNKNOWN_TOPIC_OR_PARTITION" in done.err


def test_names_may_be_expressions(run: Run, b: list[str]) -> None:
    run("topics", "create", "orders-1", "orders-2", "others", *b)

    found = run("topics", "list", "-r", "orders-.*", "o.*s", *b)
    wrong = run("topics", "list", "-r", "(", *b)

    assert ["orders-1", "orders-2", "others"] == [row[0] for row in found.rows]
    assert 2 == wrong.status
    assert "invalid regular expression '('" in wrong.err


def test_a_topic_grows_and_is_set(run: Run, b: list[str]) -> None:
    run("topics", "create", "orders", "-p", "2", *b)

    grown = run("topics", "alter", "orders", "-p", "4", "-s", "retention.ms=5", *b)
    more = run("topics", "alter", "orders", "--add-partitions", "1", "--delete", "retention.ms", *b)

    assert [["orders", "partitions=4,retention.ms"]] == grown.rows
    assert [["orders", "partitions=5,-retention.ms"]] == more.rows
    [document] = run("topics", "describe", "orders", "--json", *b).json
    assert (5, {}) == (len(document["partitions"]), document["configs"])


def test_if_one_change_is_refused_none_is_made(run: Run, b: list[str]) -> None:
    run("topics", "create", "orders", "-p", "2", *b)

    done = run("topics", "alter", "orders", "-p", "1", "-s", "retention.ms=5", *b)

    assert (1, []) == (done.status, done.rows)
    assert "INVALID_PARTITIONS" in done.err
    assert {} == run("topics", "describe", "orders", "--json", *b).json[0]["configs"]


def test_a_dry_run_of_a_change_changes_nothing(run: Run, b: list[str]) -> None:
    run("topics", "create", "orders", *b)

    done = run("topics", "alter", "orders", "-n", "1", "--set", "retention.ms=5", "-d", *b)

    assert (0, [["orders", "partitions=2,retention.ms"]]) == (done.status, done.rows)
    [document] = run("topics", "describe", "orders", "--json", *b).json
    assert (1, {}) == (len(document["partitions"]), document["configs"])


def test_nothing_to_change_is_reported(run: Run, b: list[str]) -> None:
    done = run("topics", "alter", "orders", *b)

    assert (2, "") == (done.status, done.out)
    assert "nothing to change" in done.err


def test_nothing_is_deleted_unasked(run: Run, b: list[str]) -> None:
    run("topics", "create", "orders", *b)

    done = run("topics", "delete", "orders", *b, stdin="y\n")

    assert 2 == done.status
    assert "pass --yes" in done.err
    assert [["orders", "1", "1"]] == run("topics", "list", *b).rows


def test_what_is_gone_already_may_be_well(run: Run, b: list[str]) -> None:
    error = run("topics", "delete", "orders", "-y", *b)
    well = run("topics", "delete", "orders", "-y", "--if-exists", *b)
    none = run("topics", "delete", "-r", "o.*", "-y", *b)

    assert (1, 0, 1) == (error.status, well.status, none.status)
    assert "UNKNOWN_TOPIC_OR_PARTITION" in error.err
    assert "topic orders does not exist" in well.err
    assert "no topic matches" in none.err


@pytest.fixture
def filled(trionet_broker: Broker, run: Run, b: list[str]) -> None:
    """Partition 0 of orders has ten records of the years 2001 to 2010, partition 1 none."""
    run("topics", "create", "orders", "-p", "2", "-c", "retention.ms=-1", *b)
    trionet_broker.seed(
        "orders",
        [{"partition": 0, "value": "x", "timestamp": _ms(year)} for year in range(2001, 2011)],
    )


def _ms(year: int) -> int:
    return round(datetime(year, 6, 1, tzinfo=UTC).timestamp() * 1000)


@pytest.mark.usefixtures("filled")
def test_offsets_are_reported(run: Run, b: list[str]) -> None:
    limits = run("topics", "offsets", "orders", *b)
    at = run("topics", "offsets", "orders", "-p", "0", "-t", "2003-01-01", *b)
    late = run("topics", "offsets", "orders", "-p", "0", "-t", "2020-01-01", *b)
    last = run("topics", "offsets", "orders", "-p", "0", "-t", "max-timestamp", *b)
    recent = run("topics", "offsets", "orders", "-p", "0", "-t", "-1h", *b)

    assert [["orders", "0", "0", "10", "10"], ["orders", "1", "0", "0", "0"]] == limits.rows
    assert [["orders", "0", "2", "2003-06-01T00:00:00.000Z"]] == at.rows
    assert [["orders", "0", "-", "-"]] == late.rows == recent.rows
    assert [["orders", "0", "9", "2010-06-01T00:00:00.000Z"]] == last.rows


@pytest.mark.usefixtures("filled")
def test_a_partition_that_is_not_there_is_reported(run: Run, b: list[str]) -> None:
    done = run("topics", "offsets", "orders", "-p", "0,7", *b)

    assert (1, 1) == (done.status, len(done.rows))
    assert "orders-7: UNKNOWN_TOPIC_OR_PARTITION" in done.err


@pytest.mark.usefixtures("filled")
def test_records_are_trimmed(run: Run, b: list[str], tmp_path: Path) -> None:
    file = tmp_path / "offsets.csv"
    file.write_text("topic,partition,offset\norders,0,8\n")

    by_time = run("topics", "trim", "orders", "-o", "@2003-01-01", "-y", *b)
    assert "trionet topics trim: 2003-01-01 is 2003-01-01T00:00:00.000Z\n" == by_time.err
    by_offset = run("topics", "trim", "orders", "-p", "0", "-o", "5", "-y", *b)
    by_file = run("topics", "trim", "--from-file", str(file), "-y", *b)
    to_end = run("topics", "trim", "orders", "-o", "end", "-y", *b)

    assert [["orders", "0", "2"], ["orders", "1", "0"]] == by_time.rows
    assert [["orders", "0", "5"]] == by_offset.rows
    assert [["orders", "0", "8"]] == by_file.rows
    assert [["orders", "0", "10"], ["orders", "1", "0"]] == to_end.rows


@pytest.mark.usefixtures("filled")
def test_an_offset_that_is_not_there_is_refused(run: Run, b: list[str]) -> None:
    done = run("topics", "trim", "orders", "-p", "0", "-o", "11", "-y", *b)

    assert (1, []) == (done.status, done.rows)
    assert "OFFSET_OUT_OF_RANGE" in done.err
