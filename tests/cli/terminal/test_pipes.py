"""``trionet produce`` and ``consume`` as processes; tests/interop/test_cli_pipes.py has more."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from support.command_line import SECONDS, CommandLine, ended, feed, lines_from, started
from trionet.testing import broker

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with broker() as running:
        yield running.bootstrap_servers


@pytest.fixture
def trionet(bootstrap: str, capfdbinary: pytest.CaptureFixture[bytes]) -> CommandLine:
    return CommandLine(bootstrap, capfdbinary)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_line_that_is_typed_is_sent_at_once_and_a_signal_ends_it(
    trionet: CommandLine, number: signal.Signals
) -> None:
    topic = trionet.topic()

    with started(trionet, "produce", topic, "-o", r"%o %s\n") as process:
        feed(process, b"a\nb\nnot yet a line")
        assert [b"0 a\n", b"1 b\n"] == lines_from(process, 2)
        process.send_signal(number)
        process.wait(SECONDS)  # before its input ends
        status, out, err = ended(process)

    assert (128 + number, b"") == (status, out)
    assert "not sent: 14 bytes of an incomplete record" in err
    assert "2 records" in err
    assert [b"a", b"b"] == [each.value for each in trionet.records(topic)]


def test_a_signal_aborts_the_transaction(trionet: CommandLine) -> None:
    topic = trionet.topic()

    options = ("--transactional-id", "till-1", "-o", r"%o %s\n")
    with started(trionet, "produce", topic, *options) as process:
        feed(process, b"a\n")
        assert [b"0 a\n"] == lines_from(process, 1)  # acknowledged, but not committed
        process.send_signal(signal.SIGINT)
        process.wait(SECONDS)
        status, _, err = ended(process)

    assert 128 + signal.SIGINT == status
    assert "the transaction was aborted: none of its records is committed" in err
    assert b"" == trionet.consume(topic, "-e", "--isolation", "read_committed").out


def test_a_second_command_with_the_transactional_id_fences_the_first(trionet: CommandLine) -> None:
    topic = trionet.topic()

    options = ("--transactional-id", "till-2", "-o", r"%o %s\n")
    with started(trionet, "produce", topic, *options) as process:
        feed(process, b"a\n")
        assert [b"0 a\n"] == lines_from(process, 1)
        second = trionet.produce(topic, "--transactional-id", "till-2", stdin=b"b\n")
        status, _, err = ended(process)

    assert 0 == second.status
    assert 1 == status
    assert "another one with transactional.id 'till-2' has been opened" in err
    assert b"b\n" == trionet.consume(topic, "-e", "--isolation", "read_committed").out


def test_what_is_no_longer_read_is_not_committed(trionet: CommandLine) -> None:
    topic = trionet.topic()
    values = [b"%0100d" % number for number in range(30_000)]
    trionet.write(topic, values)

    with started(trionet, "consume", "-q", "-G", topic, topic) as process:
        assert process.stdout is not None
        found = [process.stdout.readline() for _ in range(10)]
        process.stdout.close()
        status = process.wait(SECONDS)
        assert process.stderr is not None
        err = process.stderr.read()

    assert [value + b"\n" for value in values[:10]] == found
    assert (0, b"") == (status, err)
    again = trionet.consume("-G", topic, topic, "-c", "1").out
    assert int(again) <= 20_000
