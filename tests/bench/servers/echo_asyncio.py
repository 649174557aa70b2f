"""A length-prefixed echo as an asyncio `Protocol`; with the argument `uvloop` on that loop."""

from __future__ import annotations

import asyncio
import sys
from typing import cast


class Echo(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._rest = b""
        self._write = cast(asyncio.WriteTransport, transport).write

    def data_received(self, data: bytes) -> None:
        rest = self._rest + data
        position = 0
        while len(rest) >= position + 4:
            end = position + 4 + int.from_bytes(rest[position : position + 4], "big")
            if len(rest) < end:
                break
            self._write(rest[position:end])
            position = end
        self._rest = rest[position:]


async def _main() -> None:
    server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", 0, backlog=8192)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    if "uvloop" in sys.argv[1:]:
        import uvloop

        uvloop.run(_main())
    else:
        asyncio.run(_main())
