"""`python3 tests ordeal first-batches [CLUSTER]...`: producers begin, and their first batches fail.

A seed has many short-lived producers, each at new partitions, behind a proxy that refuses, flips,
loses or delays each of the first batches and of their retries. Of two successive batches, the first
seed has every combination of fates; of three, the first six have, and so on.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

import attrs
import trio

import trionet
from ordeal.beginners import Beginner, drawn_beginners
from ordeal.client_log import add_log_argument, log_to
from ordeal.fates import KINDS, Fates
from ordeal.logs import read_log
from ordeal.run import in_words
from support.cache import Unavailable
from support.kafka_node import kafka_node
from support.kafka_proxy import KafkaProxy, open_kafka_proxy
from trionet import Admin, TopicPartition
from trionet.client.admin import NewTopic, OffsetSpec

logger = logging.getLogger("ordeal")

_BEGINNERS: Final = len(KINDS) ** 2
#: However many batches are sent again.
_PATIENCE_SECONDS: Final = 60.0


@attrs.frozen
class Rig:
    """A running cluster of one broker with a proxy in front of it.

    Attributes:
        bootstrap_servers: of the broker.
        proxied: of the proxy.
        proxy: disturbs what goes through it.
    """

    bootstrap_servers: str
    proxied: str
    proxy: KafkaProxy


@asynccontextmanager
async def _trionet() -> AsyncIterator[Rig]:
    async with (
        trionet.open_broker() as broker,
        open_kafka_proxy(broker.bootstrap_servers) as (proxied, proxy),
    ):
        yield Rig(broker.bootstrap_servers, proxied, proxy)


@asynccontextmanager
async def _kafka() -> AsyncIterator[Rig]:
    with contextlib.ExitStack() as stack:
        address, _ = await trio.to_thread.run_sync(stack.enter_context, kafka_node())
        async with open_kafka_proxy(address) as (proxied, proxy):
            yield Rig(address, proxied, proxy)


RIGS: Final[Mapping[str, Callable[[], AbstractAsyncContextManager[Rig]]]] = {
    "trionet": _trionet,
    "kafka": _kafka,
}


@attrs.frozen
class Outcome:
    """What came of a seed.

    Attributes:
        seed: of what was drawn.
        seconds: how long it took.
        counts: how often what happened.
        wrong: in words.
    """

    seed: int
    seconds: float
    counts: Counter[str]
    wrong: list[str]


def main(arguments: list[str]) -> int:
    """Run, report, and say by the exit status whether nothing was wrong."""
    parser = argparse.ArgumentParser(
        prog="python3 tests ordeal first-batches",
        description="Many producers begin at new partitions, and a proxy refuses, flips, loses and"
        " delays their first batches. trionet: a broker of our own; kafka: Apache Kafka.",
    )
    parser.add_argument("clusters", nargs="*", metavar="CLUSTER", help=", ".join(RIGS))
    parser.add_argument("--seed", type=int, default=0, help="the first one (default %(default)s)")
    parser.add_argument("--seeds", type=int, default=100, help="how many (default %(default)s)")
    add_log_argument(parser)
    chosen = parser.parse_args(arguments)
    log_to(chosen.log)
    unknown = set(chosen.clusters) - set(RIGS)
    if unknown:
        parser.error(f"no such cluster: {', '.join(unknown)}; there are {', '.join(RIGS)}")
    seeds = range(chosen.seed, chosen.seed + chosen.seeds)
    bad = 0
    for name in chosen.clusters or RIGS:
        try:
            bad += trio.run(_run_all, name, seeds)
        except Unavailable as reason:
            print(f"{name}: skipped: {reason}")
    return 1 if bad else 0


async def _run_all(name: str, seeds: range) -> int:
    """All seeds against one cluster; how many went wrong."""
    bad = 0
    counts: Counter[str] = Counter()
    began = time.perf_counter()
    async with RIGS[name]() as rig:
        for seed in seeds:
            logger.info("%s seed %d", name, seed)
            outcome = await run(rig, seed)
            counts += outcome.counts
            bad += bool(outcome.wrong)
            _report(name, outcome)
    took = time.perf_counter() - began
    print(
        f"{name}: {len(seeds)} seeds, {took:,.0f} s: {bad} seeds went wrong",
        f"  {_listed(counts)}",
        sep="\n",
        flush=True,
    )
    return bad


def _report(name: str, outcome: Outcome) -> None:
    acknowledged = outcome.counts["acknowledged"]
    print(
        f"{name} seed {outcome.seed}, {outcome.seconds:.1f} s: {acknowledged} acknowledged",
        *(f"  WRONG: {each}" for each in outcome.wrong),
        sep="\n",
        flush=True,
    )


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in sorted(counts.items()))


async def run(rig: Rig, seed: int) -> Outcome:
    """Run one seed against a cluster."""
    began = trio.current_time()
    topic = f"first-batches-{seed}-{random.SystemRandom().randrange(1 << 32):08x}"
    beginners = drawn_beginners(seed, _BEGINNERS)
    partitions = max(each for beginner in beginners for each in beginner.partitions) + 1
    rig.proxy.fate_of = fates = Fates(
        seed, {beginner.partitions[0]: beginner.number for beginner in beginners}
    )
    wrong: list[str] = []
    try:
        async with trionet.open_admin(rig.bootstrap_servers) as admin:
            await _create(admin, topic, partitions)
            wrong += await _send_and_check(rig, topic, beginners, fates)
            (await admin.delete_topics([topic])).checked()
    except* Exception as errors:  # boundary: one run
        wrong += in_words(errors)
    rig.proxy.arrivals.forget(topic)
    counts = sum((each.ledger.counts for each in beginners), fates.counts)
    return Outcome(seed, trio.current_time() - began, counts, wrong)


async def _send_and_check(
    rig: Rig, topic: str, beginners: list[Beginner], fates: Fates
) -> list[str]:
    """What was wrong, with what led to it."""
    with trio.move_on_after(_PATIENCE_SECONDS):
        async with trio.open_nursery() as nursery:
            for beginner in beginners:
                nursery.start_soon(beginner.run, rig.proxied, topic)
    owners = {each: beginner for beginner in beginners for each in beginner.partitions}
    found, _ = await read_log(rig.bootstrap_servers, topic, owners)
    wrong: list[str] = []
    for beginner in beginners:
        beginner.check([each for each in found if each[0] in beginner.partitions])
        if beginner.ledger.wrong:
            story = [line for each in beginner.partitions for line in fates.story(each)]
            wrong.append("\n      ".join([str(beginner), *beginner.ledger.wrong, *story]))
    return wrong


async def _create(admin: Admin, topic: str, partitions: int) -> None:
    (await admin.create_topics([NewTopic(topic, partitions, 1)])).checked()
    # Leaders of half of them take batches from now on; the others are still new to their broker.
    places = [TopicPartition(topic, each) for each in range(0, partitions, 2)]
    (await admin.list_offsets(dict.fromkeys(places, OffsetSpec.LATEST))).checked()
