"""`python3 tests streams`: every command beside broken standard streams and signals, and kcat's.

A command has failed if its output could not be written, unless the reader of a pipe has exited; no
message that cannot be written changes what it does; nothing ends with a traceback. What kcat does
under the same conditions is printed beside it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from support.processes import SAME_TRIONET
from support.trionet_process import trionet_broker_process
from trionet.cli.main import COMMANDS

TRIONET: Final = (sys.executable, "-m", "trionet")
#: How a shell redirects a stream; None for a pipe whose reader has exited.
REDIRECTIONS: Final[Mapping[str, str | None]] = {
    "stdin closed": "<&-",
    "stdout closed": ">&-",
    "stdout full": ">/dev/full",
    "stdout ended": None,
    "stderr closed": "2>&-",
    "stderr full": "2>/dev/full",
    "stderr ended": None,
}
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGTSTP)
#: When a signal arrives, in seconds after the start: while Python starts, during the imports, and
#: while the command is at work.
STAGES: Final = (0.05, 0.15, 0.3, 0.6, 1.2)
#: The longest that a command may take.
SECONDS: Final = 60
#: The same after a signal.
SIGNAL_SECONDS: Final = 20
#: What the messages of a program that has been left by its own errors have in common.
CRASHES: Final = ("Traceback", "Exception ignored", "Fatal Python error")


class Case(NamedTuple):
    """A command line.

    Attributes:
        words: the command line.
        stdin: what it reads.
        goes_on: whether only a signal ends it.
        copies: whether its output is a copy, so that it has failed if a reader exits early.
    """

    words: Sequence[str]
    stdin: bytes = b""
    goes_on: bool = False
    copies: bool = False


class Done(NamedTuple):
    """What a command came to."""

    status: int
    out: bytes
    err: str


def started_with(condition: str, command: Sequence[str], stdin: bytes = b"") -> Done:
    """Run a command under one of :data:`REDIRECTIONS`, or none of them (empty)."""
    redirection = REDIRECTIONS.get(condition, "")
    streams: dict[str, int] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    reader, writer = os.pipe()
    os.close(reader)
    try:
        if redirection is None:
            streams[condition.partition(" ")[0]] = writer
        done = subprocess.run(
            ["sh", "-c", f'exec "$@" {redirection or ""}', "sh", *command],
            input=stdin,
            env={**os.environ, **SAME_TRIONET},
            timeout=SECONDS,
            check=False,
            **streams,  # type: ignore[call-overload]
        )
    finally:
        os.close(writer)
    return Done(done.returncode, done.stdout or b"", (done.stderr or b"").decode())


def complaint(condition: str, case: Case, usual: Done, done: Done) -> str:
    """Return what is wrong with what a command came to, compared with the usual; or nothing."""
    if found := next((each for each in CRASHES if each in done.err), ""):
        return found
    stream, _, state = condition.partition(" ")
    expected = usual.status
    if stream == "stdin" and case.stdin:
        expected = 2
    elif stream == "stdout" and usual.out and (state != "ended" or case.copies):
        expected = expected or 1
    return "" if done.status == expected else f"{done.status} instead of {expected}"


def after_signal(number: int, seconds: float, command: Sequence[str]) -> Done:
    """Start a command, and send it a signal; one that was stopped goes on, and gets Ctrl-C."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=err,
            env={**os.environ, **SAME_TRIONET},
            process_group=0,  # of this session: the system stops no group without a parent in it
        )
        with process:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(seconds)
            process.send_signal(number)
            if number == signal.SIGTSTP and process.poll() is None:
                os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
                process.send_signal(signal.SIGCONT)
                process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(SIGNAL_SECONDS)
            process.kill()  # which -9 tells of, if it was needed
        out.seek(0)
        err.seek(0)
        return Done(process.returncode, out.read(), err.read().decode())


def signal_complaint(number: int, usual: Done, done: Done) -> str:
    """Return what is wrong with what a command came to after a signal; or nothing."""
    # Until the module of the command is loaded, Python's own start and the import of the package
    # end with a message of Python's.
    is_ours = f"trionet{os.sep}__main__.py" in done.err
    if is_ours and any(each in done.err for each in CRASHES):
        return done.err.strip().splitlines()[-1]
    ended = signal.SIGINT if number == signal.SIGTSTP else number
    allowed = {usual.status, 128 + ended, -ended, *([] if is_ours else [1])}
    return "" if done.status in allowed else f"{done.status} is not in {sorted(allowed)}"


def cases(address: str) -> Iterator[Case]:
    """The command lines: every command, and the subcommands that a broker alone can serve."""
    b = ["-b", address]
    yield Case(["--help"])
    yield Case(["produce", *b, "orders"], b"a\nb\n")
    yield Case(["produce", *b, "orders", "-T"], b"a\n", copies=True)
    yield Case(["produce", *b, "orders", "-o", "%o\\n"], b"a\n", copies=True)
    yield Case(["consume", *b, "orders", "-o", ":2"])
    yield Case(["consume", *b, "orders", "-o", ":2", "--json", "-q"])
    yield Case(["consume", *b, "orders"], goes_on=True)
    yield Case(["consume", *b, "orders", "-G", "readers"], goes_on=True)
    yield Case(["decode"], b"00000013 0003 000c 00000007 0004 73686f70 00 00 01")
    yield Case(["decode", "--list"])
    yield Case(["dashboard", *b, "--once"])
    yield Case(["dashboard", *b, "--once", "--view", "topics", "--format", "json"])
    yield Case(["dashboard", *b, "--interval", "0.2"], goes_on=True)
    yield Case(["dashboard", *b, "--interval", "0.2", "--count", "1"])
    yield Case(["bench", "produce", *b, "orders", "--records", "100"])
    yield Case(["bench", "echo", "--requests", "100"])
    yield Case(["bench", "produce", *b, "orders", "--duration", "60"], goes_on=True)
    yield Case(["groups", "describe", *b, "readers", "--watch"], goes_on=True)
    yield Case(["broker", "--listen", "127.0.0.1:0", "--memory"], goes_on=True)
    yield Case(["jafka", "--listen", "127.0.0.1:0"], goes_on=True)
    yield Case(["completion", "bash"])
    yield Case(["config", "keys", "broker"])
    yield Case(["topics", "trim", *b, "--from-file", "-", "--yes"], b"orders,0,0\n")
    yield Case(["topics", "create", *b, "orders"])  # it exists: an error, and no row
    for words in SIMPLE:
        yield Case([*words.split(), *b])
    for name in COMMANDS:
        yield Case([name, "--help"])


