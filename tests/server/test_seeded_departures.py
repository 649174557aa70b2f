"""Clients that pipeline requests and leave at any moment, in any way, drawn from a seed.

What was whole in the server's kernel when its client left is handled, once and in order. With
``python3 tests fuzz -k departures`` there are a thousand seeds of each kind.
"""

from __future__ import annotations

import random
import ssl
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from support.departing import DEPARTURES, Departing, pause
from support.serving import Serving, answer, serving, undisturbed
from support.tls import server_context
from support.tls_peer import TlsPeer
from support.wire import Peer
from trionet.net.wire._readiness import ReadinessKind
from trionet.server import NO_OP, Request, Response
from trionet.server._channel_builder import PLAINTEXT, ListenerSecurity

PEERS_PER_SEED = 3
REQUEST_BYTES_MAX = 50_000
SEEDS_PER_SERVER = 20

Name = tuple[int, int]
"""A peer: its seed, and its number there."""


@cache
def context() -> ssl.SSLContext:
    return server_context()


TLS = ListenerSecurity(tls_context=context)

of_few_and_many_seeds = pytest.mark.parametrize(
    ("seeds", "security"),
    [
        pytest.param(range(200), PLAINTEXT, id="plain", marks=pytest.mark.slow),
        pytest.param(range(80), TLS, id="TLS", marks=pytest.mark.slow),
        pytest.param(range(200, 1000), PLAINTEXT, id="plain, more", marks=pytest.mark.fuzz),
        pytest.param(range(80, 1000), TLS, id="TLS, more", marks=pytest.mark.fuzz),
    ],
)


class Handling:
    """A handler that notes its requests, and responds at once, a little later, or when told.

    Args:
        respond: makes the response to a payload.

    Attributes:
        rig: the server.
        numbers: of the requests of each peer, in the order in which they were handled.
    """

    rig: Serving

    def __init__(self, respond: Callable[[bytes], Response]) -> None:
        self._respond = respond
        self.numbers: defaultdict[Name, list[int]] = defaultdict(list)
        self._held: dict[Name, Request] = {}
        self._gone: set[Name] = set()

    async def handle(self, request: Request) -> Response | None:
        payload = bytes(request.payload)
        if payload.startswith(b"? "):
            await self.rig.hand_to_test(request)
            return None
        name, number = name_and_number(payload)
        assert payload_of(name, number) == payload
        self.numbers[name].append(number)
        rng = random.Random(f"how {name} {number}")
        if rng.random() < 0.2 and name not in self._gone:
            self._held[name] = request
            return None
        for _ in range(rng.choice([0, 0, 0, 1, 2])):
            await trio.lowlevel.checkpoint()
        return self._respond(payload)

    def release(self, name: Name) -> None:
        """Respond to what is held of a peer that has gone, and hold no more of it."""
        self._gone.add(name)
        request = self._held.pop(name, None)
        if request is not None:
            request.respond(self._respond(bytes(request.payload)))


def payload_of(name: Name, number: int) -> bytes:
    """A request or a response of any size, made of its name and number."""
    rng = random.Random(f"payload {name} {number}")
    size = rng.choice([0, 1, 10, 100, 1000, 4060, 4090, 9000, 40_000])
    return b"%d %d %d|" % (*name, number) + bytes([number]) * size


def name_and_number(payload: bytes) -> tuple[Name, int]:
    seed, peer, number = map(int, payload.partition(b"|")[0].split())
    return (seed, peer), number


def no_response(payload: bytes) -> Response:
    return NO_OP


def response_of_any_size(payload: bytes) -> Response:
    """One that leaves at once, or takes the peer's reading."""
    head = payload.partition(b"|")[0] + b"|"
    return answer(head + bytes(random.Random(payload).choice([0, 10, 5000, 20_000, 300_000])))


