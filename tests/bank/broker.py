"""`python -m bank.broker`: our broker with three nodes, which never leaves its leaders in peace."""

from __future__ import annotations

import random
import sys
from collections.abc import Awaitable, Callable
from typing import Final

import trio

from bank.work import BANK, COPIES, GROUP, PARTITIONS, READY
from trionet import Broker, open_broker

NODES: Final = 3
_DOWN_SECONDS: Final = (0.0, 1.0)
_PAUSE_SECONDS: Final = (0.05, 1.0)
_SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}


def main() -> None:
    ports, data, seed, *ids = sys.argv[1:]
    trio.run(live, ports.split(","), data, seed, ids)


async def live(ports: list[str], data: str, seed: str, ids: list[str]) -> None:
    """Disturb the broker until there is a line on stdin, and stop it after another one."""
    listeners = f"PLAINTEXT://127.0.0.1:{ports[0]}"
    settings = {**_SETTINGS, "listeners": listeners, "log.dirs": data}
    async with open_broker(settings, brokers=NODES) as broker, trio.open_nursery() as nursery:
        print(READY, flush=True)
        rng = random.Random(seed)
        scope = await nursery.start(_disturb, broker, rng, ids)
        await trio.to_thread.run_sync(sys.stdin.readline)
        scope.cancel()
        await trio.to_thread.run_sync(sys.stdin.readline)


async def _disturb(
    broker: Broker,
    rng: random.Random,
    ids: list[str],
    task_status: trio.TaskStatus[trio.CancelScope],
) -> None:
    """Move leaders and coordinators, and stop nodes."""

    async def move_leader() -> None:
        topic, partition = rng.choice((BANK, COPIES)), rng.randrange(PARTITIONS)
        await broker.move_leader(topic, partition, rng.choice(broker.running_nodes))

    async def move_group() -> None:
        await broker.move_coordinator(GROUP, rng.choice(broker.running_nodes))

    async def move_transactions() -> None:
        id = rng.choice(ids)
        await broker.move_transaction_coordinator(id, rng.choice(broker.running_nodes))

    async def restart() -> None:
        node = rng.choice(broker.node_ids)
        await broker.stop(node)
        try:
            await trio.sleep(rng.uniform(*_DOWN_SECONDS))
        finally:
            with trio.CancelScope(shield=True):  # no node stays down; it takes a moment
                await broker.start(node)

    actions: list[Callable[[], Awaitable[None]]] = [
        *(move_leader, move_leader),
        *(move_group, move_transactions, move_transactions),
        restart,
    ]
    with trio.CancelScope() as scope:
        task_status.started(scope)
        while True:
            await trio.sleep(rng.uniform(*_PAUSE_SECONDS))
            await rng.choice(actions)()


if __name__ == "__main__":
    main()
