"""A connection is freed when it closes, without a garbage collection of cycles.

In a process of a broker's own, what has survived a full collection is frozen, and never collected
as part of a cycle. So clients could otherwise make the broker grow without end.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
import trio

from support.brokers import broker_and_client, settled
from support.calls import batch, create_topic, fetch, produce
from support.client import Client, connect
from support.group_calls import join_alone
from trionet.net._channel import Channel


@pytest.fixture(autouse=True)
def no_collections() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def channels() -> list[Channel]:
    return [each for each in gc.get_objects() if isinstance(each, Channel)]


async def serve_all(client: Client) -> None:
    """Requests that succeed."""
    await create_topic(client, "t")
    await produce(client, "t", batch(b"v"))
    await fetch(client, "t")
    await join_alone(client)


METADATA = b"\0\3\0\x0c\0\0\0\1\0\1a\0"


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="end of the stream"),
        pytest.param(b"\0\0\0\x20abc", id="end within a frame"),
        pytest.param(b"\0\0\0\5hello", id="short header"),
        pytest.param(b"\xff\xff\xff\xff", id="negative size"),
        pytest.param(b"\x7f\xff\xff\xff", id="large size"),
        pytest.param(b"\0\0\0\x0a\x7f\xff\0\0\0\0\0\1\xff\xff", id="unknown API"),
        pytest.param(b"\0\0\0\x20" + METADATA + b"\xff" * 20, id="malformed body"),
        pytest.param(b"\0\0\0\x20" + METADATA + bytes(20), id="bytes behind the body"),
    ],
)
async def test_a_connection_is_freed_when_it_closes(sent: bytes) -> None:
    async with broker_and_client() as (broker, first):
        await serve_all(first)
        assert 1 == len(channels())

        async with connect(broker.bootstrap_servers) as client:
            assert isinstance(client.stream, trio.SocketStream)
            if sent:
                await client.stream.send_all(sent)
            await client.stream.send_eof()
            while await client.stream.receive_some():
                pass
        await settled(broker)

        assert 1 == len(channels())
