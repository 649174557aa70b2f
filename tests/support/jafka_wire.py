"""A raw peer of a Jafka broker: whole requests out, the error and body of a response in."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from support.wire import Peer
from trionet.jafka import JafkaBroker, open_jafka_broker
from trionet.jafka._codec import (
    decode_count,
    decode_offsets,
    decode_parts,
    decode_response,
    encode_messages,
    encode_request,
)
from trionet.jafka._requests import (
    CreaterRequest,
    DeleterRequest,
    FetchRequest,
    JafkaRequest,
    MultiFetchRequest,
    OffsetRequest,
    ProducerRequest,
)

ALL = 1_000_000


def entry(payload: bytes, *, magic: int = 1, attributes: int = 0, crc: int | None = None) -> bytes:
    """An entry of a message set, with anything in its header."""
    crc = zlib.crc32(payload) if crc is None else crc
    header = bytes([magic]) if magic == 0 else bytes([magic, attributes])
    message = header + crc.to_bytes(4, "big") + payload
    return len(message).to_bytes(4, "big") + message


class JafkaPeer(Peer):
    """Sends requests; what has no response is followed by one that has, to see it handled."""

    async def ask(self, request: JafkaRequest) -> tuple[int, bytes]:
        """Send a request, and receive the error and the body of its response."""
        await self.send(encode_request(request))
        error, body = decode_response(await self.receive_frame())
        return error, bytes(body)

    async def produce(self, messages: bytes, topic: str = "demo", partition: int = 0) -> None:
        """Append to a partition, and wait until that has been done."""
        await self.send(encode_request(ProducerRequest(topic, partition, messages)))
        assert (0, []) == decode_parts_of(await self.ask(MultiFetchRequest(())))

    async def fetch(
        self, offset: int = 0, bytes_max: int = ALL, topic: str = "demo", partition: int = 0
    ) -> tuple[int, bytes]:
        """The error and the message set."""
        return await self.ask(FetchRequest(topic, partition, offset, bytes_max))

    async def offsets(
        self, time: int = -1, count_max: int = 10, topic: str = "demo", partition: int = 0
    ) -> list[int]:
        error, body = await self.ask(OffsetRequest(topic, partition, time, count_max))
        assert error == 0
        return decode_offsets(body)

    async def create(self, partitions: int, topic: str = "demo", enlarge: int = 1) -> int:
        error, body = await self.ask(CreaterRequest(topic, partitions, enlarge))
        assert error == 0
        return decode_count(body)

    async def delete(self, password: str | None = None, topic: str = "demo") -> int:
        error, body = await self.ask(DeleterRequest(topic, password))
        assert error == 0
        return decode_count(body)

    async def is_closed_by(self, request: JafkaRequest | bytes) -> bool:
        """Send a request or a frame; whether the connection ends without a response."""
        await self.send(request if isinstance(request, bytes) else encode_request(request))
        return await self.receive_to_end() == b""


def decode_parts_of(response: tuple[int, bytes]) -> tuple[int, list[tuple[int, bytes]]]:
    """The parts of a MultiFetch response as bytes, that compare and print."""
    error, body = response
    return error, [(error, bytes(data)) for error, data in decode_parts(body)]


async def connect(broker: JafkaBroker) -> JafkaPeer:
    return await JafkaPeer.connect(int(broker.address.rpartition(":")[2]))


@asynccontextmanager
async def open_peer(**settings: object) -> AsyncIterator[JafkaPeer]:
    """A peer of a broker of its own."""
    async with open_jafka_broker(**settings) as broker:
        with await connect(broker) as peer:
            yield peer


def messages(*payloads: bytes) -> bytes:
    return encode_messages(payloads)
