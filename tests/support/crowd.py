"""Clients of a broker that give each view of a dashboard something to show, until they are ended.

As a program: ``crowd.py HOST:PORT [MANY]``; it prints a line when all of it is there.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Final

import trio

from trionet import open_admin, open_consumer, open_producer
from trionet.client._topic_partition import TopicPartition
from trionet.client.admin import Admin, NewTopic
from trionet.protocol.messages.init_producer_id import InitProducerIdRequest
from trionet.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from trionet.protocol.records._records import encode_batch
from trionet.testing import open_raw_peer

#: How many topics, groups, clients and strangers: more than a screen of 40 lines has room for.
MANY: Final = 60
READERS: Final = 2
#: What clients and groups may be called, and what must not reach a terminal as it is.
HOSTILE: Final = (
    "\x1b[2J\x1b]0;taken over\x07",
    "\x9b31m",
    "[bold]markup[/nope]",
    "two\nlines\tand more",
    "\u202eright to left",
    "zero\u200bwidth",
    "日本語のクライアント",
    "👩‍👩‍👧 family",
    "combined é́́",
    "w" * 300,
)
RECORDS: Final = (
    b'{"id": 1, "name": "Ada"}',
    b"plain text",
    b"\x00\x01\xfe\xff",
    b"\x1b[2J\x1b[31m escapes",
    "日本語の記録 \u202e turned".encode(),
    b"long " * 2000,
)
#: When the minutes of results are; the newest one is now.
MINUTE_MS: Final = 60_000


async def main(address: str, many: int, hostile: Sequence[str] = HOSTILE) -> None:
    """Come to a broker, and stay; some clients, groups and transactions have hostile names."""
    async with open_admin(address) as admin, trio.open_nursery() as nursery:
        await _make_topics(admin, many)
        await _write(address)
        for name in (*hostile, *(f"idle-{number:02}" for number in range(many))):
            (await admin.alter_group_offsets(name, {TopicPartition("orders", 0): 1})).checked()
        await _transact(address, [*hostile, *(f"till-{number:02}" for number in range(many))])
        for name in (*hostile, *(f"client-{number:02}" for number in range(many))):
            await nursery.start(_stay, address, name)
        for number in range(READERS):
            await nursery.start(_read, address, f"reader-{number}")
        for _ in range(many):
            await _disturb(address)
        print("ready", flush=True)


async def _transact(address: str, ids: Sequence[str]) -> None:
    """Have transactional ids, of which the last one has an open transaction."""
    async with open_raw_peer(address) as peer:
        producers = [
            await peer.call(
                InitProducerIdRequest(transactional_id=id, transaction_timeout_ms=900_000), 5
            )
            for id in ids
        ]
        producer = producers[-1]
        records = encode_batch(
            [(0, None, b"a coffee", ())],
            transactional=True,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            base_sequence=0,
        )
        partition = PartitionProduceData(index=0, records=records)
        data = [TopicProduceData(name="topic-00", partition_data=[partition])]
        await peer.call(ProduceRequest(transactional_id=ids[-1], acks=-1, topic_data=data), 12)


async def _stay(address: str, name: str, *, task_status: trio.TaskStatus[None]) -> None:
    async with open_admin(address, client_id=name) as admin:
        await admin.describe_cluster()
        task_status.started()
        await trio.sleep_forever()


async def _read(address: str, name: str, *, task_status: trio.TaskStatus[None]) -> None:
    async with open_consumer(
        address,
        group_id="readers",
        topics="orders",
        client_id=name,
        auto_offset_reset="earliest",
    ) as consumer:
        task_status.started()
        async for _ in consumer:
            pass


async def _make_topics(admin: Admin, many: int) -> None:
    names = [NewTopic(f"topic-{number:02}", 2) for number in range(many)]
    names += [NewTopic("orders", 4, configs={"retention.ms": "123456789"})]
    names += [NewTopic("log", 1), NewTopic("log-results", 1), NewTopic("t" * 240, 1)]
    (await admin.create_topics(names)).checked()


async def _write(address: str) -> None:
    async with open_producer(address, linger_ms=0) as producer:
        for number in range(60):
            value = RECORDS[number % len(RECORDS)]
            key = None if number % 3 else f"key {number}".encode()
            await producer.send(
                "orders", value, key=key, partition=number % 4, headers=[("trace", b"\x1b[2J")]
            )
        for name, row in results():
            await producer.send("log-results", json.dumps(row).encode(), key=name)


def results() -> list[tuple[bytes, dict[str, object]]]:
    """What ``trionet pipeline run`` would write of some minutes."""
    found: list[tuple[bytes, dict[str, object]]] = []
    for minute in range(50):
        window = {"window": f"2026-11-22T11:{minute:02}:00Z"}
        found.append((_key("windows", window), {"requests": 60 * minute, "errors": 1}))
        value: dict[str, object]
        for number, client in enumerate((*HOSTILE[:4], "client-01")):
            series = {**window, "api": "Fetch", "client_id": client, "listener": "PLAINTEXT"}
            found.append((_key("requests", series), {"requests": 7, "total_p99_us": 1500}))
            talker = {**window, "measure": "bytes", "rank": number + 1}
            value = {"client_id": client, "principal": "User:ANONYMOUS", "share": 0.25}
            found.append((_key("talkers", talker), {**value, "bytes": 2048}))
        unusual = {**window, "api": "Fetch", "client_id": "client-01", "listener": "PLAINTEXT"}
        value = {"value": 9.0, "expected": 1.0, "spread": 0.5, "score": 8.5}
        found.append((_key("anomalies", {**unusual, "measure": "requests_per_s"}), value))
    last = {"window": "2026-11-22T11:49:00Z"}
    incident: dict[str, object] = {"incident": "2026-11-22T11:48Z", **last, "state": "open"}
    incident |= {"start": "2026-11-22T11:48:00Z", "end": "2026-11-22T11:50:00Z"}
    incident |= {"worst": "2026-11-22T11:49:00Z", "measure": "error_share", "client_id": HOSTILE[0]}
    value = {**incident, "value": 0.5, "expected": 0.0, "score": 8.5, "anomalies": 3}
    names = {name: incident[name] for name in ("window", "incident")}
    found.append((_key("incidents", names), value))
    return found


def _key(kind: str, names: Mapping[str, object]) -> bytes:
    return json.dumps({"kind": kind, **names}).encode()


async def _disturb(address: str) -> None:
    """Have a line in the log and a connection that ended: a stranger speaks something else."""
    host, _, port = address.rpartition(":")
    async with await trio.open_tcp_stream(host, int(port)) as stream:
        await stream.send_all(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
        await stream.receive_some()


if __name__ == "__main__":
    trio.run(main, sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else MANY)
