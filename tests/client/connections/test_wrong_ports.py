"""A client that has met something else than what it was set up for says so, and what to set."""

from __future__ import annotations

import logging
from functools import partial

import pytest
import trio

from trionet.client.network._open_client import open_network_client


@pytest.mark.parametrize(
    ("response", "cause"),
    [
        (b"", "the listener probably speaks TLS; set security.protocol=SSL"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "text of another protocol, which begins with 'HTTP'"),
        (b"\x15\x03\x03\0\2\2\x28", "the listener speaks TLS; set security.protocol=SSL"),
    ],
)
async def test_connection_that_ends_before_the_response_to_api_versions_is_a_warning(
    response: bytes, cause: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def other(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        if response:
            await stream.send_all(response)
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        serve = partial(trio.serve_tcp, host="127.0.0.1")
        [listener] = await nursery.start(serve, other, 0)
        port = listener.socket.getsockname()[1]
        async with open_network_client(f"127.0.0.1:{port}") as client:
            while not caplog.text:
                await client.poll()
        nursery.cancel_scope.cancel()

    [record, *_] = caplog.records
    assert logging.WARNING == record.levelno
    assert f"could not connect to 127.0.0.1:{port} (bootstrap): " in record.getMessage()
    assert cause in record.getMessage()
