"""A client that has met something else than a broker of Kafka says so."""

from __future__ import annotations

import logging
from functools import partial

import pytest
import trio

from trionet.client.opening import open_network_client


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"", "ended: the peer closed the connection"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "it looks like text that begins with 'HTTP'"),
        (b"\x15\x03\x03\0\2\2\x28", "it looks like TLS"),
    ],
)
async def test_a_connection_that_ends_before_versions_are_told_is_a_warning(
    answer: bytes, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def other(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        if answer:
            await stream.send_all(answer)
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
    assert told in caplog.text
    assert "that may be a listener for TLS or SASL (security.protocol)" in caplog.text
