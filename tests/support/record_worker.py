"""A program that handles the records of a topic, notes each in a file, and prints a dot for it.

It is killed at any time: ``python record_worker.py SERVERS FILE SEED``.
"""

from __future__ import annotations

import os
import random
import sys

import trio

import trionet


async def main(servers: str, path: str, seed: str) -> None:
    rng = random.Random(seed)
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    async def handle(record: trionet.ConsumerRecord) -> None:
        await trio.sleep(rng.uniform(0, 0.02))
        os.write(file, b"%d %d\n" % (record.partition, record.offset))
        os.write(1, b".")

    await trionet.process_records(
        servers,
        "t",
        handle,
        group_id="g",
        auto_offset_reset="earliest",
        auto_commit_interval_ms=20,
        heartbeat_interval_ms=50,
        session_timeout_ms=6000,
        concurrency=10,
        order="key" if rng.random() < 0.5 else None,
    )


trio.run(main, sys.argv[1], sys.argv[2], sys.argv[3])
