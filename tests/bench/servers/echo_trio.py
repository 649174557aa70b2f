"""A length-prefixed echo on `trio.serve_tcp`: one task per connection."""

from __future__ import annotations

import contextlib
from functools import partial

import trio


async def _echo(stream: trio.SocketStream) -> None:
    rest = b""
    with contextlib.suppress(trio.BrokenResourceError):  # the generator leaves without a goodbye
        while chunk := await stream.receive_some(4096):
            rest += chunk
            position = 0
            while len(rest) >= position + 4:
                end = position + 4 + int.from_bytes(rest[position : position + 4], "big")
                if len(rest) < end:
                    break
                await stream.send_all(rest[position:end])
                position = end
            rest = rest[position:]


async def _main() -> None:
    async with trio.open_nursery() as nursery:
        serve = partial(trio.serve_tcp, _echo, 0, host="127.0.0.1", backlog=8192)
        listeners: list[trio.SocketListener] = await nursery.start(serve)
        print(listeners[0].socket.getsockname()[1], flush=True)


if __name__ == "__main__":
    trio.run(_main)
