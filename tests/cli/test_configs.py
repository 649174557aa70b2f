"""`trionet configs` against our broker; what only Apache Kafka serves is in tests/interop."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path

import pytest

from support.command_runs import Run
from trionet.cli.main import main
from trionet.testing import ThreadedBroker as Broker


@pytest.fixture
def b(trionet_broker: Broker) -> list[str]:
    trionet_broker.create_topic("orders")
    return ["-b", trionet_broker.bootstrap_servers]


def of_topic(key: str, value: str, source: str) -> list[str]:
    """A row of the settings of the topic orders."""
    return ["orders", key, value, source]


#: What a new cluster takes over from its first broker, for all brokers and so for all topics.
FOR_ALL = ("min.insync.replicas", "1", "DYNAMIC_DEFAULT_BROKER")


def test_a_setting_of_a_topic_is_set_shown_and_taken_back(run: Run, b: list[str]) -> None:
    altered = run("configs", "alter", "topic", "orders", "-s", "retention.ms=7", *b)
    shown = run("configs", "describe", "topic", "orders", *b)
    back = run("configs", "alter", "topic", "orders", "--delete", "retention.ms", *b)
    left = run("configs", "describe", "topic", "orders", "-k", "retention.ms", *b)

    assert [["orders", "retention.ms"]] == altered.rows
    own = of_topic("retention.ms", "7", "DYNAMIC_TOPIC")
    assert [of_topic(*FOR_ALL), own] == shown.rows
    assert [["orders", "-retention.ms"]] == back.rows
    assert [["orders", "retention.ms", "604800000", "DEFAULT"]] == left.rows


def test_settings_of_one_broker_and_of_all(run: Run, b: list[str]) -> None:
    run("configs", "alter", "broker", "default", "-s", "message.max.bytes=7000", *b)
    run("configs", "alter", "broker", "1", "-s", "num.io.threads=9", *b)

    default = run("configs", "describe", "broker", "default", *b)
    own = run("configs", "describe", "broker", "-k", "num.io.threads", "--synonyms", "--json", *b)

    altered = ["default", "message.max.bytes", "7000", "DYNAMIC_DEFAULT_BROKER"]
    assert [altered, ["default", *FOR_ALL]] == default.rows
    [entry] = own.json
    assert ("1", "9", "DYNAMIC_BROKER") == (entry["name"], entry["value"], entry["source"])
    assert "DYNAMIC_BROKER:num.io.threads=9" == entry["synonyms"][0]


def test_lists_are_appended_to(run: Run, b: list[str]) -> None:
    alter = ["configs", "alter", "topic", "orders"]
    run(*alter, "--set", "cleanup.policy=delete", *b)
    run(*alter, "--append", "cleanup.policy=compact", *b)
    both = run("configs", "describe", "topic", "orders", "--json", *b).json
    run(*alter, "--subtract", "cleanup.policy=delete", *b)
    one = run("configs", "describe", "topic", "orders", "--json", *b).json

    assert ["delete,compact", "compact"] == [both[0]["value"], one[0]["value"]]


def test_settings_come_from_a_file_and_options_win(run: Run, b: list[str], tmp_path: Path) -> None:
    file = tmp_path / "topic.properties"
    file.write_text("retention.ms=5\nsegment.ms=60000\n")

    done = run("configs", "alter", "topic", "orders", "-f", str(file), "-s", "retention.ms=6", *b)
    rows = run("configs", "describe", "topic", "orders", *b).rows

    assert 0 == done.status
    own = [of_topic("retention.ms", "6", "DYNAMIC_TOPIC")]
    own.append(of_topic("segment.ms", "60000", "DYNAMIC_TOPIC"))
    assert [of_topic(*FOR_ALL), *own] == rows


def test_a_level_of_a_logger_is_changed(run: Run, b: list[str]) -> None:
    done = run("configs", "alter", "logger", "1", "-s", "trionet.request=ERROR", *b)
    rows = run("configs", "describe", "logger", "1", "-k", "trionet.request", *b).rows
    back = run("configs", "alter", "logger", "1", "--unset", "trionet.request", *b)

    assert (0, 0) == (done.status, back.status)
    assert [["1", "trionet.request", "ERROR", "DYNAMIC_BROKER_LOGGER"]] == rows


def test_what_has_settings_is_listed(run: Run, b: list[str]) -> None:
    run("configs", "alter", "topic", "orders", "-s", "retention.ms=7", *b)

    assert ["topic", "orders"] in run("configs", "list", *b).rows
    assert [["topic", "orders"]] == run("configs", "list", "topic", *b).rows


def test_a_secret_is_not_shown(run: Run, b: list[str]) -> None:
    rows = list(
        csv.DictReader(
            io.StringIO(run("configs", "describe", "broker", "-a", "--format", "csv", *b).out)
        )
    )
    text = run("configs", "describe", "broker", "-k", "ssl.key.password", *b)

    assert {"true", "false"} == {row["sensitive"] for row in rows}
    assert [["1", "ssl.key.password", "(hidden)", "DEFAULT"]] == text.rows


def test_what_is_refused_is_reported(run: Run, b: list[str]) -> None:
    value = run("configs", "alter", "topic", "orders", "nowhere", "-s", "retention.ms=x", *b)
    static = run("configs", "alter", "broker", "1", "-s", "node.id=7", *b)
    unknown = run("configs", "describe", "topic", "nowhere", *b)
    broker = run("configs", "describe", "broker", "77", *b)

    assert [1, 1, 1, 1] == [each.status for each in (value, static, unknown, broker)]
    assert "orders: INVALID_CONFIG" in value.err
    assert "nowhere: " in value.err
    assert "1: INVALID_REQUEST" in static.err
    assert "nowhere: UNKNOWN_TOPIC_OR_PARTITION" in unknown.err
    assert "77" in broker.err


def test_a_dry_run_changes_nothing(run: Run, b: list[str]) -> None:
    done = run("configs", "alter", "topic", "orders", "-s", "retention.ms=7", "-d", *b)

    assert (0, [["orders", "retention.ms"]]) == (done.status, done.rows)
    assert [of_topic(*FOR_ALL)] == run("configs", "describe", "topic", "orders", *b).rows


def test_standard_input_that_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    writable = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
    with open(writable, encoding="utf-8") as unreadable:
        monkeypatch.setattr("sys.stdin", unreadable)
        status = main(["configs", "users", "set", "alice", "-b", "127.0.0.1:1"])

    assert 2 == status
    assert "cannot read standard input: Bad file descriptor" in capsys.readouterr().err


def test_what_a_broker_does_not_serve_is_reported(run: Run, b: list[str]) -> None:
    for words in (["quotas", "describe"], ["users", "list"]):
        done = run("configs", *words, *b)

        assert (1, "") == (done.status, done.out)
        assert "the broker does not support" in done.err


def test_a_broker_without_an_authorizer_says_so(run: Run, b: list[str]) -> None:
    listed = run("configs", "acls", "list", *b)
    created = run(
        "configs", "acls", "create", "--topic", "t", "--allow-principal", "User:alice", *b
    )

    for done in (listed, created):
        assert (1, "") == (done.status, done.out)
        assert "No Authorizer is configured" in done.err
