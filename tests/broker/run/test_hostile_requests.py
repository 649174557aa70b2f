"""Requests with extreme numbers or false counts disturb nobody but their sender.

A number that fits into its field on the wire may be too large for what is made of it: a sum, a row
of the database, an entry of an index. What is refused for that must not cost others anything.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from support.brokers import broker_and_client, read_all
from support.calls import (
    append,
    batch,
    create_topic,
    describe_topics,
    fetch,
    list_offset,
    produce,
    values_of,
)
from support.client import Client, encode_request
from support.extreme_messages import ExtremeMessages
from support.group_calls import commit, committed
from support.hostile_batches import changed
from support.virtual import connect_in_memory
from trionet import open_broker
from trionet.broker.run._served_apis import APIS
from trionet.protocol.error_codes import INVALID_RECORD, NONE, name_of
from trionet.protocol.messages.registry import APIS as REGISTRY
from trionet.testing import MemoryNetwork, run_virtual

# Longer than any request may be let wait that has to get a response; in virtual time.
WAIT_SECONDS = 100
# Of each API and version, with each seed.
REQUESTS_OF_EACH = 4


def apis() -> Iterator[tuple[str, int]]:
    for api in APIS:
        name = REGISTRY[api.key][0]
        if not name.startswith("sasl_"):  # without SASL there is nothing to be said
            yield from ((name, version) for version in range(api.min_version, api.max_version + 1))


async def send(network: MemoryNetwork, address: str, frame: bytes) -> None:
    """Send a request on a connection of its own, and wait for what comes of it."""
    async with connect_in_memory(network, address) as client:
        await client.stream.send_all(frame)
        with trio.move_on_after(WAIT_SECONDS):
            try:
                await client.stream.receive_some(4)
            except trio.BrokenResourceError:
                pass


async def use(good: Client, number: int) -> None:
    """What others do, and must not notice anything."""
    await append(good, b"%d" % number, topic="good")
    assert {("good", 0): NONE} == await commit(good, {"good": {0: number}}, group="good", version=9)
    assert {("good", 0): number} == await committed(good, group="good")
    data = await fetch(good, "good")
    assert [b"%d" % each for each in range(number + 1)] == values_of(data)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_extreme_numbers_disturb_no_other(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    async def main(network: MemoryNetwork) -> None:
        async with (
            open_broker(network=network) as broker,
            connect_in_memory(network, broker.bootstrap_servers) as good,
        ):
            await create_topic(good, "good", retention_ms=-1)
            for number, (name, version) in enumerate(list(apis()) * REQUESTS_OF_EACH):
                [topic] = await describe_topics(good, "t")
                topic_id = topic.topic_id
                if topic.error_code:
                    topic_id = (await create_topic(good, "t")).topic_id
                rng = random.Random(f"{seed} {number}")
                request = ExtremeMessages(rng, topic_id).request(name, version)
                try:
                    frame = encode_request(request, version)
                except ValueError:
                    continue  # null where this version has no null
                await send(network, broker.bootstrap_servers, frame)
                unexpected = [each for each in caplog.records if each.exc_info]
                assert not unexpected, f"{request}: {unexpected[0].exc_info}"
                if number % 50 == 0:
                    await use(good, number // 50)

    run_virtual(main, seed=seed)


LATEST = -1
COUNT_MAX = 2**31 - 1
# 200 batches of 69 bytes that each claim as many records as the field can say, with valid CRCs.
ATTACK = changed(batch(b"x"), count=COUNT_MAX, last_offset_delta=COUNT_MAX - 1) * 200


async def attack_between(client: Client, first: list[bytes], second: list[bytes]) -> None:
    """Others' records, the attack, and records of others again; all but the attack are taken."""
    await create_topic(client, "t", flush_messages=1)
    await append(client, *first)
    answer = await produce(client, "t", ATTACK)
    assert name_of(INVALID_RECORD) == name_of(answer.error_code)
    await append(client, *second)


@pytest.mark.parametrize("count", [5, 20])
async def test_records_of_others_outlive_batches_that_claim_two_billion_records_each(
    tmp_path: Path, count: int
) -> None:
    first = [b"before %d" % number for number in range(count)]
    second = [b"after %d" % number for number in range(60)]
    async with broker_and_client(log_dirs=str(tmp_path)) as (_, client):
        await attack_between(client, first, second)
        assert first + second == await read_all(client)
    # A graceful stop: the next start trusts the indexes and scans nothing.
    async with broker_and_client(log_dirs=str(tmp_path)) as (_, client):
        assert first + second == await read_all(client)
        assert count + 60 == (await list_offset(client, "t", LATEST)).offset
        await append(client, b"one more")
        assert [*first, *second, b"one more"] == await read_all(client)


async def test_in_memory_records_of_others_stay_readable_too() -> None:
    first = [b"before %d" % number for number in range(20)]
    second = [b"after %d" % number for number in range(60)]
    async with broker_and_client() as (_, client):
        await attack_between(client, first, second)

        assert first + second == await read_all(client)
