"""One run: producers, a group and an administrator, while the cluster under them is disturbed.

Afterwards everything that was acknowledged is at its place, each producer's records are in their
order in every partition, nothing is there twice, and the group has processed all of it.
"""

from __future__ import annotations

import random

import attrs
import trio

import trionet
from ordeal.administrator import Administrator
from ordeal.ledger import Ledger
from ordeal.logs import read_log
from ordeal.members import Group
from ordeal.producers import Producers
from ordeal.rigs import Rig
from trionet.client.admin import Admin

PARTITIONS = 3
#: After the last disturbance everything has to be over within this.
PATIENCE_SECONDS = 120.0
#: However long they take: one comes while the work of the other is still under way.
_DISTURBANCES_MIN = 2


@attrs.frozen
class Outcome:
    """What came of a run.

    Attributes:
        seed: of what was drawn.
        seconds: how long it took.
        acknowledged: records.
        counts: how often what else happened.
        disturbances: what was done, in order.
        wrong: in words.
    """

    seed: int
    seconds: float
    acknowledged: int
    counts: dict[str, int]
    disturbances: tuple[str, ...]
    wrong: tuple[str, ...]


async def run(rig: Rig, seed: int, seconds: float) -> Outcome:
    """Run once against a cluster that is whole; it is whole again afterwards."""
    ordeal = _Ordeal(rig, seed)
    began = trio.current_time()
    try:
        async with trionet.open_admin(
            rig.bootstrap_servers, default_api_timeout_ms=int(PATIENCE_SECONDS * 1000)
        ) as admin:
            await ordeal.live(seconds, admin)
    except* Exception as errors:  # boundary: one run
        ordeal.ledger.wrong += in_words(errors)
    ledger = ordeal.ledger
    return Outcome(
        seed,
        trio.current_time() - began,
        len(ledger.acknowledged),
        dict(sorted(ledger.counts.items())),
        tuple(ordeal.disturbances),
        tuple(dict.fromkeys(ledger.wrong)),
    )


def in_words(errors: BaseExceptionGroup[Exception]) -> list[str]:
    """Each error in a group, however deep."""
    found: list[str] = []
    for each in errors.exceptions:
        if isinstance(each, BaseExceptionGroup):
            found += in_words(each)
        else:
            found.append(f"{type(each).__name__}: {each}")
    return found


class _Ordeal:
    def __init__(self, rig: Rig, seed: int) -> None:
        self.ledger = Ledger()
        self.disturbances: list[str] = []
        self._rig = rig
        self._topic = f"ordeal-{seed}-{random.SystemRandom().randrange(1 << 32):08x}"
        self._seed = seed
        self._is_over = False

    async def live(self, seconds: float, admin: Admin) -> None:
        """All of it, from the making of the topic to the last look at its log."""
        servers = self._rig.bootstrap_servers
        group = Group(servers, self._topic, self.ledger)
        producers = Producers(servers, self._topic, PARTITIONS, self.ledger, self._has_ended)
        administrator = Administrator(
            admin, self._topic, PARTITIONS, self._rig.replicas, self.ledger
        )
        await administrator.create_topic()
        async with trio.open_nursery() as consuming:
            consuming.start_soon(group.run, self._seed)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(producers.run, self._seed)
                nursery.start_soon(administrator.run, self._seed, self._has_ended)
                await self._disturb(seconds)
                self._is_over = True
                nursery.cancel_scope.deadline = trio.current_time() + PATIENCE_SECONDS
            if nursery.cancel_scope.cancelled_caught:
                self.ledger.wrong.append("producers and administrator did not come to their end")
            with trio.move_on_after(PATIENCE_SECONDS):
                await self.ledger.until_all_are_processed()
            left = self.ledger.unprocessed
            if left:
                self.ledger.wrong.append(f"the group has not processed {left} records")
            consuming.cancel_scope.cancel()
        await administrator.look_at_end(await self._look_at_log())

    def _has_ended(self) -> bool:
        return self._is_over

    async def _disturb(self, seconds: float) -> None:
        rng = random.Random(f"{self._seed} disturbances")
        names = sorted(self._rig.disturbances)
        until = trio.current_time() + seconds
        what = names[self._seed % len(names)]  # successive seeds leave nothing out
        while trio.current_time() < until or len(self.disturbances) < _DISTURBANCES_MIN:
            await trio.sleep(rng.uniform(0.1, 1.5))
            done = await self._rig.disturbances[what](rng, self._topic, PARTITIONS)
            self.disturbances.append(done or what)
            what = rng.choice(names)
        await trio.sleep(rng.uniform(0.1, 1.0))

    async def _look_at_log(self) -> dict[int, int]:
        """Read all of it once more, by itself; by partition, how long it is."""
        found, ends = await read_log(self._rig.bootstrap_servers, self._topic, range(PARTITIONS))
        self.ledger.check(found)
        return ends
