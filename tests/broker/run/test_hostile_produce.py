"""One client's hostile Produce must not cost another client a single acknowledged record."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.calls import append, batch, create_topic, fetch, list_offset, produce, values_of
from support.client import Client, connect
from support.hostile_batches import changed
from trionet import open_broker
from trionet.protocol.error_codes import INVALID_RECORD, name_of

LATEST = -1
COUNT_MAX = 2**31 - 1
# 200 batches of 69 bytes that each claim as many records as the field can say, with valid CRCs.
ATTACK = changed(batch(b"x"), count=COUNT_MAX, last_offset_delta=COUNT_MAX - 1) * 200


async def read_all(client: Client) -> list[bytes | None]:
    values: list[bytes | None] = []
    while True:
        data = await fetch(client, "t", len(values))
        assert 0 == data.error_code, f"offset {len(values)}: {name_of(data.error_code)}"
        more = values_of(data)
        if not more:
            return values
        values += more


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
    async with (
        open_broker(log_dirs=str(tmp_path)) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        await attack_between(client, first, second)
        assert first + second == await read_all(client)
    # A graceful stop: the next start trusts the indexes and scans nothing.
    async with (
        open_broker(log_dirs=str(tmp_path)) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        assert first + second == await read_all(client)
        assert count + 60 == (await list_offset(client, "t", LATEST)).offset
        await append(client, b"one more")
        assert [*first, *second, b"one more"] == await read_all(client)


async def test_in_memory_records_of_others_stay_readable_too() -> None:
    first = [b"before %d" % number for number in range(20)]
    second = [b"after %d" % number for number in range(60)]
    async with open_broker() as broker, connect(broker.bootstrap_servers) as client:
        await attack_between(client, first, second)

        assert first + second == await read_all(client)
