"""Codec work of whole requests: header, decoding, checks of batches, encoding, and framing.

What a broker spends on one request besides its log, sockets and queues; `CRC alone` is the checksum
of the same records. A run is many short rounds, all sides in turn, and the best round of each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from bench.codecs import Statement, best_of_rounds
from bench.measured import Figure, Measured
from bench.messages import MEGABYTE, fetch, heartbeat, produce
from bench.options import Options
from trionet.protocol import api_keys
from trionet.protocol._codec import ApiVersionCodec, lookup
from trionet.protocol._header import (
    decode_request_header,
    encode_request_header,
    encode_response_header,
    frame,
    skip_tags,
)
from trionet.protocol._wire import Message
from trionet.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from trionet.protocol.messages.heartbeat import HeartbeatResponse
from trionet.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from trionet.protocol.records._batch import (
    CRC_START,
    HEADER_SIZE,
    BatchHeader,
    check_crc,
    read_header,
)
from trionet.protocol.records._crc32c import crc32c
from trionet.protocol.records._records import encode_batch

RUNS = 3
SECONDS = 0.5
SIDE: Final = "trionet"
CRC: Final = "CRC alone"
BATCH_BYTES: Final = 16 * 1024


def measure(options: Options) -> Measured:
    """Run the benchmark."""
    measured = Measured(
        "codec work of whole requests in a broker",
        (Figure("rate", "requests/s"), Figure("us", "µs", "{:,.2f}".format)),
    )
    for case, sides in _cases().items():
        if options.wants_case(case):
            wanted = {side: sides[side] for side in sides if options.wants(side)}
            for _ in range(options.runs):
                for side, seconds in best_of_rounds(wanted, options.seconds).items():
                    measured.add(case, side, {"rate": 1 / seconds, "us": seconds * 1e6})
    return measured


def _cases() -> dict[str, dict[str, Statement]]:
    heartbeats = _request(api_keys.HEARTBEAT, 4, heartbeat())
    cases = {
        "request header v2": {
            SIDE: Statement("read(data)", {"read": _read_header, "data": heartbeats})
        },
        "Heartbeat v4": {SIDE: _answered(heartbeats, lambda _: HeartbeatResponse())},
    }
    for size, name in ((BATCH_BYTES, "16 KB"), (MEGABYTE, "1 MB")):
        batch = _batch(size)
        checked = memoryview(batch)[CRC_START:]
        cases[f"Produce v9, one batch of {name}"] = {
            SIDE: _answered(_request(api_keys.PRODUCE, 9, produce(batch)), _produced),
            CRC: Statement("crc32c(data)", {"crc32c": crc32c, "data": checked}),
        }
    for partitions, size, name in ((1, MEGABYTE, "1 x 1 MB"), (50, BATCH_BYTES, "50 x 16 KB")):
        data = _request(api_keys.FETCH, 12, fetch(topic="benchmark", partitions=partitions))
        records = bytes(size)
        answer = _fetched(records)
        cases[f"Fetch v12, {name}"] = {SIDE: _answered(data, answer)}
    return cases


def _batch(size: int) -> bytes:
    """One record, in a batch of about so many bytes."""
    return encode_batch([(1_700_000_000_000, None, bytes(size - HEADER_SIZE - 16), ())])


def _codec(api_key: int, version: int) -> ApiVersionCodec:
    codec = lookup(api_key, version)
    assert codec is not None
    return codec


def _request(api_key: int, version: int, message: Message) -> bytes:
    """A request without the size in front, as a handler gets it."""
    codec = _codec(api_key, version)
    chunks: list[Any] = [encode_request_header(codec, 7, "benchmark-client")]
    codec.encode_request(message, chunks)
    return b"".join(chunks)


def _read_header(payload: bytes) -> tuple[int, int, int, str | None, int]:
    key, version, correlation_id, client_id, position = decode_request_header(payload)
    return key, version, correlation_id, client_id, skip_tags(payload, position)


def _answered(data: bytes, answer: Callable[[Any], Message]) -> Statement:
    """From the bytes of a request to the chunks of its response; both are checked once."""
    response = _whole(data, answer)
    assert response
    return Statement("whole(data, answer)", {"whole": _whole, "data": data, "answer": answer})


def _whole(payload: bytes, answer: Callable[[Any], Message]) -> list[Any]:
    key, version, correlation_id, _, position = decode_request_header(payload)
    codec = lookup(key, version)
    assert codec is not None
    if codec.request_header_version == 2:
        position = skip_tags(payload, position)
    message = answer(codec.decode_request(payload, position))
    chunks: list[Any] = [encode_response_header(codec, correlation_id)]
    codec.encode_response(message, chunks)
    return frame(chunks)


def _produced(request: Any) -> ProduceResponse:
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                partition_responses=[
                    PartitionProduceResponse(
                        index=partition.index,
                        base_offset=_checked(partition.records).base_offset,
                        log_start_offset=0,
                    )
                    for partition in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )


def _checked(records: memoryview) -> BatchHeader:
    header = read_header(records)
    assert check_crc(records, 0, header)
    return header


def _fetched(records: bytes) -> Callable[[Any], FetchResponse]:
    def answer(request: Any) -> FetchResponse:
        return FetchResponse(
            responses=[
                FetchableTopicResponse(
                    topic=topic.topic,
                    partitions=[
                        PartitionData(
                            partition_index=partition.partition,
                            high_watermark=200_000,
                            last_stable_offset=200_000,
                            log_start_offset=0,
                            aborted_transactions=None,
                            records=records,
                        )
                        for partition in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    return answer
