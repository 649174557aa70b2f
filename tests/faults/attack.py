"""All faults at the same time, in random order, in a process of its own.

On the word ``begin`` they begin; on ``end`` they all stop, and it tells how often each happened. It
ends with an error if a peer that had a right to a response got a wrong one.
"""

from __future__ import annotations

import os
import random
import resource
import sys
from collections import Counter

import trio

from faults.peers import CROWD_SECONDS, CROWDS, FAULTS, Fault, Target, all_descriptors, can_vanish
from faults.program import tell, told

PEERS = 40
FAULT_SECONDS_MAX = 3.0
REST_SECONDS = 0.1
CROWD_REST_SECONDS = 6.0


class Attack:
    """The peers.

    Args:
        ports: of the server, by listener.
        seed: of everything that is drawn.
    """

    def __init__(self, ports: dict[str, int], seed: int) -> None:
        self._target = Target(ports, can_vanish())
        self._chance = random.Random(seed)
        self._happened: Counter[str] = Counter()

    async def run(self) -> None:
        """Obey stdin until it ends."""
        tell({"can vanish": self._target.can_vanish})
        lines = trio.wrap_file(sys.stdin)
        while (await lines.readline()).strip() == "begin":
            tell({})
            async with trio.open_nursery() as nursery:
                for _ in range(PEERS):
                    nursery.start_soon(self._repeat, FAULTS, REST_SECONDS)
                for crowd in CROWDS:
                    nursery.start_soon(self._crowd, crowd)
                await lines.readline()
                nursery.cancel_scope.cancel()
            tell(dict(self._happened))

    async def _crowd(self, crowd: Fault) -> None:
        if crowd is all_descriptors:
            # Nobody is refused for a limit while the server has no descriptor to accept with. A
            # short run has one crowd of each kind: those that run into limits go first.
            await trio.sleep(CROWD_SECONDS)
        await self._repeat([crowd], CROWD_REST_SECONDS)

    async def _repeat(self, faults: list[Fault], rest_seconds: float) -> None:
        rng = random.Random(self._chance.random())  # its own, whatever the scheduler does
        deck: list[Fault] = []
        while True:
            deck = deck or rng.sample(faults, len(faults))
            fault = deck.pop()
            with trio.move_on_after(FAULT_SECONDS_MAX):
                try:
                    await fault(self._target, rng)
                except (OSError, EOFError, trio.ClosedResourceError):
                    pass  # it was thrown out before it had finished
                await trio.lowlevel.checkpoint()
            self._happened[fault.__name__] += 1
            await trio.sleep(rng.uniform(0, rest_seconds))


def main() -> None:
    """Mean no good, but let those who measure have the processor first."""
    os.nice(10)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    trio.run(Attack(**told()).run)


if __name__ == "__main__":
    main()
