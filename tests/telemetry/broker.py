"""The broker of a run, in a process of its own: it ends when its stdin does.

Its arguments: its settings as JSON. It prints its bootstrap server when it listens. For a second in
each ten it throttles who asks for groups, as if that exceeded a quota.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import trio

import trionet
from trionet.broker.api._call import Call
from trionet.broker.api._dispatch import Apis, Handle
from trionet.server._request_channel import Request

#: What is throttled, how long each time, and for which part of the time: as long as anything may be
#: throttled each call is looked at.
THROTTLED = "ListGroups"
THROTTLE_MS = 150
ON_SECONDS, OFF_SECONDS = 1.0, 9.0


async def _throttle(apis: Apis, nursery: trio.Nursery) -> None:
    async def end(request: Request) -> None:
        await trio.sleep(THROTTLE_MS / 1000)
        request.end_throttling()

    async def intercept(message: Any, call: Call, handle: Handle) -> Any:
        answer = await handle(message, call)
        if call.codec.name == THROTTLED:
            answer.throttle_time_ms = THROTTLE_MS
            call.request.start_throttling()
            nursery.start_soon(end, call.request)
        return answer

    while True:
        apis.interceptor = intercept
        await trio.sleep(ON_SECONDS)
        apis.interceptor = None
        await trio.sleep(OFF_SECONDS)


async def _main(settings: dict[str, object]) -> None:
    async with trionet.open_broker(settings) as broker, trio.open_nursery() as nursery:
        nursery.start_soon(_throttle, broker._apis, nursery)
        print(broker.bootstrap_servers, flush=True)
        await trio.to_thread.run_sync(sys.stdin.read)
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(_main, json.loads(sys.argv[1]))
