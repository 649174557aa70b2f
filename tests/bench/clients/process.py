"""One run of a client in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator

import attrs

import trionet
from bench.brokers import Broker, running_brokers
from bench.clients.task import Task
from bench.measured import Measured
from bench.options import Options
from support.processes import SAME_TRIONET

#: The clients' own speed is compared, so that one broker more would tell little.
BROKERS = ("trionet memory", "Apache Kafka")
_SECONDS_MAX = 300
_BOTH_PURE = "nothing is compiled here, so both sides of trionet are the same"


@attrs.frozen
class Side:
    """A client that is measured.

    Attributes:
        name: how it is called in the table.
        library: the module below this folder.
        work: the function there.
        is_pure: trionet without its compiled modules.
    """

    name: str
    library: str
    work: str
    is_pure: bool = False

    def run(self, task: Task) -> dict[str, float]:
        """Its figures.

        Raises:
            RuntimeError: a record was lost, refused or changed, or the client ended otherwise.
        """
        done = subprocess.run(
            [sys.executable, "-m", "bench.clients", self.library, self.work, task.as_text()],
            check=False,
            capture_output=True,
            text=True,
            timeout=_SECONDS_MAX,
            env=os.environ | _path() | ({"TRIONET_PURE": "1"} if self.is_pure else {}),
        )
        if done.returncode != 0:
            said = done.stderr.strip()[-3000:]
            raise RuntimeError(f"{self.name}: {said or f'ended with {done.returncode}'}")
        figures: dict[str, float] = json.loads(done.stdout)
        return figures


def _path() -> dict[str, str]:
    """The trionet of this process, and what it was itself given to import from."""
    path = [SAME_TRIONET["PYTHONPATH"], os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(filter(None, path))}


def wanted_sides(sides: Iterable[Side], options: Options, measured: Measured) -> list[Side]:
    """The sides that were asked for and differ from each other here."""
    chosen = []
    for side in sides:
        if not options.wants(side.name):
            continue
        if side.is_pure and not trionet.is_compiled():
            measured.skipped[side.name] = _BOTH_PURE
        else:
            chosen.append(side)
    return chosen


def cases(
    names: Iterable[str], options: Options, measured: Measured
) -> Iterator[tuple[Broker, str, str]]:
    """What was asked for of these names on each broker: the broker, the name, and the case's.

    Clients are asked for by `--sides`, too: where that names no broker, all take part.
    """
    sides = [each for each in BROKERS if options.wants(each)] or BROKERS
    wanted = {broker: {name: f"{broker}, {name}" for name in names} for broker in sides}
    for side, by_name in wanted.items():
        chosen = {name: case for name, case in by_name.items() if options.wants_case(case)}
        if chosen:
            with running_brokers(attrs.evolve(options, sides=[side]), measured) as brokers:
                for broker in brokers:
                    for name, case in chosen.items():
                        yield broker, name, case
