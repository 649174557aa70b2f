"""Open a broker again and again in one trio program; prints how long each took to respond."""

from __future__ import annotations

import json
import os
import sys
import time

import trio

import trionet
from bench.frames import api_versions
from support.processes import memory_bytes


async def _one(request: bytes) -> dict[str, float]:
    begin = time.perf_counter()
    async with trionet.open_broker() as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        stream = await trio.open_tcp_stream(host, int(port))
        async with stream:
            await stream.send_all(request)
            reply = await stream.receive_some(10)
        seconds = time.perf_counter() - begin
        if reply[8:10] != b"\0\0":
            raise RuntimeError(f"another answer than expected: {reply!r}")
        return {"ms": seconds * 1000, "memory": memory_bytes(os.getpid())}


async def _main(starts: int) -> None:
    request = api_versions().content
    print(json.dumps([await _one(request) for _ in range(starts)]))


if __name__ == "__main__":
    trio.run(_main, int(sys.argv[1]))
