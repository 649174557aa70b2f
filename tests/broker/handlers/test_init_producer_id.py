from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from support.client import Client, connect
from support.small_disk import small_disk
from trionet import Broker, open_broker
from trionet.protocol import error_codes
from trionet.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

IDS_PER_BLOCK = 1000


async def ask(
    client: Client, transactional_id: str | None = None, version: int = 5, **fields: Any
) -> InitProducerIdResponse:
    request = InitProducerIdRequest(transactional_id=transactional_id, **fields)
    response = await client.call(request, version)
    assert isinstance(response, InitProducerIdResponse)
    return response


@pytest.mark.parametrize("version", range(6))
async def test_every_producer_gets_an_id_of_its_own(client: Client, version: int) -> None:
    answers = [await ask(client, version=version) for _ in range(3)]

    assert [(0, 0)] * 3 == [(answer.error_code, answer.producer_epoch) for answer in answers]
    assert 3 == len({answer.producer_id for answer in answers})
    assert all(answer.producer_id >= 0 for answer in answers)


async def test_a_producer_that_has_an_id_gets_another_one(client: Client) -> None:
    """Without transactions nobody but the partitions knows the epochs (KIP-360)."""
    first = await ask(client)

    second = await ask(client, producer_id=first.producer_id, producer_epoch=3)

    assert (0, 0) == (second.error_code, second.producer_epoch)
    assert first.producer_id != second.producer_id


@pytest.mark.parametrize("transactional_id", ["", "tx"])
async def test_a_transactional_id_is_refused(client: Client, transactional_id: str) -> None:
    answer = await ask(client, transactional_id)

    assert (error_codes.INVALID_REQUEST, -1, -1) == (
        answer.error_code,
        answer.producer_id,
        answer.producer_epoch,
    )


async def test_no_id_is_given_twice_to_many_who_ask_at_once(broker: Broker) -> None:
    ids: list[int] = []

    async def take() -> None:
        async with connect(broker.bootstrap_servers) as each:
            ids.extend([(await ask(each)).producer_id for _ in range(110)])

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(take)

    assert 2 * IDS_PER_BLOCK < len(ids) == len(set(ids))


async def test_no_id_is_given_twice_after_a_restart(tmp_path: Path) -> None:
    ids: list[int] = []
    for _ in range(4):
        async with (
            open_broker(log_dirs=str(tmp_path)) as broker,
            connect(broker.bootstrap_servers) as client,
        ):
            ids += [(await ask(client)).producer_id for _ in range(3)]

    assert sorted(set(ids)) == ids


async def test_a_full_disk_is_an_error_that_clients_try_again_after(tmp_path: Path) -> None:
    with small_disk(tmp_path, 2 * 1024 * 1024) as disk:
        async with (
            open_broker(log_dirs=str(tmp_path)) as broker,
            connect(broker.bootstrap_servers) as client,
        ):
            disk.fill()
            answers = [await ask(client) for _ in range(IDS_PER_BLOCK + 1)]
            disk.give_back()
            after = await ask(client)

    assert {error_codes.NONE, error_codes.KAFKA_STORAGE_ERROR} >= {
        answer.error_code for answer in answers
    }
    assert error_codes.KAFKA_STORAGE_ERROR == answers[-1].error_code
    assert 0 == after.error_code
