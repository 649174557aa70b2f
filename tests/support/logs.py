"""Record batches to put into a log, and what a log holds."""

from __future__ import annotations

from collections.abc import Iterator

from trionet.broker.log import Log, LogRead
from trionet.protocol.records._batch import BatchHeader, iter_batches
from trionet.protocol.records._records import encode_batch


def batch(
    count: int = 1,
    value: bytes = b"value",
    timestamp: int = 1000,
    *,
    producer: tuple[int, int, int] = (-1, -1, -1),
    codec: int = 0,
    transactional: bool = False,
) -> bytes:
    """A batch of equal records with an empty key; ``producer`` is id, epoch and base sequence."""
    producer_id, producer_epoch, base_sequence = producer
    return encode_batch(
        [(timestamp, b"", value, [])] * count,
        codec=codec,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=transactional,
    )


def timed_batch(*timestamps: int) -> bytes:
    """A batch with a record for each timestamp."""
    return encode_batch([(timestamp, None, b"value", []) for timestamp in timestamps])


def bytes_of(read: LogRead) -> bytes:
    """What a reader gets from a range, by its descriptor alone."""
    records = read.records
    data = b""
    with open(records.file.fileno(), "rb", closefd=False, buffering=0) as file:
        file.seek(records.offset)
        while len(data) < records.count:
            data += file.read(records.count - len(data))
    return data


def stored(log: Log) -> bytes:
    """All batches of a log, from its start to its high watermark, as a consumer fetches them."""
    data = b""
    offset = log.start_offset
    while offset < log.high_watermark:
        read = log.read(offset, 1_000_000)
        piece = bytes_of(read)
        assert piece
        end = 0
        for position, header in iter_batches(piece):
            offset = header.last_offset + 1
            end = position + header.size
        data += piece[:end]
    return data


def headers(log: Log) -> list[BatchHeader]:
    """The headers of all batches of a log."""
    return [header for _, header in iter_batches(stored(log))]


def placed(batches: list[bytes], base_offset: int = 0, leader_epoch: int = 0) -> Iterator[bytes]:
    """The batches as a log stores them: with their offsets and its leader epoch."""
    for data in batches:
        ((_, header),) = iter_batches(data)
        yield header._replace(base_offset=base_offset, leader_epoch=leader_epoch).pack() + data[61:]
        base_offset += header.count
