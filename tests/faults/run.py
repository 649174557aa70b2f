"""One fault run: healthy clients measure a server, first in quiet, then while it is disturbed.

The server has core 0 for itself, everybody else shares core 1. First nobody disturbs; then all
faults of :mod:`.peers` happen at the same time, in random order; then a storm of connections comes
on top. At the end everybody leaves, and the server must hold nothing of anybody.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import attrs

from faults.healthy import CLIENTS
from faults.peers import FEW_A_SECOND, FEW_CONNECTIONS
from faults.program import Program, observed, program
from support.tls import certificate, write_pem, write_trust

STORM_ATTEMPTS_PER_SECOND = 20_000
QUIET_SECONDS_MAX = 20.0
DESCRIPTORS_MAX = 200
# After a warm-up, what is held for good may grow by this: rings, histograms, the allocator's holes.
GROWTH_BYTES_MAX = 48 * 1024 * 1024
QUIET, FAULTS, STORM = "quiet", "faults", "faults and storm"

_MEGABYTE = 1024 * 1024
CONFIG = {
    "num_network_threads": 2,
    "queued_max_requests": 100,
    "queued_max_request_bytes": 64 * _MEGABYTE,
    "socket_request_max_bytes": 2 * _MEGABYTE,
    "connections_max_idle_ms": 4000,
    "authentication_timeout_ms": 2000,
    "quota_window_num": 2,
}
LIMITS = {"overrides": {FEW_CONNECTIONS: 20}}
FEW = {"connections_max": 10, "connections_per_second_max": 10}
ADDRESS_RATES = {FEW_A_SECOND: 10}

# What the server may say; everything else took it by surprise.
EXPECTED = re.compile(
    r" INFO trionet\.server: "
    r"|dropping a response"
    r"|cannot accept on .*Too many open files; retrying"
)


@attrs.define
class Outcome:
    """What a run has shown.

    Attributes:
        seed: of everything that was drawn.
        can_vanish: whether half-open peers were possible.
        figures: of the healthy clients, by phase and kind.
        errors: what healthy clients took for one.
        reports: of the server, at the end of each phase.
        before: the server before anybody came, and ``after`` everybody had left.
        happened: how often, by fault.
        storm: attempts, connections and seconds.
        descriptors_missed: how often the server could not accept for want of a descriptor.
        surprises: lines of its log that nobody expected.
    """

    seed: int
    can_vanish: bool = False
    figures: dict[str, dict[str, dict[str, float]]] = attrs.field(factory=dict)
    errors: list[str] = attrs.field(factory=list)
    reports: dict[str, dict[str, Any]] = attrs.field(factory=dict)
    before: dict[str, Any] = attrs.field(factory=dict)
    after: dict[str, Any] = attrs.field(factory=dict)
    happened: dict[str, int] = attrs.field(factory=dict)
    storm: dict[str, float] = attrs.field(factory=dict)
    descriptors_missed: int = 0
    surprises: list[str] = attrs.field(factory=list)

    @property
    def growth_bytes(self) -> int:
        """How much more memory the server holds than in the quiet phase."""
        grown: int = self.after["memory"] - self.reports[QUIET]["memory"]
        return grown

    def complaints(self) -> Iterator[str]:
        """Everything that must not be."""
        for error in self.errors:
            yield f"a healthy client saw an error: {error}"
        for kind, _, _, _, stays in CLIENTS:
            # Who connects may have to wait for seconds: its kernel asks after 1, 3 and 7 of them.
            if stays and not self.figures[STORM][kind]["requests"]:
                yield f"healthy clients of the kind {kind!r} got no answer in the storm"
        for what, count in self.after["held"].items():
            if count:
                yield f"the server still holds {what}: {count}"
        for what in ("descriptors", "tasks", "channels"):
            if self.before[what] != self.after[what]:
                yield f"{what}: {self.before[what]} before, {self.after[what]} after"
        if self.growth_bytes > GROWTH_BYTES_MAX:
            yield f"memory has grown by {self.growth_bytes / _MEGABYTE:.1f} MiB"
        for line in self.surprises:
            yield f"in the server's log: {line}"


def run(seconds: float, seed: int, folder: Path) -> Outcome:
    """Disturb a server.

    Args:
        seconds: how long, quiet included.
        seed: of everything that is drawn.
        folder: for certificates and the server's log.
    """
    outcome = Outcome(seed)
    quiet = min(QUIET_SECONDS_MAX, seconds / 5)
    log = folder / "server.log"
    cores = (0, 1) if (os.cpu_count() or 1) > 1 else (None, None)
    settings = {
        "config": CONFIG,
        "limits": LIMITS,
        "few": FEW,
        "address_rates": ADDRESS_RATES,
        "descriptors_max": DESCRIPTORS_MAX,
        "certificate": write_pem(folder / "server.pem", certificate()),
    }
    authority = write_trust(folder / "authority.pem")
    with ExitStack() as stack:

        def start(name: str, told: dict[str, Any]) -> Program:
            return stack.enter_context(program(name, told, core=cores[1]))

        server = stack.enter_context(program("server", settings, core=cores[0], log=log))
        ports = server.started
        outcome.before = observed(server, "settle")
        attack = start("attack", {"ports": ports, "seed": seed})
        everywhere = [port for name, port in ports.items() if name != "FEW"]
        storm = start(
            "storm",
            {
                "ports": everywhere,
                "attempts_per_second": STORM_ATTEMPTS_PER_SECOND,
                "seed": seed,
            },
        )
        with program("healthy", {"ports": ports, "authority": authority}, core=cores[1]) as healthy:
            pause = _pause(healthy, server, outcome)
            pause("", min(1.0, quiet / 4))  # everybody has connected, everything is loaded
            pause(QUIET, quiet)
            attack.ask("begin")
            pause(FAULTS, (seconds - quiet) / 2)
            storm.ask("begin")
            pause(STORM, (seconds - quiet) / 2)
            outcome.storm = storm.ask("end")
            outcome.happened = attack.ask("end")
        outcome.can_vanish = attack.started["can vanish"]
        outcome.after = observed(server, "empty")
    lines = log.read_text().splitlines()
    outcome.descriptors_missed = sum("Too many open files" in line for line in lines)
    outcome.surprises = [line for line in lines if not EXPECTED.search(line)]
    return outcome


def _pause(healthy: Program, server: Program, outcome: Outcome) -> Callable[[str, float], None]:
    def pause(phase: str, seconds: float) -> None:
        """Let things happen, then ask what did."""
        threading.Event().wait(seconds)
        measured = healthy.ask("figures")
        report = observed(server, "report")
        outcome.errors = measured["errors"]
        if phase:
            outcome.figures[phase] = measured["figures"]
            outcome.reports[phase] = report

    return pause
