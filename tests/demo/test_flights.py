"""The demo as a user starts it: real processes, without a terminal."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from contextlib import AbstractContextManager

import pytest

from demo.flights import ending_signals, parse
from support.flights_demo import VERDICT, running_demo, skip_without_flights
from support.process_list import children_of, commands_with
from support.processes import all_of_them_end

PLAIN_LINE = re.compile(
    r" +\d+\.\d s  2013-\d\d-\d\d \d\d:\d\d  produced \d+ \(\d+/s\)  consumed \d+ \(\d+/s\)"
    r"  lag \d+  committed \d+ \(lag \d+\)  requests/s: \w.*  in .*/s  out .*/s"
    r"  connections \d+  loop idle \d+%  request queue \d+"
)

GROUP_LINE = re.compile(
    r" {9}group of \d, generation \d+: consumer-\d+ reads .+(?:; consumer-\d+ reads .+)*"
)

skip_without_flights()
pytestmark = [pytest.mark.slow, pytest.mark.interop]


def demo(*arguments: str) -> AbstractContextManager[subprocess.Popen[str]]:
    """The running demo, without Spark."""
    return running_demo("--no-spark", *arguments)


def first_figures(process: subprocess.Popen[str]) -> str:
    """Read on to the first line of figures; the title, which is above it."""
    assert process.stdout is not None
    title, _ = process.stdout.readline(), process.stdout.readline()
    return title


def left_behind(title: str) -> list[str]:
    """The processes that were started for the broker of a run."""
    found = re.search(r"127\.0\.0\.1:\d+", title)
    assert found is not None, title
    return commands_with(found[0])


def children(process: subprocess.Popen[str]) -> dict[str, int]:
    """The process ids of a demo's producer and consumers."""
    return {
        name: pid
        for pid, command in children_of(process.pid).items()
        for name in ("producer", "consumers")
        if f"demo.{name}" in command
    }


def test_without_a_terminal_it_prints_a_line_a_second_and_ends_by_itself() -> None:
    with demo("--for", "3") as process:
        output, errors = process.communicate()
    title, *lines, replayed, answered, verdict = output.splitlines()
    figures = [line for line in lines if not GROUP_LINE.fullmatch(line)]

    assert (0, "") == (process.returncode, errors)
    assert re.fullmatch(
        r"trionet broker at 127\.0\.0\.1:\d+: 336,776 flights of 2013, at 86,400 times their speed",
        title,
    )
    assert 1 <= len(figures) <= 4  # fewer on a busy machine
    assert [] == [line for line in figures if not PLAIN_LINE.fullmatch(line)]
    assert replayed.startswith("Replayed the flights up to 2013-01-0")
    assert re.search(r"Produce \d+, .*JoinGroup \d+", answered)
    assert VERDICT.fullmatch(verdict)
    assert [] == left_behind(title)


def test_every_record_is_consumed_once_while_consumers_come_and_go() -> None:
    with demo("--change", "0.4") as process:
        assert process.stdout is not None
        generation = 0
        while generation < 4:
            line = process.stdout.readline()
            assert line, "it has ended"
            if found := re.search(r"group of \d, generation (\d+)", line):
                generation = int(found[1])
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate()

    assert (0, "") == (process.returncode, errors)
    assert VERDICT.fullmatch(output.splitlines()[-1])


@pytest.mark.soak
def test_the_whole_year_goes_through_as_fast_as_possible() -> None:
    with demo("--speed", "max") as process:
        output, errors = process.communicate()
    *_, replayed, _, verdict = output.splitlines()

    assert (0, "") == (process.returncode, errors)
    assert replayed.startswith("Replayed the flights up to 2013-12-31 23:59 in ")
    assert replayed.endswith("336776 records produced, 336776 consumed.")
    assert "Verdict: consumed == produced, record by record, for all 16 carriers." == verdict


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_with_the_summary(number: signal.Signals) -> None:
    with demo() as process:
        title = first_figures(process)
        process.send_signal(number)
        output, errors = process.communicate()

    assert (0, "") == (process.returncode, errors)
    assert VERDICT.fullmatch(output.splitlines()[-1])
    assert [] == left_behind(title)


def test_a_second_ctrl_c_ends_it_at_once() -> None:
    with demo() as process:
        title = first_figures(process)
        producer = children(process)["producer"]
        os.kill(producer, signal.SIGSTOP)  # it cannot finish its work
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        process.stdout.readline()  # it has seen the first, and still shows what happens
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()

    assert (130, "") == (process.returncode, errors)
    assert [] == left_behind(title)


def test_a_child_that_dies_is_an_error_with_its_name() -> None:
    with demo() as process:
        title = first_figures(process)
        os.kill(children(process)["consumers"], signal.SIGKILL)
        output, errors = process.communicate()

    assert 1 == process.returncode
    assert "demo: the consumers ended early, with exit status -9" == errors.strip()
    assert "Verdict" not in output
    assert [] == left_behind(title)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="no pidfd_open on this system")
def test_nothing_survives_a_demo_that_is_killed() -> None:
    with demo() as process:
        title = first_figures(process)
        started = children(process)
        with all_of_them_end(started.values()):
            process.kill()

    assert {"producer", "consumers"} == set(started)
    assert [] == left_behind(title)


@pytest.mark.parametrize("is_before_the_summary", [False, True])
def test_a_reader_that_has_seen_enough_ends_it(is_before_the_summary: bool) -> None:
    with demo() as process:
        title = first_figures(process)
        assert process.stdout is not None
        assert process.stderr is not None
        if is_before_the_summary:
            process.send_signal(signal.SIGTERM)
        process.stdout.close()
        errors = process.stderr.read()
        status = process.wait()

    assert (1, "") == (status, errors)
    assert [] == left_behind(title)


def test_a_closed_terminal_ends_it_unless_it_is_to_go_on() -> None:
    before = signal.getsignal(signal.SIGHUP)
    try:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        assert signal.SIGHUP in ending_signals()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
        assert [signal.SIGINT, signal.SIGTERM] == list(ending_signals())
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--speed", "0"], "argument --speed: '0' is not a number above 0, or max"),
        (["--speed", "fast"], "argument --speed: 'fast' is not a number above 0, or max"),
        (["--speed", "inf"], "argument --speed: 'inf' is not a number above 0, or max"),
        (["--change", "0"], "argument --change: '0' is not a number above 0"),
        (["--for", "-1"], "argument --for: '-1' is not a number above 0"),
        (["--for", "nan"], "argument --for: 'nan' is not a number above 0"),
        (["--for", ""], "argument --for: '' is not a number above 0"),
        (["--sped", "max"], "unrecognized arguments: --sped max"),
    ],
)
def test_wrong_arguments_are_reported(
    arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        parse(arguments)

    output, errors = capsys.readouterr()
    assert (2, "") == (stopped.value.code, output)
    assert f"python3 demo: error: {error}" == errors.splitlines()[-1]
