"""``trionet consume`` as its users start it: what it writes, where it begins and ends."""

from __future__ import annotations

import json
import socket

import pytest

from support.command_line import CommandLine


@pytest.fixture
def letters(trionet: CommandLine) -> str:
    """A topic of five records in one partition."""
    topic = trionet.topic()
    trionet.write(topic, [b"a", b"b", b"c", b"d", b"e"])
    return topic


def test_values_are_lines_up_to_the_end_and_people_see_how_many(
    trionet: CommandLine, letters: str
) -> None:
    done = trionet.run("consume", letters, "-e")

    assert (0, b"a\nb\nc\nd\ne\n") == (done.status, done.out)
    assert done.err.startswith("trionet consume: 5 records, 10 B in ")


@pytest.mark.parametrize(
    ("options", "out"),
    [
        (("-c", "2"), b"a\nb\n"),
        (("-o", "3", "-e"), b"d\ne\n"),
        (("-o", "-2", "-e"), b"d\ne\n"),
        (("-o", "+4", "-e"), b"e\n"),
        (("-o", ":2"), b"a\nb\n"),
        (("-o", "1:3"), b"b\nc\n"),
        (("-o", "3:end"), b"d\ne\n"),
        (("-o", "end", "-e"), b""),
        (("-o", "@1h:end"), b"a\nb\nc\nd\ne\n"),
        (("-o", "@:1h"), b""),
        (("-o", "s@0", "-o", "e@9999999999999"), b"a\nb\nc\nd\ne\n"),
        (("-o", "-1h", "-e"), None),
        (("-e", "-D", ","), b"a,b,c,d,e,"),
        (("-e", "-O", "-D", " "), b"0\ta 1\tb 2\tc 3\td 4\te "),
        (("-e", "-K", "=", "-Z", "-c", "1"), b"NULL=a\n"),
        (("-e", "-f", "%p:%o=%s;"), b"0:0=a;0:1=b;0:2=c;0:3=d;0:4=e;"),
    ],
)
def test_what_is_read_and_how_it_is_written(
    trionet: CommandLine, letters: str, options: tuple[str, ...], out: bytes | None
) -> None:
    done = trionet.consume(letters, *options)

    assert (2 if out is None else 0, out or b"") == (done.status, done.out)


def test_an_offset_that_is_not_there_is_reported(trionet: CommandLine, letters: str) -> None:
    done = trionet.consume(letters, "-o", "77", "-e")

    assert (0, b"") == (done.status, done.out)
    assert f"{letters} [0]: offset 77 is out of range (0 to 5); starting at 5" in done.err


def test_partitions_are_chosen_and_all_are_read_to_their_end(trionet: CommandLine) -> None:
    topic = trionet.topic(4)
    for partition in (0, 1, 3):
        trionet.write(topic, [b"%d" % partition] * 2, partition)

    some = trionet.consume(topic, "-p", "1,3", "-e")
    everything = trionet.consume(topic, "-e", "-f", "%p%s ")
    none = trionet.consume(topic, "-p", "2", "-e")
    missing = trionet.consume(topic, "-p", "4")

    assert [b"1", b"1", b"3", b"3"] == sorted(some.out.split())
    assert [b"00", b"00", b"11", b"11", b"33", b"33"] == sorted(everything.out.split())
    assert (0, b"") == (none.status, none.out)
    assert (1, b"") == (missing.status, missing.out)
    assert "partition 4 does not exist" in missing.err


@pytest.mark.parametrize("option", [("-J",), ("--json",), ("-f", "json")])
def test_json_is_a_document_a_line(
    trionet: CommandLine, letters: str, option: tuple[str, ...]
) -> None:
    done = trionet.consume(letters, "-e", *option)

    found = [json.loads(line) for line in done.out.splitlines()]
    assert [(n, value) for n, value in enumerate("abcde")] == [
        (each["offset"], each["payload"]) for each in found
    ]
    assert {1} == {each["broker"] for each in found}


