"""What goes wrong: the network, peers that break every rule, and the broker's death."""

from __future__ import annotations

import trio

from sim.model import End
from sim.world import BROKER_HOST, LOST, PARTITIONS, PATIENCE_SECONDS, TOPICS, World
from support import produce_faults
from support.calls import batch, fetch_request, produce_request
from support.client import Client, encode_request

# How often which end of the broker is drawn.
ENDS = [End.KILL, End.KILL, End.POWER, End.POWER, End.STOP]


async def disturb(world: World) -> None:
    """Make the network worse and better, and end the broker now and then."""
    rng, faults = world.rng, world.network.faults
    while not world.is_over:
        await trio.sleep(rng.uniform(0.5, 8.0))
        what = rng.choice(("delay", "quick", "short", "break", "separate", "reset", "crash"))
        world.step("chaos", what)
        if what == "delay":
            faults.delay_seconds = (0.0, rng.choice((0.001, 0.05, 1.0)))
        elif what == "quick":
            faults.delay_seconds, faults.short_share, faults.reset_share = (0.0, 0.0), 0.0, 0.0
        elif what == "short":
            faults.short_share = rng.choice((0.0, 0.2, 0.9))
        elif what == "break":
            faults.reset_share = rng.choice((0.0, 0.002, 0.02))
        elif what == "separate":
            await _separate(world)
        elif what == "reset":
            sockets = world.network.open_sockets
            if sockets:
                world.network.break_off(rng.choice(sockets))
        else:
            world.crash(rng.choice(ENDS))


async def _separate(world: World) -> None:
    """Nothing passes between the broker and some of the clients for a while."""
    hosts = sorted({each.host for each in world.network.open_sockets} - {BROKER_HOST})
    if hosts:
        world.network.separate([BROKER_HOST], world.rng.sample(hosts, (len(hosts) + 1) // 2))
        await trio.sleep(world.rng.choice((0.1, 3.0, 20.0)))
        world.network.heal()


def end_faults(world: World) -> None:
    """Nothing goes wrong from here on."""
    faults = world.network.faults
    faults.delay_seconds, faults.short_share, faults.reset_share = (0.0, 0.0), 0.0, 0.0
    world.network.heal()
    if world.faults is not None:
        world.faults.clear()


def disturb_first_batches(world: World, client_id: str) -> None:
    """Draw what becomes of the first batches of a producer that is about to begin."""
    if world.faults is None:
        return
    for topic, partition in world.partitions:
        outcomes = produce_faults.draw(world.rng)
        world.note(f"{client_id}: {topic}-{partition}: {outcomes}")
        produce_faults.plant(
            world.faults, outcomes, client_id=client_id, topic=topic, partition=partition
        )


async def break_rules(world: World) -> None:
    """Peers that cut their frames, send nonsense, or ask for much and do not read it."""
    name = "rogue"
    while not world.is_over:
        try:
            async with world.connect(name) as client:
                how = world.rng.choice(("cut", "nonsense", "slow"))
                world.step(name, how)
                if how == "cut":
                    data = produce_request(_topic(world), {0: batch(b"never")})
                    frame = encode_request(data, 9)
                    await client.send_bytes(frame[: world.rng.randint(1, len(frame) - 1)])
                    await world.pause()
                    if world.rng.random() < 0.5:
                        client.stream.reset()  # type: ignore[attr-defined]
                elif how == "nonsense":
                    await client.send_bytes(world.rng.randbytes(world.rng.randint(1, 60)))
                    await world.pause()
                else:
                    await _read_slowly(world, client)
        except LOST:
            pass
        await world.pause()


async def _read_slowly(world: World, client: Client) -> None:
    request = fetch_request({_topic(world): dict.fromkeys(range(PARTITIONS), 0)})
    for number in range(20):
        await client.send_bytes(encode_request(request, 12, number))
    for _ in range(world.rng.randint(0, 10)):
        await trio.sleep(world.rng.choice((0.01, 1.0)))
        # A broker whose power was cut says nothing, and what was asked for it never responses.
        with trio.move_on_after(PATIENCE_SECONDS):
            await client.stream.receive_some(world.rng.randint(1, 100))


def _topic(world: World) -> str:
    return world.rng.choice(list(TOPICS))
