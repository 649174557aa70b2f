"""`python -m ordeal.copier`: one worker of the ordeal of exactly-once, in a process of its own."""

from __future__ import annotations

import random
import signal
import sys
from pathlib import Path
from typing import Final, Self

import attrs
import trio

from sim.planted import planted
from support.exactly_once import Job, Worker
from trionet.errors import ProducerFencedError

#: The exit status of a worker that has been fenced.
FENCED: Final = 3
POLL_SECONDS: Final = 3.0
#: The least that Apache Kafka takes.
SESSION_SECONDS: Final = 6.0
#: Some transactions are aborted by their coordinator while their worker stalls.
_TRANSACTION_SECONDS: Final = (8.0, 25.0)
_STRATEGIES: Final = ("range", "roundrobin", "sticky", "cooperative-sticky")


@attrs.frozen
class Start:
    """What a worker is started with.

    Attributes:
        servers: the bootstrap servers.
        topic: what it reads; its group has the same name.
        name: the transactional id.
        seed: of what it draws; what the group has in common goes by the part before the comma.
        planted: a bug of :mod:`sim.planted` that it has; empty for none.
        calm: a file that is there when nothing may befall it any more.
    """

    servers: str
    topic: str
    name: str
    seed: str
    planted: str
    calm: Path

    @classmethod
    def from_arguments(cls) -> Self:
        servers, topic, name, seed, planted, calm = sys.argv[1:]
        return cls(servers, topic, name, seed, planted, Path(calm))

    @property
    def arguments(self) -> list[str]:
        return [self.servers, self.topic, self.name, self.seed, self.planted, str(self.calm)]

    @property
    def job(self) -> Job:
        rng = random.Random(self.seed.partition(",")[0])
        keys = {
            "partition.assignment.strategy": rng.choice(_STRATEGIES),
            "session.timeout.ms": round(SESSION_SECONDS * 1000),
            "heartbeat.interval.ms": 500,
        }
        transaction = rng.choice(_TRANSACTION_SECONDS)
        return Job(
            self.servers,
            self.topic,
            target_of(self.topic),
            self.topic,
            keys,
            POLL_SECONDS,
            transaction,
        )


def target_of(topic: str) -> str:
    """Where the copies of a topic are."""
    return f"{topic}-copies"


async def live(start: Start) -> None:
    """Work until SIGTERM, which cancels it wherever it is."""

    def note(text: str) -> None:
        print(f"{trio.current_time():.3f} {text}", file=sys.stderr, flush=True)

    worker = Worker(
        start.job, start.name, random.Random(start.seed), is_calm=start.calm.exists, note=note
    )
    async with trio.open_nursery() as nursery:

        async def wait_for_signal(task_status: trio.TaskStatus[None]) -> None:
            with trio.open_signal_receiver(signal.SIGTERM) as signals:
                task_status.started()
                await anext(signals)
            note("cancelled")
            nursery.cancel_scope.cancel(reason="SIGTERM")

        await nursery.start(wait_for_signal)
        print("ready", flush=True)
        await worker.run()


if __name__ == "__main__":
    try:
        start = Start.from_arguments()
        with planted(start.planted or None):
            trio.run(live, start, strict_exception_groups=True)
    except* ProducerFencedError as errors:
        print(errors.exceptions, file=sys.stderr)
        sys.exit(FENCED)
