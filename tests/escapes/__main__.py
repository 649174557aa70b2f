"""`python3 tests escapes`: every command, view and log beside strangers with hostile names.

Each runs on a terminal of its own, in each of its formats. A terminal must get nothing from the
strangers that it would obey, and no line that one of them has begun.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from escapes import strangers
from support.escapes import FORGED, ON_THE_WIRE, leaks, raw_payloads, terminal_output
from support.processes import SAME_TRIONET, first_line, running
from support.trionet_process import trionet_broker_process
from trionet.dashboard._once import ONCE_FORMS
from trionet.dashboard.drawing._export import TABLE_FORMS
from trionet.dashboard.views import VIEWS

TRIONET = (sys.executable, "-m", "trionet")
#: A setting, and a folder, can hold no NUL.
NAME = "".join(ON_THE_WIRE).replace("\x00", "")
FOLDER = f"data\x1b]0;title\x07\n{FORGED}\x9b2J\u202e"
SETTINGS = {
    "broker.rack": NAME,
    "group.initial.rebalance.delay.ms": "0",
    "metrics.listener": "http://127.0.0.1:0",
}
#: The views that list names of all strangers.
NAMES = {"connections", "groups", "transactions"}
#: Commands that print a table, JSON or CSV.
TABLES = (
    "topics list",
    "topics describe --configs",
    "topics offsets orders",
    "topics producers orders",
    "groups list",
    "groups describe -r .*",
    "groups describe -r .* --only members",
    "configs list",
    "configs describe broker 0 --all --synonyms --documentation",
    "cluster describe --features --quorum",
    "cluster log-dirs --partitions",
    "transactions list",
    "transactions find-hanging --broker-id 0",
)
#: Commands that print records, whose lines are theirs.
RECORDS = (
    "consume hostile -e",
    "consume hostile -e --json",
    "consume hostile -e -f %t:%k:%s:%h\\n",
    "consume log-results -e",
)


def commands(address: str, folder: Path) -> Iterator[tuple[str, list[str]]]:
    """What is looked at: what it is called, and its arguments."""
    for text in TABLES:
        for form in ("text", "json", "csv"):
            yield f"{text} --format {form}", [*text.split(), "--format", form, "-b", address]
    for text in RECORDS:
        yield text, [*text.split(), "-b", address]
    names = [name for name in ON_THE_WIRE if "\x00" not in name]
    for words in (["groups", "describe"], ["transactions", "describe"], ["topics", "describe"]):
        yield f"{' '.join(words)} NAME", [*words, *names, "-b", address]
    every = ["configs", "alter", "topic", "orders", "--set", f"retention.ms={NAME}"]
    yield "an error of a setting", [*every, "-b", address]
    for view in VIEWS:
        # A picture is what a screen shows.
        for form in ONCE_FORMS if view is VIEWS[0] else ("text", *TABLE_FORMS):
            words = ["dashboard", address, "--once", "--view", view.name, "--format", form]
            yield " ".join(words[2:]), words
    yield "figures", ["dashboard", address, "--interval", "0.2", "--count", "2"]
    segments = sorted(folder.rglob("orders-*/*.log"))
    yield "decode", ["decode", "--batches", *map(str, segments)]
    yield "no file", ["decode", f"{folder}/{NAME[:60]}"]
    yield "altered settings", ["broker", "--data", str(folder), "--describe-altered-settings"]


@contextlib.contextmanager
def visited_broker(folder: Path, log: Path) -> Iterator[str]:
    """The address of a broker with strangers."""
    with trionet_broker_process(folder, settings=SETTINGS, log=log, log_level="debug") as started:
        address = started[0]
        come = [sys.executable, strangers.__file__, address]
        with running(come, env=SAME_TRIONET) as clients:
            if first_line(clients) != "ready":
                raise RuntimeError("the strangers did not come")
            yield address


def complaints(only: str) -> Iterator[tuple[str, list[str]]]:
    """What was looked at, and what was wrong with it.

    Args:
        only: a part of the names of what to look at.
    """
    with tempfile.TemporaryDirectory(prefix="trionet-escapes-") as temporary:
        folder, log = Path(temporary, FOLDER), Path(temporary, "log")
        with visited_broker(folder, log) as address:
            for name, words in commands(address, folder):
                if only in name:
                    shown = terminal_output([*TRIONET, *words], SAME_TRIONET)
                    yield name, _complaints(shown, is_of_records=name in RECORDS)
            for view in VIEWS:
                if only in f"screen {view.name}":
                    yield f"screen {view.name}", raw_payloads(_screen(address, view.name))
        yield "the broker's log", leaks(log.read_text("utf-8", "surrogateescape"))


def _complaints(shown: str, *, is_of_records: bool) -> list[str]:
    if "usage: trionet" in shown:
        return ["not run"]
    return [each for each in leaks(shown) if not (is_of_records and each.startswith(FORGED))]


def _screen(address: str, view: str) -> str:
    command = [*TRIONET, "dashboard", address, "--view", view, "--refresh", "0.2"]
    # A name that a stranger has chosen is there, or else the first frame.
    after = "p0" if view in NAMES else address.rpartition(":")[2]
    return terminal_output(command, SAME_TRIONET, keys="qy", after=after)


def main(arguments: Sequence[str]) -> int:
    """Look at everything, and return 1 if something is wrong, otherwise 0."""
    parser = argparse.ArgumentParser(
        prog="python3 tests escapes",
        description="Every command, view and log on a terminal, beside strangers whose names are "
        "escape sequences, ends of lines, directions and markup.",
    )
    parser.add_argument("only", nargs="?", default="", help="a part of the name of a command")
    only = parser.parse_args(arguments).only
    seen = wrong = 0
    for name, found in complaints(only):
        seen += 1
        wrong += bool(found)
        if found or sys.stdout.isatty():
            print(f"{name}: {', '.join(map(ascii, found[:5])) or 'well'}", flush=True)
    print(f"{seen} looked at, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
