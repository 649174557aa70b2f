"""``trionet produce`` as its users start it: what is in the topic afterwards, and what is told."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from support.command_line import CommandLine
from trionet.testing import broker


def test_each_line_is_a_record(trionet: CommandLine) -> None:
    topic = trionet.topic()

    done = trionet.produce(topic, stdin=b"one coffee\n\ntwo teas")

    assert (0, b"") == (done.status, done.out)
    assert [b"one coffee", b"", b"two teas"] == [each.value for each in trionet.records(topic)]
    assert done.err.startswith("trionet produce: 3 records, 20 B in ")


def test_nothing_is_reported_where_quiet_is_wanted(trionet: CommandLine) -> None:
    assert (0, b"", "") == trionet.produce("-q", trionet.topic(), stdin=b"a\n")


def test_keys_headers_partition_and_codec(trionet: CommandLine) -> None:
    topic = trionet.topic(3)

    trionet.produce(
        topic, "-K", ":", "-H", "a=1", "-H", "b", "-p", "2", "-z", "zstd", stdin=b"k:v\nw\n"
    )

    first, second = trionet.records(topic)
    assert (2, b"k", b"v") == (first.partition, first.key, first.value)
    assert (2, None, b"w") == (second.partition, second.key, second.value)
    assert [("a", b"1"), ("b", None)] == [*first.headers]


def test_empty_values_are_tombstones_if_that_is_wanted(trionet: CommandLine) -> None:
    topic = trionet.topic()

    trionet.produce(topic, "-Z", "-K", "\\t", stdin=b"a\t\n\tb\n")

    found = [(each.key, each.value) for each in trionet.records(topic)]
    assert [(b"a", None), (None, b"b")] == found


def test_a_format_says_everything(trionet: CommandLine) -> None:
    topics = trionet.topic(2), trionet.topic()
    text = f"{topics[0]} 1 5 k=v\n{topics[1]} 0 6 k2=v2\n"

    done = trionet.produce("-f", r"%t %p %T %k=%v\n", stdin=text.encode())

    (first,) = trionet.records(topics[0])
    (second,) = trionet.records(topics[1])
    assert 0 == done.status
    assert (1, 5, b"k", b"v") == (first.partition, first.timestamp, first.key, first.value)
    assert (0, 6, b"k2", b"v2") == (second.partition, second.timestamp, second.key, second.value)


def test_a_file_is_one_record_and_a_file_of_lines_is_many(
    trionet: CommandLine, tmp_path: Path
) -> None:
    whole, lines = tmp_path / "whole", tmp_path / "lines"
    whole.write_bytes(b"a\nb\n")
    lines.write_bytes(b"c\nd")
    topic = trionet.topic()

    trionet.produce("-l", str(lines), "-l", str(lines), topic, str(whole), stdin=b"not read")

    expected = [b"c", b"d", b"c", b"d", b"a\nb\n"]
    assert expected == [each.value for each in trionet.records(topic)]


def test_so_many_records_are_sent_and_no_more(trionet: CommandLine) -> None:
    topic = trionet.topic()

    done = trionet.produce(topic, "-c", "2", "-T", stdin=b"a\nb\nc\n")

    assert (0, b"a\nb\n") == (done.status, done.out)
    assert [b"a", b"b"] == [each.value for each in trionet.records(topic)]


def test_what_was_acknowledged_is_written_where_that_is_wanted(trionet: CommandLine) -> None:
    topic = trionet.topic()

    done = trionet.produce(topic, "-K", "=", "-o", r"%t[%p]@%o %k %s\n", stdin=b"a=b\nc=d\n")

    assert f"{topic}[0]@0 a b\n{topic}[0]@1 c d\n" == done.out.decode()


def test_a_line_that_is_too_large_ends_it_after_those_before(trionet: CommandLine) -> None:
    topic = trionet.topic()
    options = ("-X", "max.request.size=2000", "-X", "batch.size=1000")

    done = trionet.produce(topic, *options, stdin=b"a\n" + b"x" * 1990 + b"\nb\n")

    assert 1 == done.status
    assert [b"a"] == [each.value for each in trionet.records(topic)]
    assert "trionet produce: record 2: " in done.err
    assert "1 record failed" in done.err


def test_those_after_a_line_that_is_too_large_are_sent_if_that_is_wanted(
    trionet: CommandLine,
) -> None:
    topic = trionet.topic()
    options = ("-E", "-X", "max.request.size=2000", "-X", "batch.size=1000")
    text = b"a\n" + b"x" * 1990 + b"\nb\n" + b"x" * 5000 + b"\nc\n"

    done = trionet.produce(topic, *options, stdin=text)

    assert 1 == done.status
    assert [b"a", b"b", b"c"] == [each.value for each in trionet.records(topic)]
    assert "record 2: " in done.err
    assert "record 4: " in done.err


def test_what_is_too_large_does_not_count(trionet: CommandLine) -> None:
    topic = trionet.topic()
    options = ("-E", "-c", "3", "-X", "max.request.size=2000", "-X", "batch.size=1000")
    text = b"a\n" + b"x" * 1990 + b"\nb\n" + b"x" * 5000 + b"\nc\nd\n"

    done = trionet.produce(topic, *options, stdin=text)

    assert 1 == done.status
    assert [b"a", b"b", b"c"] == [each.value for each in trionet.records(topic)]


def test_a_record_without_a_timestamp_gets_that_of_now(trionet: CommandLine) -> None:
    topic = trionet.topic()
    begin = time.time_ns() // 1_000_000

    done = trionet.produce(topic, "-f", r"%T %v\n", stdin=b"-1 a\n5 b\n")

    assert 0 == done.status
    first, second = trionet.records(topic)
    assert begin <= first.timestamp <= time.time_ns() // 1_000_000
    assert 5 == second.timestamp


def test_input_that_is_no_record_ends_it_after_those_before(trionet: CommandLine) -> None:
    topic = trionet.topic()

    done = trionet.produce(topic, "-s", "value=long", stdin=b"1\n2\nthree\n4\n")

    assert 1 == done.status
    assert [b"\0" * 7 + b"\1", b"\0" * 7 + b"\2"] == [each.value for each in trionet.records(topic)]
    assert "record 3: cannot encode b'three' as 'long'" in done.err


def test_a_topic_refuses_what_is_too_large_for_it(trionet: CommandLine) -> None:
    topic = trionet.topic(max_message_bytes="300")

    done = trionet.produce(topic, "-E", stdin=b"a\n" + b"x" * 1000 + b"\nb\n")

    assert 1 == done.status
    assert [b"a", b"b"] == [each.value for each in trionet.records(topic)]
    assert "record 2: " in done.err


def test_a_partition_that_there_is_not_is_reported_at_once(trionet: CommandLine) -> None:
    topic = trionet.topic(2)

    all_there = trionet.produce(topic, "-p", "2", stdin=b"a\n")
    some = trionet.produce(topic, "-E", "-f", r"%p %v\n", stdin=b"0 a\n5 b\n1 c\n")

    assert (1, 1) == (all_there.status, some.status)
    assert f"record 1: partition 2 does not exist; topic {topic} has 2 partitions" in all_there.err
    assert f"record 2: partition 5 does not exist; topic {topic} has 2 partitions" in some.err
    assert [b"a", b"c"] == [each.value for each in trionet.records(topic)]


def test_a_topic_of_the_input_that_there_cannot_be_is_reported(trionet: CommandLine) -> None:
    topic = trionet.topic()
    text = f"a/b x\n{topic} y\n z\n".encode()

    done = trionet.produce("-E", "-f", r"%t %v\n", stdin=text)

    assert 1 == done.status
    assert "record 1: topic a/b: INVALID_TOPIC_EXCEPTION" in done.err
    assert "record 3: no topic" in done.err
    assert [b"y"] == [each.value for each in trionet.records(topic)]


def test_options_may_stand_between_topic_and_files(trionet: CommandLine, tmp_path: Path) -> None:
    topic = trionet.topic()
    file = tmp_path / "whole"
    file.write_bytes(b"a")

    trionet.produce(topic, "-k", "b", str(file), "-q")

    assert [(b"b", b"a")] == [(each.key, each.value) for each in trionet.records(topic)]


def test_a_topic_that_there_is_not_is_reported_soon(trionet: CommandLine) -> None:
    done = trionet.produce("no topic", "-m", "0.2", stdin=b"a\n")

    assert 1 == done.status
    assert "topic no topic" in done.err


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("x" * 250, "has 250 characters; at most 249 are allowed"),
        ("\udcff", "cannot be encoded as UTF-8"),
        ("", "must not be empty"),
    ],
)
def test_a_topic_that_no_request_can_carry_is_a_wrong_argument(
    trionet: CommandLine, name: str, why: str
) -> None:
    for done in (trionet.produce(name, stdin=b"a\n"), trionet.consume(name)):
        assert 2 == done.status
        assert why in done.err


def test_a_broker_that_there_is_not_is_reported_soon(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    done = CommandLine("127.0.0.1:1", capfdbinary).produce("orders", "-m", "0.2", stdin=b"a\n")

    assert 1 == done.status
    assert "could not connect to 127.0.0.1:1 (bootstrap): " in done.err
    assert "after 0.2 s: no bootstrap broker could be reached; raise" in done.err


def test_a_file_that_there_is_not_is_reported(trionet: CommandLine, tmp_path: Path) -> None:
    topic = trionet.topic()

    done = trionet.produce(topic, str(tmp_path / "none"))

    assert 1 == done.status
    assert f"trionet produce: cannot read {tmp_path / 'none'}: No such file" in done.err


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("",),
        ("-t", "", "-c", "1"),
        ("t", "-K", ""),
        ("t", "-f", "%q"),
        ("t", "-f", "%v\\n", "-K", ":"),
        ("t", "-s", "z"),
        ("t", "-H", "=x"),
        ("t", "-X", "acks=2"),
        ("t", "-X", "no.such.key=2"),
        ("t", "-c", "0"),
        ("t", "-p", "x"),
        ("t", "-m", "-1"),
        ("t", "-o", "%q"),
        ("t", "--transactional-id", ""),
        ("t", "--transactional-id", "till-1", "-E"),
        ("t", "--transactional-id", "till-1", "--acks", "1"),
        ("t", "-X", "transactional.id=till-1", "-E"),
    ],
)
def test_wrong_usage_is_exit_status_2(trionet: CommandLine, arguments: tuple[str, ...]) -> None:
    done = trionet.produce(*arguments, stdin=b"a\n")

    assert 2 == done.status
    assert "trionet produce: " in done.err


def test_the_first_records_are_sent_whatever_their_topics_are(trionet: CommandLine) -> None:
    a, b = trionet.topic(), trionet.topic()
    lines = f"{a} 1\n{b} 2\n{a} 3\n{a} 4\n".encode()

    done = trionet.produce("-f", r"%t %v\n", "-c", "2", stdin=lines)

    assert 0 == done.status
    assert [b"1"] == [each.value for each in trionet.records(a)]
    assert [b"2"] == [each.value for each in trionet.records(b)]


@pytest.mark.parametrize("option", [("-K", ":"), ("-D", ","), ("-f", "%v,")])
def test_a_whole_file_is_not_divided_silently(
    trionet: CommandLine, tmp_path: Path, option: tuple[str, ...]
) -> None:
    topic = trionet.topic()
    file = tmp_path / "records"
    file.write_bytes(b"a:1,")

    done = trionet.produce(topic, str(file), *option)

    assert (2, []) == (done.status, trionet.records(topic))
    assert "-l FILE" in done.err


def test_a_whole_file_of_a_wrong_type_is_left_out_if_others_are_to_be_sent(
    trionet: CommandLine, tmp_path: Path
) -> None:
    topic = trionet.topic()
    for name, data in (("bad", b"x"), ("good", b"7")):
        (tmp_path / name).write_bytes(data)

    done = trionet.produce(
        topic, str(tmp_path / "bad"), str(tmp_path / "good"), "-s", "value=short", "-E"
    )

    assert 1 == done.status
    assert "record 1: cannot encode b'x' as 'short'" in done.err
    assert [b"\0\x07"] == [each.value for each in trionet.records(topic)]


def committed(trionet: CommandLine, topic: str) -> bytes:
    """What a reader of committed records sees."""
    return trionet.consume(topic, "-e", "--isolation", "read_committed").out


@pytest.mark.parametrize("option", [("--transactional-id", "a"), ("-X", "transactional.id=b")])
def test_all_records_are_committed_together(trionet: CommandLine, option: tuple[str, str]) -> None:
    topic = trionet.topic()

    done = trionet.produce(topic, *option, stdin=b"coffee\ntea\n")

    assert 0 == done.status
    assert done.err.startswith("trionet produce: 2 records, ")
    assert b"coffee\ntea\n" == committed(trionet, topic)


def test_a_line_that_cannot_be_sent_aborts_the_transaction(trionet: CommandLine) -> None:
    topic = trionet.topic()

    done = trionet.produce(
        topic, "--transactional-id", "till-1", "-f", r"%v %p\n", stdin=b"coffee 0\ntea 9\n"
    )

    assert 1 == done.status
    assert "record 2: partition 9 does not exist" in done.err
    assert "the transaction was aborted: none of its records is committed" in done.err
    assert "/s, not committed" in done.err
    assert b"" == committed(trionet, topic)


def test_a_record_that_a_broker_rejects_aborts_the_transaction(trionet: CommandLine) -> None:
    good, bad = trionet.topic(), trionet.topic(max_message_bytes="1000")
    lines = f"{good} coffee\n{bad} {'x' * 2000}\n".encode()

    done = trionet.produce("--transactional-id", "till-2", "-f", r"%t %v\n", stdin=lines)

    assert 1 == done.status
    assert "the transaction was aborted" in done.err
    assert b"" == committed(trionet, good)


@pytest.mark.parametrize(
    ("api", "error"),
    [("Produce", "INVALID_PRODUCER_EPOCH"), ("EndTxn", "TRANSACTION_ABORTABLE")],
)
def test_that_nothing_is_committed_is_said_also_of_a_producer_that_is_fenced(
    capfdbinary: pytest.CaptureFixture[bytes], api: str, error: str
) -> None:
    """A fenced producer learns that at its abort, and some transactions fail in their commit."""
    with broker(topics={"orders": 1}) as running:
        running.faults.fail(api, error)
        if api == "Produce":
            running.faults.fail("EndTxn", "PRODUCER_FENCED")
        trionet = CommandLine(running.bootstrap_servers, capfdbinary)

        done = trionet.produce("orders", "--transactional-id", "till-6", stdin=b"coffee\n")

    assert 1 == done.status
    assert 1 == done.err.count("the transaction was aborted: none of its records is committed")
    assert "/s, not committed" in done.err
    assert ("PRODUCER_FENCED" in done.err) is (api == "Produce")


def test_a_file_that_cannot_be_read_aborts_the_transaction(
    trionet: CommandLine, tmp_path: Path
) -> None:
    topic = trionet.topic()
    (tmp_path / "one").write_bytes(b"coffee")

    done = trionet.produce(
        topic, "--transactional-id", "till-3", str(tmp_path / "one"), str(tmp_path / "none")
    )

    assert 1 == done.status
    assert f"cannot read {tmp_path / 'none'}" in done.err
    assert b"" == committed(trionet, topic)


def test_a_timeout_that_the_brokers_do_not_allow_is_reported(trionet: CommandLine) -> None:
    topic = trionet.topic()

    done = trionet.produce(
        topic,
        "--transactional-id",
        "till-4",
        "-X",
        "transaction.timeout.ms=900001",
        stdin=b"coffee\n",
    )

    assert 1 == done.status
    assert "INVALID_TRANSACTION_TIMEOUT" in done.err
    assert b"" == committed(trionet, topic)


def test_a_broker_without_a_coordinator_is_reported_soon(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    with broker(topics={"orders": 1}) as running:
        running.faults.fail("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", times=None)
        trionet = CommandLine(running.bootstrap_servers, capfdbinary)

        done = trionet.produce(
            "orders", "--transactional-id", "till-5", "-m", "0.2", stdin=b"coffee\n"
        )

    assert 1 == done.status
    assert "no coordinator of transactional id 'till-5' from " in done.err
