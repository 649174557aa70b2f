"""`trionet groups` against a broker, with members that are there and with none.

Where a group is to begin, within what there is.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, redirect_stdout
from functools import partial
from pathlib import Path

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

import trionet
from support.command_runs import Done, Run
from trionet.cli._group_lag import (
    Group,
    TopicLag,
    committed_lag,
    document,
    partition_lags,
    summaries,
    topic_lags,
    topics,
)
from trionet.cli._group_reset import Move, moves
from trionet.cli.terminal._output import CSV, JSON, TEXT, write
from trionet.client._topic_partition import TopicPartition
from trionet.client.admin._group_descriptions import GroupDescription
from trionet.client.admin._groups import CommittedOffset
from trionet.client.network._cluster import Node
from trionet.testing import ThreadedBroker as Broker


@pytest.fixture
def b(trionet_broker: Broker) -> list[str]:
    """Where the commands connect: orders has 10 records in partition 0 and 4 in 1, payments 3."""
    trionet_broker.create_topic("orders", 2, retention_ms=-1)
    trionet_broker.create_topic("payments", 1, retention_ms=-1)
    for topic, partition, count in (("orders", 0, 10), ("orders", 1, 4), ("payments", 0, 3)):
        records = [
            {"partition": partition, "value": "x", "timestamp": 1_000_000 * (n + 1)}
            for n in range(count)
        ]
        trionet_broker.seed(topic, records)
    return ["-b", trionet_broker.bootstrap_servers]


@pytest.fixture
def billing(run: Run, b: list[str]) -> None:
    """A group without members, which has committed in both topics."""
    topics = ["-t", "orders", "-t", "payments"]

    assert (
        0 == run("groups", "reset", "billing", *topics, "--to-offset", "2", "--execute", *b).status
    )


def committed(run: Run, b: list[str], group: str = "billing") -> dict[tuple[str, int], int]:
    [document] = run("groups", "describe", group, "--json", *b).json
    return {(row["topic"], row["partition"]): row["offset"] for row in document["partitions"]}


@pytest.mark.usefixtures("billing")
def test_groups_are_listed(run: Run, b: list[str]) -> None:
    listed = run("groups", "list", *b)
    missing = run("groups", "list", "billing", "nobody", *b)
    stable = run("groups", "list", "--states", "stable", *b)
    wrong = run("groups", "list", "--types", "clasic", *b)

    assert [["billing", "classic", "Empty"]] == listed.rows == missing.rows
    assert (1, "trionet groups list: group nobody does not exist\n") == (
        missing.status,
        missing.err,
    )
    assert [] == stable.rows
    assert (2, True) == (wrong.status, "unknown type 'clasic'; allowed: classic," in wrong.err)


@pytest.mark.usefixtures("billing")
def test_the_lag_of_a_group_is_reported(run: Run, b: list[str]) -> None:
    text = run("groups", "describe", "billing", *b)
    [document] = run("groups", "describe", "billing", "--json", *b).json
    rows = list(
        csv.DictReader(io.StringIO(run("groups", "describe", "billing", "--format", "csv", *b).out))
    )

    assert (0, "") == (text.status, text.err)
    assert ("Empty", [], 11) == (document["state"], document["members"], document["lag"])
    assert [("orders", 10), ("payments", 1)] == [
        (each["topic"], each["lag"]) for each in document["topics"]
    ]
    assert {
        "topic": "orders",
        "partition": 1,
        "offset": 2,
        "start_offset": 0,
        "end_offset": 4,
        "lag": 2,
        "member": None,
        "client_id": None,
        "host": None,
        "metadata": "",
    } == document["partitions"][1]
    assert [
        ("billing", "orders", "8"),
        ("billing", "orders", "2"),
        ("billing", "payments", "1"),
    ] == [(row["group"], row["topic"], row["lag"]) for row in rows]


@pytest.mark.usefixtures("billing")
def test_one_table_may_be_asked_for(run: Run, b: list[str]) -> None:
    topics = run("groups", "describe", "billing", "--only", "topics", *b)
    summary = run("groups", "describe", "-r", ".*", "--only", "summary", "--json", *b)

    assert [["billing", "orders", "2", "0", "10"], ["billing", "payments", "1", "0", "1"]] == (
        topics.rows
    )
    assert ["billing"] == [each["group"] for each in summary.json]
    assert [11] == [each["lag"] for each in summary.json]


def test_a_group_that_is_not_there_is_reported(run: Run, b: list[str]) -> None:
    done = run("groups", "describe", "nobody", *b)

    assert (1, "") == (done.status, done.out)
    assert "group nobody: GROUP_ID_NOT_FOUND" in done.err


@pytest.mark.usefixtures("billing")
def test_watching_shows_it_again(run: Run, b: list[str]) -> None:
    watch = ["groups", "describe", "billing", "--watch", "--count", "2", "--interval", "0.1"]

    text = run(*watch, *b)
    documents = run(*watch, "--json", *b).out.splitlines()

    assert 2 == text.out.count(" UTC\n")
    assert "\x1b" not in text.out
    assert 2 == len(documents)
    assert ["billing"] == [each["group"] for each in json.loads(documents[1])]


@asynccontextmanager
async def member(broker: Broker, **settings: str) -> AsyncIterator[None]:
    """A consumer of orders in the group billing, which has its partitions."""
    async with (
        trionet.open_consumer(
            broker.bootstrap_servers,
            {"group.id": "billing", "client.id": "till", **settings},
            topics="orders",
        ) as consumer,
        trio.open_nursery() as nursery,
    ):

        async def read() -> None:
            async for _ in consumer:
                pass

        nursery.start_soon(read)
        await trio.to_thread.run_sync(broker.wait_for_group, "billing")
        yield
        nursery.cancel_scope.cancel(reason="the test is over")


async def elsewhere(run: Run, *words: str) -> Done:
    """A command line, while members go on in this loop."""
    return await trio.to_thread.run_sync(partial(run, *words))


async def test_members_are_shown_with_what_they_have(
    trionet_broker: Broker, run: Run, b: list[str]
) -> None:
    async with member(trionet_broker, **{"group.instance.id": "till-1"}):
        text = await elsewhere(run, "groups", "describe", "billing", *b)
        [document] = (await elsewhere(run, "groups", "describe", "billing", "--json", *b)).json

    assert "orders:0-1" in text.out
    assert "Stable" == document["state"]
    [one] = document["members"]
    assert ("till", "till-1", 2) == (one["client_id"], one["instance"], one["partitions"])
    assert [{"topic": "orders", "partition": n} for n in (0, 1)] == one["assignment"]
    assert {one["member"]} == {row["member"] for row in document["partitions"]}


async def test_who_has_members_is_not_reset_or_deleted(
    trionet_broker: Broker, run: Run, b: list[str]
) -> None:
    async with member(trionet_broker):
        reset = await elsewhere(
            run, "groups", "reset", "billing", "-t", "orders", "--to-earliest", "--execute", *b
        )
        deleted = await elsewhere(run, "groups", "delete", "billing", "-y", *b)
        forgotten = await elsewhere(
            run, "groups", "delete-offsets", "billing", "-t", "orders:0", "-y", *b
        )

    assert (1, 1, 1) == (reset.status, deleted.status, forgotten.status)
    assert "group billing is Stable: stop all of its members before resetting it" in reset.err
    assert "NON_EMPTY_GROUP" in deleted.err
    assert "GROUP_SUBSCRIBED_TO_TOPIC" in forgotten.err


async def test_members_are_removed(trionet_broker: Broker, run: Run, b: list[str]) -> None:
    async with member(trionet_broker):
        done = await elsewhere(run, "groups", "remove-members", "billing", "--all", "-y", *b)

    assert (0, 1) == (done.status, len(done.rows))


@pytest.mark.usefixtures("billing")
def test_a_reset_is_only_shown_unless_it_is_to_be_done(run: Run, b: list[str]) -> None:
    shown = run("groups", "reset", "billing", "--to-earliest", *b)
    before = committed(run, b)
    done = run("groups", "reset", "billing", "--to-earliest", "--execute", *b)

    expected = [["orders", "0", "2", "0"], ["orders", "1", "2", "0"], ["payments", "0", "2", "0"]]
    assert expected == shown.rows == done.rows
    assert {2} == set(before.values())
    assert "nothing was changed; use --execute to apply the reset" in shown.err
    assert {0} == set(committed(run, b).values())


@pytest.mark.usefixtures("billing")
def test_a_group_begins_where_it_is_asked_to(run: Run, b: list[str]) -> None:
    for words, expected in (
        ("--to-latest", [10, 4, 3]),
        ("--to-current", [2, 2, 2]),
        ("--to-offset 3", [3, 3, 3]),
        ("--to-offset 7", [7, 4, 3]),
        ("--shift-by 1", [3, 3, 3]),
        ("--shift-by -1", [1, 1, 1]),
        ("--shift-by -9", [0, 0, 0]),
        ("--to-time 1970-01-01T00:50", [2, 2, 2]),
        ("--to-time 1970-01-01T01:00", [3, 3, 3]),
        ("--to-time now", [10, 4, 3]),
        ("--to-earliest -t orders", [0, 0]),
        ("--to-earliest -t orders:1 -t payments", [0, 0]),
    ):
        done = run("groups", "reset", "billing", *words.split(), "--json", *b)

        assert expected == [row["offset"] for row in done.json], words


@pytest.mark.usefixtures("billing")
def test_the_time_of_a_reset_is_printed_as_it_was_understood(run: Run, b: list[str]) -> None:
    for text, understood in (
        ("1700000000", "1700000000 is 2023-11-14T22:13:20.000Z"),
        ("9999-12-31", "9999-12-31 is 9999-12-31T00:00:00.000Z, in the future"),
    ):
        shown = run("groups", "reset", "billing", "--to-time", text, *b)
        done = run("groups", "reset", "billing", "--to-time", text, "--execute", *b)

        for each in (shown, done):
            assert f"trionet groups reset: {understood}" == each.err.splitlines()[0]


@pytest.mark.usefixtures("billing")
def test_what_is_not_in_the_log_is_reported(run: Run, b: list[str]) -> None:
    done = run("groups", "reset", "billing", "--to-offset", "7", "--json", *b)

    assert ["", "7 is after the end", "7 is after the end"] == [row["note"] for row in done.json]


@pytest.mark.usefixtures("billing")
def test_a_group_may_follow_another_one(run: Run, b: list[str]) -> None:
    done = run("groups", "reset", "new", "--to-group", "billing", "-t", "orders", "--execute", *b)
    nobody = run("groups", "reset", "new", "--to-group", "nobody", "--execute", *b)

    assert 0 == done.status
    assert {("orders", 0): 2, ("orders", 1): 2} == committed(run, b, "new")
    assert (2, "") == (nobody.status, nobody.out)
    assert "group nobody has no committed offsets" in nobody.err


@pytest.mark.usefixtures("billing")
@pytest.mark.parametrize("form", ["csv", "json"])
def test_what_was_committed_comes_back_from_a_file(
    form: str, run: Run, b: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "offsets"
    file.write_text(
        run("groups", "describe", "billing", "--only", "partitions", "--format", form, *b).out
    )
    run("groups", "reset", "billing", "--to-latest", "--execute", *b)

    done = run("groups", "reset", "billing", "--to-file", str(file), "--execute", *b)

    assert 0 == done.status
    assert {2} == set(committed(run, b).values())


def test_offsets_come_from_standard_input(run: Run, b: list[str]) -> None:
    done = run(
        "groups",
        "reset",
        "new",
        "--to-file",
        "-",
        "--execute",
        *b,
        stdin="orders 0 5\norders 9 1\n",
    )

    assert (1, [["orders", "0", "-", "5"]]) == (done.status, done.rows)
    assert "orders-9: UNKNOWN_TOPIC_OR_PARTITION" in done.err


def test_partitions_of_a_topic_may_be_named_one_by_one(
    run: Run, b: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "offsets"
    file.write_text("orders 0 5\norders 1 3\npayments 0 1\n")
    from_file = ["groups", "reset", "new", "--to-file", str(file)]

    done = run(*from_file, "-t", "orders:0", "-t", "orders:1", *b)
    nothing = run(*from_file, "-t", "orders:7", *b)

    assert [["orders", "0", "-", "5"], ["orders", "1", "-", "3"]] == done.rows
    assert (2, "") == (nothing.status, nothing.out)
    assert "no offsets to reset these topics to" in nothing.err


def test_a_group_without_commits_needs_topics(run: Run, b: list[str]) -> None:
    done = run("groups", "reset", "new", "--to-latest", "--execute", *b)
    shift = run("groups", "reset", "new", "-t", "payments", "--shift-by", "1", *b)
    unknown = run("groups", "reset", "new", "-t", "nowhere", "--to-latest", *b)

    assert (2, 1, 1) == (done.status, shift.status, unknown.status)
    assert "group new has no committed offsets; name the topics" in done.err
    assert "payments-0: no committed offset to shift" in shift.err
    assert "topic nowhere: UNKNOWN_TOPIC_OR_PARTITION" in unknown.err


@pytest.mark.usefixtures("billing")
def test_a_group_forgets_and_is_deleted(run: Run, b: list[str]) -> None:
    forgotten = run("groups", "delete-offsets", "billing", "-t", "orders:1", "-y", *b)
    left = committed(run, b)
    topic = run("groups", "delete-offsets", "billing", "-t", "orders", "-y", *b)
    again = run("groups", "delete-offsets", "billing", "-t", "orders", "-y", *b)
    unasked = run("groups", "delete", "billing", *b)
    deleted = run("groups", "delete", "billing", "-y", *b)
    gone = run("groups", "delete", "billing", "-y", *b)

    assert [["orders", "1", "2"]] == forgotten.rows
    assert {("orders", 0): 2, ("payments", 0): 2} == left
    assert [["orders", "0", "2"]] == topic.rows
    assert (1, 2, 0, 1) == (again.status, unasked.status, deleted.status, gone.status)
    assert "GROUP_ID_NOT_FOUND" in gone.err
    assert [] == run("groups", "list", *b).rows


A, B, C = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
COMMITTED = {A: CommittedOffset(3), B: CommittedOffset(5), C: CommittedOffset(1)}


def test_a_partition_without_an_end_offset_makes_its_totals_unknown() -> None:
    lags = partition_lags(None, COMMITTED, {A: (0, 10), C: (0, 2)})

    assert [7, None, 1] == [each.lag for each in lags]
    assert [TopicLag("a", 2, 0, None), TopicLag("b", 1, 0, 1)] == topic_lags(lags)
    assert committed_lag(lags) is None


def test_a_partition_without_a_committed_offset_is_not_part_of_the_totals() -> None:
    lags = partition_lags(None, {**COMMITTED, B: None}, {A: (0, 10), B: (0, 9), C: (0, 2)})

    assert 8 == committed_lag(lags)
    assert committed_lag(partition_lags(None, {B: None}, {B: (0, 9)})) is None


def test_an_end_before_the_committed_offset_is_no_lag() -> None:
    assert [0] == [each.lag for each in partition_lags(None, {A: CommittedOffset(3)}, {A: (0, 2)})]


def test_an_unknown_total_is_shown_as_unknown() -> None:
    about = GroupDescription(
        "billing", "classic", "Empty", "consumer", "", (), Node(0, "127.0.0.1", 9092)
    )
    group = Group(about, partition_lags(None, COMMITTED, {A: (0, 10), C: (0, 2)}))

    def shown(form: str) -> str:
        with redirect_stdout(io.StringIO()) as out:
            write(form, topics([group]), document(group), as_csv=summaries([group]))
        return out.getvalue()

    described = json.loads(shown(JSON))
    assert described["lag"] is None
    assert [("a", None), ("b", 1)] == [(each["topic"], each["lag"]) for each in described["topics"]]
    assert [["billing", "a", "2", "0", "-"], ["billing", "b", "1", "0", "1"]] == [
        line.split() for line in shown(TEXT).splitlines()[1:]
    ]
    assert shown(CSV).endswith(",0,\n")


A, B = TopicPartition("a", 0), TopicPartition("a", 1)


def test_what_is_in_the_log_stays_and_what_is_not_is_reported() -> None:
    limits = {A: (5, 9), B: (0, 0)}

    assert [Move("a", 0, 7, 8), Move("a", 1, None, 0)] == moves({B: 0, A: 8}, {A: 7}, limits)
    assert ["3 is before the start", "6 is after the end"] == [
        move.note for move in moves({A: 3, B: 6}, {}, limits)
    ]


@settings(max_examples=30)
@given(st.integers(-5, 50), st.integers(0, 20), st.integers(0, 20))
def test_an_offset_is_always_one_of_the_log(asked: int, start: int, length: int) -> None:
    [move] = moves({A: asked}, {}, {A: (start, start + length)})

    assert start <= move.offset <= start + length
    assert (move.offset == asked) == (move.note == "")
