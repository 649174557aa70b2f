"""The brokers that are measured beside each other, each in a process of its own."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs

from bench.measured import Measured
from bench.options import Options
from support.cache import Unavailable
from support.kafka_node import kafka_node, memory_folder
from support.kfake import kfake
from support.trionet_process import trionet_broker_process


@attrs.frozen
class Broker:
    """A running broker: where it listens, and its process."""

    side: str
    bootstrap: str
    pid: int

    @property
    def port(self) -> int:
        return int(self.bootstrap.rpartition(":")[2])


# What a Kafka that is measured has, too: nothing is compared with a wait that is configured.
_SETTINGS = {"group.initial.rebalance.delay.ms": "0"}


@contextlib.contextmanager
def _trionet_memory() -> Iterator[tuple[str, int]]:
    with trionet_broker_process(settings=_SETTINGS) as (bootstrap, process):
        yield bootstrap, process.pid


@contextlib.contextmanager
def _trionet_disk() -> Iterator[tuple[str, int]]:
    """On tmpfs like Kafka's: the disk of the machine is not what is compared."""
    with (
        tempfile.TemporaryDirectory(prefix="trionet-bench-", dir=memory_folder()) as folder,
        trionet_broker_process(Path(folder) / "data", settings=_SETTINGS) as (bootstrap, process),
    ):
        yield bootstrap, process.pid


KFAKE = "kfake"
SIDES: dict[str, Callable[[], contextlib.AbstractContextManager[tuple[str, int]]]] = {
    "trionet memory": _trionet_memory,
    "trionet disk": _trionet_disk,
    "Apache Kafka": kafka_node,
    KFAKE: kfake,
}


@contextlib.contextmanager
def running_brokers(options: Options, measured: Measured) -> Iterator[list[Broker]]:
    """Every side that was asked for and can run here; the others are noted as skipped."""
    with contextlib.ExitStack() as stack:
        brokers = []
        for side, start in SIDES.items():
            if not options.wants(side):
                continue
            try:
                bootstrap, pid = stack.enter_context(start())
            except Unavailable as reason:
                measured.skipped[side] = str(reason)
            else:
                brokers.append(Broker(side, bootstrap, pid))
        yield brokers
