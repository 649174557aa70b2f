"""trionet's own codecs as a client: raw Produce and Fetch requests, and records put in by hand."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from support.clients.client import Arrived, Client, Record
from trionet.protocol.error_codes import NONE, name_of
from trionet.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from trionet.protocol.messages.init_producer_id import InitProducerIdRequest
from trionet.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from trionet.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from trionet.protocol.records._batch import check_crc, iter_batches
from trionet.protocol.records._records import decode_batch, encode_batch
from trionet.protocol.records.compression._codecs import NAMES
from trionet.testing._wire_peer import BlockingRawPeer, raw_peer

CODEC_NUMBERS: Final = {name: number for number, name in NAMES.items()}
BATCH_BYTES_MAX: Final = 900_000
"""Keys and values of one batch, unless a single record is larger."""
_PRODUCE, _FETCH, _LIST_OFFSETS, _INIT_PRODUCER_ID = 9, 12, 7, 4
_WAIT_MS = 20_000
_FETCH_BYTES_MAX = 1 << 20


class ByHand(Client):
    """Writes and reads with trionet's codecs alone; the server must lead every partition."""

    name = "trionet"

    def write(
        self, topic: str, records: Sequence[Record], *, codec: str, is_idempotent: bool
    ) -> list[int]:
        offsets: dict[int, int] = {}
        with raw_peer(self.bootstrap) as peer:
            producer = _producer(peer) if is_idempotent else (-1, -1)
            written: dict[int, int] = {}
            for partition, batch in _batches(records):
                sequence = written.get(partition, 0) if is_idempotent else -1
                written[partition] = written.get(partition, 0) + len(batch)
                data = encode_batch(
                    [_row(record) for _, record in batch],
                    codec=CODEC_NUMBERS[codec],
                    producer_id=producer[0],
                    producer_epoch=producer[1],
                    base_sequence=sequence,
                )
                base = produce_by_hand(peer, topic, partition, data)
                offsets |= {place: base + delta for delta, (place, _) in enumerate(batch)}
        return [offsets[place] for place in range(len(records))]

    def read(self, topic: str, counts: Mapping[int, int], start: int = 0) -> list[Arrived]:
        arrived: list[Arrived] = []
        with raw_peer(self.bootstrap) as peer:
            for partition, count in counts.items():
                read = 0
                at = start
                while read < count:
                    data = fetch_by_hand(peer, topic, partition, at)
                    taken = [each for each in _records(data, partition) if each.offset >= at]
                    assert taken, f"records of {topic} never came: {count - read}"
                    arrived += taken[: count - read]
                    read += len(taken)
                    at = taken[-1].offset + 1
        return arrived

    def offset_for_time(self, topic: str, timestamp: int) -> int | None:
        partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        wanted = [ListOffsetsTopic(name=topic, partitions=[partition])]
        with raw_peer(self.bootstrap) as peer:
            answer = peer.call(ListOffsetsRequest(replica_id=-1, topics=wanted), _LIST_OFFSETS)
        (found,) = answer.topics[0].partitions
        _check(found)
        return None if found.offset < 0 else int(found.offset)


def produce_by_hand(peer: BlockingRawPeer, topic: str, partition: int, batch: bytes) -> int:
    """Write one batch as it is, with acks=all; the offset of its first record."""
    data = PartitionProduceData(index=partition, records=batch)
    wanted = [TopicProduceData(name=topic, partition_data=[data])]
    request = ProduceRequest(acks=-1, timeout_ms=_WAIT_MS, topic_data=wanted)
    answer = peer.call(request, _PRODUCE)
    (done,) = answer.responses[0].partition_responses
    _check(done)
    return int(done.base_offset)


def fetch_by_hand(peer: BlockingRawPeer, topic: str, partition: int, offset: int) -> bytes:
    """The batches from an offset on, as a server gives them: at least one, and whole or not."""
    place = FetchPartition(
        partition=partition, fetch_offset=offset, partition_max_bytes=_FETCH_BYTES_MAX
    )
    request = FetchRequest(
        max_wait_ms=_WAIT_MS, min_bytes=1, topics=[FetchTopic(topic=topic, partitions=[place])]
    )
    answer = peer.call(request, _FETCH)
    (found,) = answer.responses[0].partitions
    _check(found)
    return bytes(found.records or b"")


def stored_codecs(bootstrap: str, topic: str, end: int) -> set[str]:
    """By which codecs the batches of partition 0 are compressed, up to an offset."""
    found = set()
    at = 0
    with raw_peer(bootstrap) as peer:
        while at < end:
            before = at
            for _, header in iter_batches(fetch_by_hand(peer, topic, 0, at)):
                found.add(NAMES[header.codec])
                at = header.base_offset + header.last_offset_delta + 1
            assert at > before, f"the batches of {topic} end at {at}, not at {end}"
    return found


def _producer(peer: BlockingRawPeer) -> tuple[int, int]:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_WAIT_MS)
    answer = peer.call(request, _INIT_PRODUCER_ID)
    _check(answer)
    return answer.producer_id, answer.producer_epoch


def _batches(records: Sequence[Record]) -> Iterator[tuple[int, list[tuple[int, Record]]]]:
    """The records of each batch with their places in `records`."""
    for partition in sorted({record.partition for record in records}):
        batch: list[tuple[int, Record]] = []
        size = 0
        for place, record in enumerate(records):
            if record.partition != partition:
                continue
            length = len(record.key or b"") + len(record.value or b"")
            if batch and size + length > BATCH_BYTES_MAX:
                yield partition, batch
                batch, size = [], 0
            batch.append((place, record))
            size += length
        yield partition, batch


def _row(record: Record) -> tuple[int, bytes | None, bytes | None, Any]:
    timestamp = int(time.time() * 1000) if record.timestamp is None else record.timestamp
    return timestamp, record.key, record.value, record.headers


def _records(data: bytes, partition: int) -> Iterator[Arrived]:
    for position, header in iter_batches(data):
        assert check_crc(data, position, header)
        for offset, timestamp, key, value, headers in decode_batch(data, position):
            record = Record(key, value, tuple(headers), timestamp, partition)
            yield Arrived(offset, record, header.timestamp_type == 1)


def _check(answer: Any) -> None:
    if answer.error_code != NONE:
        raise RuntimeError(f"refused: {name_of(answer.error_code)}")
