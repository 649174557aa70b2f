"""`python3 tests ordeal new-topics [--topics N]`: records for topics that are a moment old.

Apache Kafka says that a topic is there before its leader takes batches: it may refuse the first one
of a producer and take the second. Topics that are created by one request are there together, and
their leaders are not, which makes this frequent.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

import attrs
import trio

import trionet
from ordeal.client_log import add_log_argument, log_to
from ordeal.ledger import Ledger
from ordeal.logs import read_log
from support.cache import Unavailable
from support.kafka_node import kafka_node
from trionet import Producer
from trionet.client.admin import NewTopic
from trionet.errors import TrionetError

#: A healthy broker takes everything much sooner.
_STALL_SECONDS: Final = 5.0
_CLUSTERS: Final = ("kafka", "trionet")
#: Topics are created alone and together by turns.
_AT_ONCE: Final = (1, 10)


class Load(NamedTuple):
    """Records that are enqueued at once."""

    records: int
    size: int

    def __str__(self) -> str:
        return f"{self.records:,} x {self.size:,} B"


LOADS: Final = (Load(100, 10_000), Load(2_000, 100))


class Case(NamedTuple):
    """What is done to a topic.

    Attributes:
        load: for it.
        is_fresh: it has a producer of its own, which is opened when the topic is there.
        at_once: so many topics are created by one request, and filled side by side.
    """

    load: Load
    is_fresh: bool
    at_once: int

    def __str__(self) -> str:
        producer = "a producer each" if self.is_fresh else "one producer for all"
        return f"{self.load}, {producer}, created {self.at_once} at a time"


CASES: Final = tuple(itertools.starmap(Case, itertools.product(LOADS, (True, False), _AT_ONCE)))


@attrs.define
class Filling:
    """A topic and what became of its records.

    Attributes:
        topic: its name.
        case: what is done to it.
        ledger: of its records.
        seconds: from the first record to the last delivery.
        waited_seconds: of these, from the moment when all records were enqueued.
        errors: of deliveries, in words.
    """

    topic: str
    case: Case
    ledger: Ledger = attrs.Factory(Ledger)
    seconds: float = 0.0
    waited_seconds: float = 0.0
    errors: Counter[str] = attrs.Factory(Counter)

    @property
    def is_stalled(self) -> bool:
        return self.waited_seconds > _STALL_SECONDS

    @property
    def is_wrong(self) -> bool:
        return bool(self.is_stalled or self.errors or self.ledger.wrong)

    async def run_alone(self, bootstrap_servers: str, settings: Mapping[str, object]) -> None:
        """Open a producer for it, and fill it."""
        async with trionet.open_producer(bootstrap_servers, settings) as producer:
            await self.run(producer)

    async def run(self, producer: Producer) -> None:
        """Enqueue everything, and wait for what becomes of it."""
        padding = [("padding", bytes(self.case.load.size))]  # values are as the ledger has them
        values = [b"0 %d" % number for number in range(self.case.load.records)]
        for value in values:
            self.ledger.send(value)
        began = trio.current_time()
        if self.case.is_fresh:
            deliveries = [
                await producer.enqueue(self.topic, value, headers=padding) for value in values
            ]
        else:
            headers = [padding] * len(values)
            deliveries = list(await producer.enqueue_batch(self.topic, values, headers=headers))
        enqueued = trio.current_time()
        for value, delivery in zip(values, deliveries, strict=True):
            try:
                found = await delivery
            except TrionetError as error:
                self.errors[f"{type(error).__name__}: {error}"] += 1
            else:
                self.ledger.acknowledge((found.partition, found.offset), value)
        self.seconds = trio.current_time() - began
        self.waited_seconds = trio.current_time() - enqueued


def main(arguments: list[str]) -> int:
    """Run, report, and say by the exit status whether nothing was wrong."""
    parser = argparse.ArgumentParser(
        prog="python3 tests ordeal new-topics",
        description="Create topics, enqueue all records at once, await all deliveries; again and"
        f" again, with {' and '.join(map(str, LOADS))} for a topic, with a producer for each topic"
        " and with one for all, with topics created alone and together, by turns. kafka: Apache"
        " Kafka; trionet: a broker of our own.",
    )
    parser.add_argument("cluster", nargs="?", choices=_CLUSTERS, default="kafka")
    parser.add_argument("--topics", type=int, default=500, help="how many (default %(default)s)")
    parser.add_argument(
        "--auto-create", action="store_true", help="the first record creates its topic"
    )
    parser.add_argument(
        "--delivery-timeout-ms",
        type=int,
        default=120_000,
        help="of the producers; with a short one a stall costs little (default %(default)s)",
    )
    add_log_argument(parser)
    chosen = parser.parse_args(arguments)
    log_to(chosen.log)
    try:
        return _report(trio.run(_run_all, chosen))
    except Unavailable as reason:
        print(f"{chosen.cluster}: skipped: {reason}")
        return 0


@asynccontextmanager
async def _cluster(name: str) -> AsyncIterator[str]:
    """The bootstrap server of a running one."""
    if name == "trionet":
        async with trionet.open_broker() as broker:
            yield broker.bootstrap_servers
        return
    with contextlib.ExitStack() as stack:
        address, _ = await trio.to_thread.run_sync(stack.enter_context, kafka_node())
        yield address


async def _run_all(chosen: argparse.Namespace) -> list[Filling]:
    settings = {
        "delivery.timeout.ms": chosen.delivery_timeout_ms,
        "request.timeout.ms": min(30_000, chosen.delivery_timeout_ms // 2),
    }
    cases = itertools.cycle(CASES)
    done: list[Filling] = []
    async with (
        _cluster(chosen.cluster) as servers,
        trionet.open_admin(servers) as admin,
        trionet.open_producer(servers, settings) as shared,
    ):
        while len(done) < chosen.topics:
            case = next(cases)
            count = min(case.at_once, chosen.topics - len(done))
            fillings = [Filling(f"new-{len(done) + each}", case) for each in range(count)]
            topics = [each.topic for each in fillings]
            if not chosen.auto_create:
                wished = [NewTopic(each, 1, 1) for each in topics]
                (await admin.create_topics(wished)).checked()
            async with trio.open_nursery() as nursery:
                for each in fillings:
                    if case.is_fresh:
                        nursery.start_soon(each.run_alone, servers, settings)
                    else:
                        nursery.start_soon(each.run, shared)
            for each in fillings:
                each.ledger.check((await read_log(servers, each.topic, [0]))[0])
                _report_problems(each)
            (await admin.delete_topics(topics)).checked()
            done += fillings
    return done


def _report_problems(filling: Filling) -> None:
    if filling.is_wrong:
        print(
            f"{filling.topic} ({filling.case}): {filling.waited_seconds:.1f} s,"
            f" {filling.errors.total()} failures",
            *(f"  WRONG: {count} x {text}" for text, count in filling.errors.items()),
            *(f"  WRONG: {text}" for text in filling.ledger.wrong),
            sep="\n",
            flush=True,
        )


def _report(done: list[Filling]) -> int:
    """What became of all, by case; the exit status."""
    for case in CASES:
        group = [each for each in done if each.case == case]
        if not group:
            continue
        seconds = sum(each.seconds for each in group) / case.at_once
        print(
            f"{case}: {_counted(group)};"
            f" {case.load.records * len(group) / seconds:,.0f} records/s,"
            f" slowest delivery {max(each.waited_seconds for each in group):.2f} s"
        )
    print(f"all: {_counted(done)}")
    return 1 if any(each.is_wrong for each in done) else 0


def _counted(group: list[Filling]) -> str:
    return (
        f"{len(group)} topics, {sum(each.is_stalled for each in group)} stalls,"
        f" {sum(each.errors.total() for each in group)} failures,"
        f" {sum(bool(each.ledger.wrong) for each in group)} logs wrong"
    )
