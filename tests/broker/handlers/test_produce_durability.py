"""What an acknowledgement promises of the disk, and what a slow or full one does."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
import trio

from support.calls import batch, create_topic, fetch, produce, produce_request, values_of
from support.client import connect
from support.small_disk import small_disk
from trionet import open_broker
from trionet.protocol import error_codes


async def test_with_flush_messages_1_an_acknowledged_record_is_on_the_disk(
    tmp_path: Path,
) -> None:
    async with (
        open_broker(log_dirs=str(tmp_path)) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        await create_topic(client, "t", flush_messages=1)
        log = broker._state.folder.logs["t", 0]

        answer = await produce(client, "t", batch(b"a", b"b"))

        assert (0, 2, 2) == (answer.error_code, log.recovery_point, log.high_watermark)


async def test_with_flush_messages_1_a_repetition_is_acknowledged_once_the_first_is_on_the_disk(
    tmp_path: Path,
) -> None:
    async with (
        open_broker(log_dirs=str(tmp_path)) as broker,
        connect(broker.bootstrap_servers) as one,
        connect(broker.bootstrap_servers) as other,
    ):
        await create_topic(one, "t", flush_messages=1)
        log = broker._state.folder.logs["t", 0]

        numbered = batch(b"0", producer_id=7, producer_epoch=0, base_sequence=0)
        await one.send(produce_request("t", numbered), 9)
        answer = await produce(other, "t", numbered)

        assert (0, 0, 1) == (answer.error_code, answer.base_offset, log.recovery_point)


async def test_a_full_disk_is_a_storage_error_and_no_loss(tmp_path: Path) -> None:
    with small_disk(tmp_path, 4 * 1024 * 1024) as disk:
        async with (
            open_broker(log_dirs=str(tmp_path)) as broker,
            connect(broker.bootstrap_servers) as client,
        ):
            await create_topic(client, "t")
            await produce(client, "t", batch(b"before"))
            disk.fill()
            refused = await produce(client, "t", batch(b"x" * 100_000))
            meanwhile = values_of(await fetch(client, "t"))
            disk.give_back()
            after = await produce(client, "t", batch(b"after"))

            assert error_codes.KAFKA_STORAGE_ERROR == refused.error_code
            assert [b"before"] == meanwhile
            assert (0, 1) == (after.error_code, after.base_offset)
        async with (
            open_broker(log_dirs=str(tmp_path)) as broker,
            connect(broker.bootstrap_servers) as client,
        ):
            assert [b"before", b"after"] == values_of(await fetch(client, "t"))


async def test_a_slow_disk_holds_no_handler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    sync = os.fdatasync

    def sync_when_told(descriptor: int) -> None:
        go_on.wait(10)
        sync(descriptor)

    with trio.fail_after(10):
        async with (
            open_broker(log_dirs=str(tmp_path), num_io_threads=1) as broker,
            connect(broker.bootstrap_servers) as slow,
            connect(broker.bootstrap_servers) as other,
        ):
            await create_topic(slow, "t", flush_messages=1)
            await create_topic(slow, "quick")
            monkeypatch.setattr(os, "fdatasync", sync_when_told)
            await slow.send(produce_request("t", batch(b"a")), 9)

            meanwhile = await produce(other, "quick", batch(b"b"))
            hidden = await fetch(other, "t")
            go_on.set()
            answer = await slow.receive()

            assert 0 == meanwhile.error_code
            assert 0 == hidden.high_watermark
            assert 0 == answer.responses[0].partition_responses[0].error_code
