"""One run: a job works while it and its broker are killed, and has to come to the right end.

What is killed when is drawn from a seed.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import attrs
import trio

from spark_kills.victims import Durable, Job
from trionet.errors import TrionetError

KINDS: Final = ("worker", "driver", "broker")
#: Where executors are processes of their own; an outage is a driver that is gone for long.
CLUSTER_KINDS: Final = ("worker", "executor", "driver", "broker", "outage")
_PAUSE_SECONDS_MAX: Final = 4.0
#: How often nobody waits for the job to go on before it is hit again.
_AT_ONCE: Final = 0.25
#: How often it is hit while transactions are committed, and how much later at most.
_AT_COMMIT: Final = 0.4
_AFTER_COMMIT_SECONDS_MAX: Final = 0.06
#: How long a commit is waited for: the job may stand still after the kill before.
_COMMIT_PATIENCE_SECONDS: Final = 60.0
#: Longer than a transaction may take (`exactly_once.TRANSACTION_SECONDS`), and than the broker
#: needs to notice.
_OUTAGE_SECONDS: Final = 33.0


@attrs.frozen
class Kill:
    """One of them.

    Attributes:
        kind: what is killed.
        is_at_once: the pause begins at the one before; else when the job has gone on since.
        seconds: the pause.
        is_at_commit: it waits for the next commit of a transaction, too.
    """

    kind: str
    is_at_once: bool
    seconds: float
    is_at_commit: bool = False


def plan(
    seed: int,
    count: int,
    kinds: Sequence[str],
    *,
    pause_max: float = _PAUSE_SECONDS_MAX,
    commits: bool = False,
) -> list[Kill]:
    """Draw what is killed when.

    Successive seeds begin with successive kinds, so that none is left out.

    Args:
        seed: the same one has the same plan.
        count: how many kills.
        kinds: what may be killed.
        pause_max: seconds.
        commits: whether the job writes in transactions, whose commits are points to hit.
    """
    rng = random.Random(f"{seed} kills")
    chosen = [kinds[seed % len(kinds)], *(rng.choice(kinds) for _ in range(count - 1))]
    return [
        Kill(
            kind,
            number > 0 and rng.random() < _AT_ONCE,
            rng.uniform(0, pause_max),
            commits and rng.random() < _AT_COMMIT,
        )
        for number, kind in enumerate(chosen)
    ]


#: However busy the machine is: what does not go on for so long stands still.
PATIENCE_SECONDS: Final = 900.0
LOOK_SECONDS: Final = 0.05


@attrs.define
class Outcome:
    """What came of a run.

    Attributes:
        seed: of what was drawn.
        kills: what was killed, and at which second.
        seconds: how long it took.
        told: what else there is to say of it.
        wrong: in words.
    """

    seed: int
    kills: list[str] = attrs.field(factory=list)
    seconds: float = 0.0
    told: list[str] = attrs.field(factory=list)
    wrong: list[str] = attrs.field(factory=list)


class StandstillError(Exception):
    """Something has not happened for long; says what."""


class Run:
    """A job and a broker that are killed.

    Args:
        seed: of what is drawn at each kill.
        job: run by the caller.
        broker: running.
        progress: a number that grows while the job goes on.
        committed: waits until the job commits a transaction; None if it has none.
    """

    def __init__(
        self,
        seed: int,
        job: Job,
        broker: Durable,
        progress: Callable[[], int],
        committed: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.outcome = Outcome(seed)
        self._job = job
        self._broker = broker
        self._progress = progress
        self._committed = committed
        self._chance = random.Random(f"{seed} victims")
        self._began = trio.current_time()

    async def kill_all(self, kills: list[Kill]) -> None:
        """Kill as planned, or until the job is through.

        Raises:
            StandstillError: the job does not go on after one of them.
        """
        for kill in kills:
            if not kill.is_at_once:
                await self._go_on()
            with trio.move_on_after(kill.seconds):
                await self.until(lambda: False, "a pause")
            if self._job.is_through:
                return
            point = " at a commit" if kill.is_at_commit and await self._commits() else ""
            killed = f"{await self._kill(kill)}{point}"
            self.outcome.kills.append(f"{killed} at {self._seconds():.1f} s")

    async def _commits(self) -> bool:
        """Wait for a commit and for a moment more; whether there was one."""
        assert self._committed is not None
        with trio.move_on_after(_COMMIT_PATIENCE_SECONDS) as patience:
            try:
                await self._committed()
            except TrionetError:  # the broker is not back yet
                return False
            await trio.sleep(self._chance.uniform(0, _AFTER_COMMIT_SECONDS_MAX))
        return not patience.cancelled_caught

    async def _go_on(self) -> None:
        before = self._progress()
        await self.until(lambda: self._progress() > before, "micro-batch more")

    async def _kill(self, kill: Kill) -> str:
        match kill.kind:
            case "worker":
                with trio.move_on_after(PATIENCE_SECONDS):
                    return await self._job.kill_worker(self._chance, commits=kill.is_at_commit)
                raise StandstillError("there is no worker")
            case "executor":
                with trio.move_on_after(PATIENCE_SECONDS):
                    return await self._job.kill_executor(self._chance)
                raise StandstillError("there is no executor")
            case "driver":
                return self._job.kill()
            case "outage":
                return self._job.kill(_OUTAGE_SECONDS)
            case _:
                return await self._broker.kill(self._chance)

    async def until(self, reached: Callable[[], bool], what: str) -> None:
        """Wait until it is so, or the job is through.

        Raises:
            StandstillError: it is not for very long, or the job ends again and again.
        """
        with trio.move_on_after(PATIENCE_SECONDS):
            await trio.lowlevel.checkpoint()
            while not reached() and not self._job.is_through:
                if self._job.has_given_up:
                    raise StandstillError(f"it ends again and again, and there is no {what}")
                await trio.sleep(LOOK_SECONDS)
            return
        raise StandstillError(f"no {what} within {PATIENCE_SECONDS:.0f} s")

    def _seconds(self) -> float:
        return trio.current_time() - self._began

    def end(self) -> Outcome:
        """What came of it so far, the job's own part in it added."""
        outcome = self.outcome
        outcome.seconds = self._seconds()
        outcome.told.append(f"{self._job.starts} starts")
        outcome.told += [f"ended by {each!r}" for each in self._job.ended]
        outcome.wrong += [f"it ended by itself: {each}" for each in self._job.odd_ends]
        return outcome