SIMPLE: Final = (
    "topics list",
    "topics describe orders nowhere",
    "topics alter orders --partitions 1",
    "topics offsets orders",
    "topics producers orders",
    "topics delete nowhere --yes",
    "groups list",
    "groups describe readers",
    "groups reset readers -t orders --to-earliest --execute",
    "groups delete nowhere --yes",
    "configs list",
    "configs describe topic orders",
    "configs alter topic orders --set retention.ms=1000",
    "configs acls list",
    "configs users list",
    "configs quotas list",
    "cluster describe",
    "cluster log-dirs",
    "transactions list",
)


#: kcat beside those of our commands that do the same.
#: A producer of kcat's, which reads a pipe, ends by no signal: it waits for the end of the pipe.
KCAT: Final = (
    Case(["-L"]),
    Case(["-C", "-t", "orders", "-e"]),
    Case(["-P", "-t", "orders"], b"a\nb\n"),
    Case(["-C", "-t", "orders", "-q"], goes_on=True),
)


def walk_streams(shown: str, program: Sequence[str], all_cases: Sequence[Case]) -> Iterator[str]:
    """Run each command under each condition; yield what is wrong, and print a row for each."""
    for case in all_cases:
        if case.goes_on:
            continue
        command = [*program, *case.words]
        usual = started_with("", command, case.stdin)
        statuses = [str(usual.status)]
        for condition in REDIRECTIONS:
            done = started_with(condition, command, case.stdin)
            wrong = complaint(condition, case, usual, done)
            statuses.append(f"{done.status}{'!' * bool(wrong)}")
            if wrong:
                yield f"{name_of(case)}, {condition}: {wrong}"
        row(f"{shown} {name_of(case)}", statuses)


def walk_signals(shown: str, program: Sequence[str], all_cases: Sequence[Case]) -> Iterator[str]:
    """Send each signal to each command at each stage; see :func:`walk_streams`."""
    for case in all_cases:
        if case.words[-1] == "--help":
            continue
        command = [*program, *case.words]
        # What only a signal ends ends with 0 if it takes the signal for the end of its work.
        usual = Done(0, b"", "") if case.goes_on else started_with("", command)
        for number in SIGNALS:
            statuses = []
            for seconds in STAGES:
                done = after_signal(number, seconds, command)
                wrong = signal_complaint(number, usual, done)
                statuses.append(f"{done.status}{'!' * bool(wrong)}")
                if wrong:
                    yield f"{name_of(case)}, {number.name} after {seconds} s: {wrong}"
            row(f"{shown} {name_of(case)} {number.name}", statuses)


def name_of(case: Case) -> str:
    """The command line without the address of the broker."""
    words = list(case.words)
    if "-b" in words:
        place = words.index("-b")
        del words[place : place + 2]
    return " ".join(words)


def row(name: str, cells: Sequence[str]) -> None:
    """Print a row of a table."""
    print(f"| `{name}` | {' | '.join(cells)} |", flush=True)


def header(cells: Sequence[str]) -> None:
    """Print the first rows of a table."""
    print(f"\n| command | {' | '.join(cells)} |\n|{'---|' * (len(cells) + 1)}", flush=True)


def main(arguments: Sequence[str]) -> int:
    """Print the tables and what is wrong, and return 1 if something is, otherwise 0."""
    parser = argparse.ArgumentParser(prog="python3 tests streams", description=__doc__)
    parser.add_argument("only", nargs="?", default="", help="a part of the command lines to run")
    parser.add_argument("--walk", choices=["streams", "signals"], help="only one of the tables")
    options = parser.parse_args(arguments)
    complaints: list[str] = []
    with trionet_broker_process(log_level="error") as (address, _):
        started_with("", [*TRIONET, "produce", "-b", address, "orders"], b"a\nb\nc\n")
        ours = [each for each in cases(address) if options.only in name_of(each)]
        kcat = shutil.which("kcat")
        walks: dict[str, tuple[Any, Sequence[str]]] = {
            "streams": (walk_streams, ["usual", *REDIRECTIONS]),
            "signals": (walk_signals, [f"{each} s" for each in STAGES]),
        }
        for name, (walk, cells) in walks.items():
            if options.walk in (None, name):
                header(cells)
                complaints += walk("trionet", TRIONET, ours)
                if kcat is not None:  # what it does is not judged
                    list(walk("kcat", [kcat, "-b", address], KCAT))
    print("\n", *(f"{each}\n" for each in complaints), f"{len(complaints)} wrong", sep="")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