def test_several_topics_and_patterns_of_topics(trionet: CommandLine) -> None:
    first, second = trionet.topic(), trionet.topic()
    trionet.write(first, [b"a"])
    trionet.write(second, [b"b"])

    by_name = trionet.consume(first, second, "-e")
    by_pattern = trionet.consume(f"^({first}|{second})$", "-e")
    whole = trionet.consume("-r", first, second, "-e")
    none = trionet.consume("^nothing-like-that", "-e")

    assert [b"a", b"b"] == sorted(by_name.out.split())
    assert [b"a", b"b"] == sorted(by_pattern.out.split())
    assert [b"a", b"b"] == sorted(whole.out.split())
    assert (1, b"") == (none.status, none.out)
    assert "no topic matches" in none.err


def test_a_group_goes_on_after_what_was_written(trionet: CommandLine, letters: str) -> None:
    group = ("-G", f"group-of-{letters}", letters)

    first = trionet.consume(*group, "-c", "2")
    second = trionet.consume(*group, "-c", "1")
    rest = trionet.consume(*group, "-e", "--lag")
    again = trionet.consume(*group, "-e")

    assert [b"a\nb\n", b"c\n", b"d\ne\n", b""] == [
        each.out for each in (first, second, rest, again)
    ]
    assert f"{letters} [0] at 5, lag 0" in rest.err


def test_who_joins_a_group_sees_what_it_waits_for_and_what_it_gets(trionet: CommandLine) -> None:
    topic = trionet.topic(4)
    trionet.write(topic, [b"a"])
    group = f"group-of-{topic}"

    told = trionet.run("consume", "-G", group, topic, "-e")
    quiet = trionet.consume("-G", group, topic, "-e")

    assert [
        f"trionet consume: waiting for group {group} to assign partitions",
        f"trionet consume: group {group} assigned {topic}:0-3",
    ] == told.err.splitlines()[:2]
    assert "" == quiet.err


def test_what_a_group_has_stored_is_where_others_may_begin(
    trionet: CommandLine, letters: str
) -> None:
    group = f"group-of-{letters}"
    trionet.consume("-G", group, letters, "-c", "2")

    done = trionet.consume(letters, "-X", f"group.id={group}", "-o", "stored", "-e")

    assert (0, b"c\nd\ne\n") == (done.status, done.out)


def test_values_are_made_of_what_was_said(trionet: CommandLine) -> None:
    topic = trionet.topic()
    trionet.write(topic, [b"\0\1", b"\0\2", b"x", b"\0\4"])

    text = trionet.consume(topic, "-s", "value=short", "-e")
    without = trionet.consume(topic, "-s", "value=short", "-e", "-E")
    documents = trionet.consume(topic, "-s", "value=short", "-e", "-J")

    assert (1, b"1\n2\n") == (text.status, text.out)
    assert f"{topic} [0] at offset 2: 1 byte, too few for 'short'" in text.err
    assert (1, b"1\n2\n4\n") == (without.status, without.out)
    found = [json.loads(line) for line in documents.out.splitlines()]
    assert [1, 2, None, 4] == [each["payload"] for each in found]
    assert "eA==" == found[2]["payload_base64"]


def test_a_group_has_read_what_was_written_in_front_of_what_cannot_be(
    trionet: CommandLine,
) -> None:
    topic = trionet.topic()
    trionet.write(topic, [b"\0\1", b"\0\2", b"x", b"\0\4"])
    command = ("-G", f"group-of-{topic}", topic, "-s", "value=short", "-e")

    first, second, without = (trionet.consume(*command, *more) for more in ((), (), ("-E",)))

    assert [(1, b"1\n2\n"), (1, b""), (1, b"4\n")] == [
        (done.status, done.out) for done in (first, second, without)
    ]
    assert f"{topic} [0] at offset 2: " in second.err