async def receive_numbers(peer: Peer, name: Name) -> list[int]:
    """The numbers of all responses that come before the end of the connection."""
    received = await peer.receive_to_end()
    numbers = []
    while received:
        size = int.from_bytes(received[:4], "big")
        payload, received = received[4 : 4 + size], received[4 + size :]
        if len(payload) == size:
            found, number = name_and_number(payload)
            assert name == found
            numbers.append(number)
    return numbers


class Life(NamedTuple):
    """What became of a peer.

    Attributes:
        arrived: how many of its requests were whole in the server's kernel when it left.
        written: how many it had written.
        responses: the numbers of the responses that it received; None if it did not read to the
            end.
    """

    arrived: int
    written: int
    responses: list[int] | None


async def live(rig: Serving, handling: Handling, name: Name) -> Life:
    rng = random.Random(f"life {name}")
    payloads = [payload_of(name, number) for number in range(rng.randrange(1, 12))]
    with await rig.connect() as peer:
        if isinstance(peer, TlsPeer):
            # The server has the end of its handshake to send yet, which fails after a reset, and
            # ends the connection with whatever is behind it, as in Kafka.
            await wait_all_tasks_blocked()
        departing = Departing(peer, payloads)
        await departing.send(rng)
        await pause(rng)
        departure = rng.choice(DEPARTURES)
        arrived = departing.leave(departure)
        await pause(rng)
        handling.release(name)
        responses = await receive_numbers(peer, name) if departure == "finish" else None
    return Life(arrived, departing.written, responses)


async def lives(
    kind: ReadinessKind, handling: Handling, seeds: range, security: ListenerSecurity
) -> dict[Name, Life]:
    """Let the peers of each seed live, several at a time, and see that the server goes on."""
    found: dict[Name, Life] = {}
    rng = random.Random(seeds.start)
    async with serving(
        kind,
        handler=handling.handle,
        security=security,
        queued_max_requests=rng.choice([1, 2, 500]),
        queued_max_request_bytes=rng.choice([-1, REQUEST_BYTES_MAX]),
        socket_request_max_bytes=REQUEST_BYTES_MAX,
    ) as rig:
        handling.rig = rig

        async def one(name: Name) -> None:
            found[name] = await live(rig, handling, name)

        async with undisturbed(rig):
            for seed in seeds:
                async with trio.open_nursery() as nursery:
                    for peer in range(PEERS_PER_SEED):
                        nursery.start_soon(one, (seed, peer))
                while rig.server.statistics().connections > 1:  # the healthy one
                    await wait_all_tasks_blocked(0.001)
    return found


def parts_of(seeds: range) -> list[range]:
    """What one server takes of some seeds."""
    starts = range(seeds.start, seeds.stop, SEEDS_PER_SERVER)
    return [seeds[start - seeds.start :][:SEEDS_PER_SERVER] for start in starts]


@of_few_and_many_seeds
async def test_requests_without_responses_are_all_handled_that_arrived_before_a_departure(
    kind: ReadinessKind, seeds: range, security: ListenerSecurity
) -> None:
    """P9, P31, P40, P43: once, and in order; nothing of them can fail."""
    for part in parts_of(seeds):
        handling = Handling(no_response)
        found = await lives(kind, handling, part, security)
        for name, life in found.items():
            numbers = handling.numbers[name]

            assert list(range(len(numbers))) == numbers, name
            assert life.arrived <= len(numbers) <= life.written, name


@of_few_and_many_seeds
async def test_requests_with_responses_are_handled_in_order_until_one_fails(
    kind: ReadinessKind, seeds: range, security: ListenerSecurity
) -> None:
    """P31, P44: whoever only sends no more has a response to each of its requests."""
    for part in parts_of(seeds):
        handling = Handling(response_of_any_size)
        found = await lives(kind, handling, part, security)
        for name, life in found.items():
            numbers = handling.numbers[name]

            assert list(range(len(numbers))) == numbers, name
            assert len(numbers) <= life.written, name
            if life.responses is not None:
                assert list(range(life.written)) == numbers == life.responses, name
