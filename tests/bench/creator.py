"""The client of the neighbour benchmark that creates what the broker keeps, as fast as it can.

Arguments: the address, what it creates (a key of :data:`REQUESTS`), and how many. It prints
``ready``, waits for a line on stdin, and prints ``done`` when the last one was created.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import trio

from support.client import connect
from support.group_calls import commit_request, join_request
from trionet.protocol import error_codes
from trionet.protocol._codec import Message
from trionet.protocol.messages.init_producer_id import InitProducerIdRequest
from trionet.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

#: How many requests are on their way; the broker takes one of a connection at a time.
AT_ONCE = 32

TOPIC = "honest"


def _topic(number: int) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=f"t{number}")], allow_auto_topic_creation=True
    )


def _transactional_id(number: int) -> InitProducerIdRequest:
    return InitProducerIdRequest(transactional_id=f"t{number}", transaction_timeout_ms=60_000)


#: What is created, with the request that creates one, and its version.
REQUESTS: dict[str, tuple[Callable[[int], Message], int]] = {
    "groups with a member": (lambda number: join_request(group=f"g{number}"), 3),
    "groups with offsets": (lambda number: commit_request({TOPIC: {0: 1}}, group=f"g{number}"), 8),
    "transactional ids": (_transactional_id, 2),
    "auto-created topics": (_topic, 9),
}


def _error_codes(message: Any) -> Iterator[int]:
    """The error codes of a response, whatever its API."""
    if isinstance(code := getattr(message, "error_code", None), int):
        yield code
    for topic in getattr(message, "topics", ()):
        yield from _error_codes(topic)
        for partition in topic.partitions:
            yield from _error_codes(partition)


async def _main(address: str, kind: str, count: int) -> None:
    request_of, version = REQUESTS[kind]
    async with connect(address) as client:
        print("ready", flush=True)
        await trio.to_thread.run_sync(sys.stdin.readline)
        for first in range(0, count, AT_ONCE):
            some = range(first, min(first + AT_ONCE, count))
            for number in some:
                await client.send(request_of(number), version)
            for _ in some:
                response = await client.receive()
                if any(code != error_codes.NONE for code in _error_codes(response)):
                    raise RuntimeError(f"{kind}: {response}")
    print("done", flush=True)


if __name__ == "__main__":
    trio.run(_main, sys.argv[1], sys.argv[2], int(sys.argv[3]))