def test_what_cannot_be_read_does_not_count(trionet: CommandLine) -> None:
    topic = trionet.topic()
    trionet.write(topic, [b"x", b"\0\2", b"x", b"\0\4", b"\0\5", b"x"])
    command = (topic, "-s", "value=short", "-E", "-c", "2")

    alone = trionet.run("consume", *command)
    in_group = trionet.consume(*command, "-G", f"group-of-{topic}")
    rest = trionet.consume(topic, "-s", "value=short", "-G", f"group-of-{topic}", "-c", "1")

    assert (1, b"2\n4\n") == (alone.status, alone.out)
    assert "trionet consume: 2 records, 4 B in" in alone.err
    assert (1, b"2\n4\n") == (in_group.status, in_group.out)
    assert (0, b"5\n") == (rest.status, rest.out)


def test_a_format_that_says_nothing_counts_all_the_same(trionet: CommandLine, letters: str) -> None:
    done = trionet.run("consume", letters, "-c", "3", "-f", "%h")

    assert (0, b"") == (done.status, done.out)
    assert "trionet consume: 3 records, 0 B in" in done.err


def test_a_topic_that_there_is_not_is_reported(trionet: CommandLine) -> None:
    done = trionet.consume("nowhere", "-e")

    assert (1, b"") == (done.status, done.out)
    assert "topic nowhere does not exist" in done.err


def test_a_broker_that_there_is_not_is_reported_soon(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    command = CommandLine("127.0.0.1:1", capfdbinary)

    named = command.consume("orders", "-m", "0.2")
    pattern = command.consume("^orders", "-m", "0.2")

    for done in (named, pattern):
        assert 1 == done.status
        assert "could not connect to 127.0.0.1:1 (bootstrap): " in done.err
        assert "after 0.2 s: no bootstrap broker could be reached; raise" in done.err


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("t", "-o", "yesterday"),
        ("t", "-f", "%q"),
        ("t", "-f", "%s", "-K", ":"),
        ("t", "-f", "%s", "-J"),
        ("t", "--meta-only"),
        ("t", "-p", "x"),
        ("t", "-G", "g", "-p", "1"),
        ("t", "-G", "g", "-o", "5"),
        ("t", "-o", "stored"),
        ("t", "-X", "group.id=g"),
        ("^t", "u"),
        ("-r", "("),
        ("t", "-X", "no.such.key=1"),
        ("t", "-c", "0"),
        ("t", "-o", "s@99999999999999999999"),
        ("t", "-o", "@99999999999999999999"),
        ("t", "-o", "9" * 5000),
        ("t", "-p", "99999999999"),
    ],
)
def test_wrong_usage_is_exit_status_2(trionet: CommandLine, arguments: tuple[str, ...]) -> None:
    done = trionet.consume(*arguments)

    assert 2 == done.status
    assert "trionet consume: " in done.err


@pytest.mark.parametrize("option", [("-O",), ("-K", ":")])
def test_what_json_has_no_use_for_is_reported(
    trionet: CommandLine, letters: str, option: tuple[str, ...]
) -> None:
    done = trionet.consume(letters, "-e", "--json", *option)

    assert (2, b"") == (done.status, done.out)
    assert "--json cannot be combined with -K or -O" in done.err


@pytest.mark.slow
@pytest.mark.parametrize("topic", ["nothing-like-that", "^nothing-like-that"])
def test_a_group_that_is_to_end_does_not_wait_for_a_topic(trionet: CommandLine, topic: str) -> None:
    done = trionet.consume(topic, "-G", "waits-not", "-e")

    assert (1, b"") == (done.status, done.out)
    assert "nothing-like-that" in done.err


@pytest.mark.slow
@pytest.mark.parametrize("topic", ["orders", "^orders"])
def test_a_group_does_not_wait_for_a_broker_for_ever(trionet: CommandLine, topic: str) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        servers = f"127.0.0.1:{nobody.getsockname()[1]}"
        trionet = CommandLine(servers, trionet.capture)
        done = trionet.consume(topic, "-G", "waits-not", "-m", "0.2")

    assert (1, b"") == (done.status, done.out)
    assert "no bootstrap broker could be reached" in done.err
