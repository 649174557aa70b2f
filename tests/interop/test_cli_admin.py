"""`trionet topics`, `groups`, `configs` and `bench` at a real Kafka node."""

from __future__ import annotations

from functools import partial

import confluent_kafka
import pytest
import trio

import trionet
from support.administered_kafka import Kafka
from support.command_runs import Done, Run, runner

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def run(kafka: Kafka, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command line that connects to the node."""
    monkeypatch.setenv("TRIONET_BOOTSTRAP_SERVERS", kafka.bootstrap)
    return runner(capsys, monkeypatch)


def until(run: Run, *words: str, shows: str) -> Done:
    """A command line, again until it shows something: brokers know of changes a moment later."""
    while shows not in (done := run(*words)).out:
        pass
    return done


async def _fill(kafka: Kafka, topic: str, count: int) -> None:
    async with trionet.open_producer(kafka.bootstrap) as producer:
        for number in range(count):
            await producer.send(topic, b"%d" % number, partition=0)


def test_topics(run: Run, kafka: Kafka) -> None:
    made = run("topics", "create", "cli-a", "cli-b", "-p", "2", "-c", "retention.ms=60000")
    again = run("topics", "create", "cli-a")
    until(run, "topics", "list", "cli-a", shows="cli-a")
    trio.run(_fill, kafka, "cli-a", 5)
    offsets = run("topics", "offsets", "cli-a")
    producers = run("topics", "producers", "cli-a")
    trimmed = run("topics", "trim", "cli-a", "-p", "0", "-o", "3", "-y")
    altered = run("topics", "alter", "cli-a", "-n", "1", "-s", "cleanup.policy=delete")
    less = run("topics", "alter", "cli-a", "-p", "1")
    described = until(run, "topics", "describe", "cli-a", "--json", shows='"partition": 2')
    deleted = run("topics", "delete", "-r", "cli-b.*", "-y")

    assert [["cli-a", "2", "1"], ["cli-b", "2", "1"]] == made.rows
    assert (1, True) == (again.status, "TOPIC_ALREADY_EXISTS" in again.err)
    assert [["cli-a", "0", "0", "5", "5"], ["cli-a", "1", "0", "0", "0"]] == offsets.rows
    assert ["cli-a", "0"] == producers.rows[0][:2]
    assert [["cli-a", "0", "3"]] == trimmed.rows
    assert [["cli-a", "partitions=3,cleanup.policy"]] == altered.rows
    assert (1, True) == (less.status, "INVALID_PARTITIONS" in less.err)
    [document] = described.json
    assert (3, 5) == tuple(document["partitions"][0][key] for key in ("start_offset", "end_offset"))
    assert "60000" == document["configs"]["retention.ms"]["value"]
    assert [["cli-b"]] == deleted.rows


async def test_groups(run: Run, kafka: Kafka) -> None:
    there = partial(trio.to_thread.run_sync, run)  # a loop of its own beside this one
    await there("topics", "create", "cli-g", "-p", "2")
    while "cli-g" not in (await there("topics", "list", "cli-g")).out:
        pass
    await _fill(kafka, "cli-g", 5)
    reset = ("groups", "reset", "cli-group", "-t", "cli-g")
    shown = await there(*reset, "--to-latest")
    done = await there(*reset, "--to-offset", "2", "--execute")
    settings = {"group.id": "cli-group", "client.id": "till", "enable.auto.commit": "false"}
    async with trionet.open_consumer(kafka.bootstrap, settings, topics="cli-g") as consumer:
        await anext(aiter(consumer))
        while (described := await there("groups", "describe", "cli-group", "--json")).json[0][
            "state"
        ] != "Stable":
            pass
        refused = await there(*reset, "--to-latest", "--execute")
    removed = await there("groups", "delete-offsets", "cli-group", "-t", "cli-g:1", "-y")
    left = await there("groups", "describe", "cli-group", "--only", "partitions")
    listed = await there("groups", "list", "cli-group")
    deleted = await there("groups", "delete", "cli-group", "-y")

    assert [["cli-g", "0", "-", "5"], ["cli-g", "1", "-", "0"]] == shown.rows
    assert [["cli-g", "0", "-", "2"], ["cli-g", "1", "-", "0", "2", "is"]] == [
        row[:6] for row in done.rows
    ]
    [document] = described.json
    assert (3, "till") == (document["lag"], document["members"][0]["client_id"])
    assert (1, True) == (refused.status, "is Stable" in refused.err)
    assert [["cli-g", "1", "0"]] == removed.rows
    assert [["cli-group", "cli-g", "0", "2", "0", "5", "3"]] == [row[:7] for row in left.rows]
    assert [["cli-group", "classic", "Empty", "consumer"]] == listed.rows
    assert [["cli-group"]] == deleted.rows


def test_settings(run: Run) -> None:
    run("topics", "create", "cli-c")
    until(run, "topics", "list", "cli-c", shows="cli-c")
    for words, key, value in (
        (("topic", "cli-c"), "retention.ms", "7"),
        (("broker", "default"), "log.retention.ms", "70000000"),
        (("broker", "1"), "log.cleaner.threads", "2"),
        (("group", "cli-some"), "consumer.session.timeout.ms", "50000"),
        (("client-metrics", "cli-push"), "interval.ms", "1000"),
    ):
        altered = run("configs", "alter", *words, "-s", f"{key}={value}")
        shown = until(run, "configs", "describe", *words, "-k", key, shows=value)
        back = run("configs", "alter", *words, "--delete", key)

        assert (0, 0) == (altered.status, back.status), altered.err
        assert [words[1], key, value] == shown.rows[0][:3]
    logger = run("configs", "describe", "logger", "1").rows[0][1]
    assert 0 == run("configs", "alter", "logger", "1", "-s", f"{logger}=FATAL").status
    assert "FATAL" == run("configs", "describe", "logger", "1", "-k", logger).rows[0][2]
    assert ["broker", "1"] in run("configs", "list").rows
    refused = run("configs", "alter", "broker", "1", "-s", "node.id=7")
    assert (1, True) == (refused.status, "INVALID_REQUEST" in refused.err)


def test_quotas(run: Run) -> None:
    alice = ["-n", "user=alice", "-n", "client-id=till"]
    done = run("configs", "quotas", "alter", *alice, "-s", "producer_byte_rate=1048576")
    default = run(
        "configs", "quotas", "alter", "--default", "user", "-s", "request_percentage=50.5"
    )
    shown = until(run, "configs", "quotas", "describe", shows="<default>")
    exact = run("configs", "quotas", "describe", *alice, "--json")
    any_user = run("configs", "quotas", "describe", "--any", "user", "--strict")
    refused = run("configs", "quotas", "alter", *alice, "-s", "nonsense=1")
    for words in (alice, ["--default", "user"]):
        run(
            "configs",
            "quotas",
            "alter",
            *words,
            "--delete",
            "producer_byte_rate,request_percentage",
        )

    assert (0, 0, 1) == (done.status, default.status, refused.status)
    assert ["client-id=till,", "user=alice", "producer_byte_rate", "1048576"] in shown.rows
    assert [
        {
            "entity": {"client-id": "till", "user": "alice"},
            "quotas": {"producer_byte_rate": 1048576.0},
        }
    ] == exact.json
    assert [["user=<default>", "request_percentage", "50.5"]] == any_user.rows


def test_users(run: Run) -> None:
    done = run("configs", "users", "set", "cli-u", stdin="a password\n")
    shown = until(run, "configs", "users", "list", shows="cli-u")
    deleted = run("configs", "users", "delete", "cli-u", "-y")
    gone = run("configs", "users", "delete", "cli-u", "-y")

    assert [["cli-u", "SCRAM-SHA-512", "4096"]] == done.rows == shown.rows
    assert (0, 1) == (deleted.status, gone.status)
    assert "RESOURCE_NOT_FOUND" in gone.err


def test_access(run: Run) -> None:
    some = ["--topic", "cli-", "--pattern", "prefixed"]
    made = run(
        "configs", "acls", "create", "--allow-principal", "bob", "-o", "read,Describe", *some
    )
    shown = until(run, "configs", "acls", "list", "--topic", "cli-", shows="User:bob")
    matched = run("configs", "acls", "list", "--topic", "cli-x", "--pattern", "match")
    unasked = run("configs", "acls", "delete", *some)
    deleted = run("configs", "acls", "delete", *some, "-o", "read", "-y")
    run("configs", "acls", "delete", *some, "-y")
    none = run("configs", "acls", "delete", *some, "-y")

    rows = [
        ["TOPIC", "cli-", "PREFIXED", "User:bob", "*", operation, "ALLOW"]
        for operation in ("DESCRIBE", "READ")
    ]
    assert rows == made.rows == shown.rows == matched.rows
    assert (2, 0, 1) == (unasked.status, deleted.status, none.status)
    assert rows[1:] == deleted.rows
    assert "no matching ACLs" in none.err


def test_who_may_not_gets_an_error(run: Run, kafka: Kafka) -> None:
    secured = ["-b", kafka.secured, "-X", "security.protocol=SASL_PLAINTEXT"]
    secured += ["-X", "sasl.mechanisms=PLAIN"]
    bob = [*secured, "-X", "sasl.username=bob", "-X", "sasl.password=secret"]
    wrong = [*secured, "-X", "sasl.username=bob", "-X", "sasl.password=wrong"]

    create = run("topics", "create", "cli-n", *bob)
    groups = run("groups", "describe", "cli-n", *bob)
    brokers = run("configs", "describe", "broker", "1", *bob)
    outside = run("topics", "list", *wrong)

    assert [1] * 4 == [each.status for each in (create, groups, brokers, outside)]
    assert "TOPIC_AUTHORIZATION_FAILED" in create.err
    assert "GROUP_AUTHORIZATION_FAILED" in groups.err
    assert "CLUSTER_AUTHORIZATION_FAILED" in brokers.err
    assert "uthenticat" in outside.err
    assert 0 == run("topics", "list", *bob).status


def test_the_cluster(run: Run) -> None:
    run("topics", "create", "cli-l")
    until(run, "topics", "list", "cli-l", shows="cli-l")
    described = run("cluster", "describe", "--features", "--quorum", "--json")
    folders = run("cluster", "log-dirs", "--json")
    own = run("cluster", "log-dirs", "cli-l", "--partitions", "--json")
    elected = run("cluster", "elect-leaders", "cli-l", "cli-l:0")
    unknown = run("cluster", "elect-leaders", "cli-l:7")

    assert 0 == described.status
    assert [1] == [each["id"] for each in described.json["brokers"]]
    assert "metadata.version" in [each["feature"] for each in described.json["features"]]
    assert "leader" in [each["role"] for each in described.json["quorum"]]
    assert 2 == len(folders.json)
    assert [("cli-l", 0, 0)] == [
        (row["topic"], row["partition"], row["offset_lag"]) for row in own.json
    ]
    assert [["cli-l", "0", "false"]] == elected.rows
    assert (1, True) == (unknown.status, "UNKNOWN_TOPIC_OR_PARTITION" in unknown.err)


def test_transactions(run: Run, kafka: Kafka) -> None:
    run("topics", "create", "cli-t")
    until(run, "topics", "list", "cli-t", shows="cli-t")
    settings = {"bootstrap.servers": kafka.bootstrap, "transactional.id": "cli-till"}
    producer = confluent_kafka.Producer(settings)
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("cli-t", b"x")
    producer.flush(30)

    listed = until(run, "transactions", "list", "--states", "Ongoing", shows="cli-till")
    [described] = run("transactions", "describe", "cli-till", "--json").json
    [state] = run("topics", "producers", "cli-t", "--json").json
    committed = run("topics", "offsets", "cli-t", "--read-committed")
    hanging = run("transactions", "find-hanging", "--topic", "cli-t")
    unasked = run("transactions", "abort", "cli-till")
    none = run("transactions", "abort-hanging", "cli-t:0", "--start-offset", "7", "-y")
    aborted = run("transactions", "abort", "cli-till", "-y")
    unknown = run("transactions", "describe", "cli-nobody")

    assert ["cli-till", str(state["producer_id"]), "Ongoing"] in listed.rows
    assert ("Ongoing", ["cli-t-0"]) == (described["state"], described["partitions"])
    assert 0 == state["transaction_start"]
    assert [["cli-t", "0", "0", "0", "0"]] == committed.rows
    assert (0, []) == (hanging.status, hanging.rows)
    assert (2, 1, 0, 1) == (unasked.status, none.status, aborted.status, unknown.status)
    assert "TRANSACTIONAL_ID_NOT_FOUND" in unknown.err
    until(run, "topics", "offsets", "cli-t", "--read-committed", shows="2")


def test_bench(run: Run) -> None:
    run("topics", "create", "cli-bench", "-p", "3")
    options = ("--json", "--reporting-interval=0")
    written = run("bench", "produce", "cli-bench", "--records=2000", "--throughput=4000", *options)
    read = run("bench", "consume", "cli-bench", *options)
    by_group = run("bench", "consume", "cli-bench", "-G", "bench", "--records=2000", *options)

    assert (0, 2000, 0) == (written.status, written.json["records"], written.json["failed"])
    assert 2000 == sum(each["count"] for each in written.json["histogram"])
    assert [(0, 2000), (0, 2000)] == [
        (each.status, each.json["records"]) for each in (read, by_group)
    ]
