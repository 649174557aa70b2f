"""``python3 demo netstrings``: Kafka's network layer serves netstrings, such as ``5:hello,``.

Clients get back what they send, reversed. Only a client that breaks the rules is disconnected.
"""

import argparse
import re
import sys
from functools import partial

import trio

import trionet
from trionet.server import CloseReason, Dialect, Request, Served

#: What a client sends, what it gets, and why its connection ends.
STORY = [
    (b"3:one,3:two,0:,", b"3:eno,3:owt,0:,", CloseReason.PEER_CLOSED),
    (b"4:good,03:bad,", b"4:doog,", CloseReason.INVALID_RECEIVE),
    (b"4:what?", b"", CloseReason.INVALID_RECEIVE),
    (b"999999999:", b"", CloseReason.INVALID_RECEIVE),
    (b"8:goes on.,", b"8:.no seog,", CloseReason.PEER_CLOSED),
]


def read_head(data: bytes) -> tuple[int, int] | None:
    size, colon, _ = data.partition(b":")
    if not re.fullmatch(rb"0|[1-9][0-9]{0,8}", size):
        raise ValueError(f"{size!r} is not the size of a netstring")
    return (len(size) + 1, int(size)) if colon else None


NETSTRINGS = Dialect.length_prefixed(read_head, write_head=lambda size: b"%d:" % size, tail=b",")


async def reverse(request: Request) -> bytes:
    return bytes(request.payload[::-1])


async def is_as_expected() -> bool:
    actual = []
    async with trio.open_nursery() as nursery:
        serve = partial(trionet.serve, dialect=NETSTRINGS)
        served: Served = await nursery.start(serve, reverse, ["PLAINTEXT://127.0.0.1:0"])
        for sent, _, _ in STORY:
            async with await trio.open_tcp_stream(served[0].host, served[0].port) as client:
                await client.send_all(sent)
                await client.send_eof()
                got = b"".join([data async for data in client])
            [(_, end)] = served.server.closed_connections.page(1)
            actual.append((sent, got, end.reason))
            print(f"{sent.decode():15} -> {got.decode():15} {end.detail or end.reason.name}")
        await served.stop()
    return actual == STORY


if __name__ == "__main__":
    argparse.ArgumentParser(prog="python3 demo netstrings", description=__doc__).parse_args()
    sys.exit(0 if trio.run(is_as_expected) else 1)
