from __future__ import annotations

import ast
import struct
from collections.abc import Iterator

import pytest

from protocol.generator import coverage
from support.brokers import close_reasons, settled
from support.client import connect, encode_request
from trionet import Broker, open_broker
from trionet.broker.run._served_apis import APIS
from trionet.net.wire._close_reason import CloseReason
from trionet.protocol import error_codes
from trionet.protocol._codec import lookup
from trionet.protocol.messages.api_versions import ApiVersionsRequest
from trionet.protocol.messages.describe_cluster import DescribeClusterRequest
from trionet.protocol.messages.describe_transactions import DescribeTransactionsRequest
from trionet.protocol.messages.init_producer_id import InitProducerIdRequest
from trionet.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

PRODUCE, METADATA, API_VERSIONS, INIT_PRODUCER_ID, DESCRIBE_CLUSTER = 0, 3, 18, 22, 60
SERVED = {
    0: (0, 13),
    1: (0, 18),
    2: (0, 11),
    3: (0, 13),
    8: (0, 10),
    9: (0, 10),
    10: (0, 6),
    11: (0, 9),
    12: (0, 4),
    13: (0, 5),
    14: (0, 5),
    15: (0, 6),
    16: (0, 5),
    18: (0, 4),
    19: (0, 7),
    20: (0, 6),
    22: (0, 5),
    32: (0, 4),
    42: (0, 2),
    47: (0, 0),
    60: (0, 2),
}


def header(
    key: int, version: int, correlation_id: int = 7, client_id: bytes | None = b"t"
) -> bytes:
    length = -1 if client_id is None else len(client_id)
    return struct.pack(">hhih", key, version, correlation_id, length) + (client_id or b"")


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


async def closed_after(broker: Broker, payload: bytes) -> CloseReason:
    """Why the connection ended on which this frame was sent; nothing may have been answered."""
    async with connect(broker.bootstrap_servers) as client:
        await client.send_bytes(framed(payload))
        assert b"" == await client.receive_to_end()
    [reason] = await close_reasons(broker)
    return reason


def unserved() -> Iterator[tuple[int, int]]:
    for key, (lowest, highest) in SERVED.items():
        if key != API_VERSIONS:
            yield from ((key, version) for version in (-1, lowest - 1, highest + 1, 32767))
    yield from ((key, 0) for key in (4, 7, 27, 68, 93, 999, -1, -32768))


@pytest.mark.parametrize(("key", "version"), sorted(set(unserved())))
async def test_what_is_not_served_closes_the_connection(key: int, version: int) -> None:
    """P7: an API that is not served at all, as well as a version."""
    async with open_broker() as broker:
        reason = await closed_after(broker, header(key, version) + b"whatever follows")

    assert CloseReason.UNSUPPORTED_VERSION is reason


async def test_the_log_says_which_versions_are_served(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "trionet.server")
    async with open_broker() as broker, connect(broker.bootstrap_servers) as client:
        await client.send_bytes(framed(header(PRODUCE, 14)))
        await client.receive_to_end()

        assert {CloseReason.UNSUPPORTED_VERSION: 1} == await close_reasons(broker)
        assert "Produce version 14 is not served; served versions: 0 to 13" in caplog.text


@pytest.mark.slow
async def test_every_advertised_version_has_codecs() -> None:
    async with open_broker() as broker, connect(broker.bootstrap_servers) as client:
        response = await client.call(ApiVersionsRequest(), 0)

    without = [
        (api.api_key, version)
        for api in response.api_keys
        for version in range(api.min_version, api.max_version + 1)
        if lookup(api.api_key, version) is None
    ]
    assert [] == without


@pytest.mark.parametrize("version", [5, 99, 32767, -1])
@pytest.mark.parametrize("body", [b"", b"\x00", b"no known form \xff"])
async def test_api_versions_of_an_unknown_version_gets_a_response_as_version_0(
    version: int, body: bytes
) -> None:
    """The body is not looked at: only the sender knows its form (KIP-511)."""
    async with open_broker() as broker, connect(broker.bootstrap_servers) as client:
        await client.send_bytes(framed(header(API_VERSIONS, version) + body))
        payload = await client.receive_frame()
        retried = await client.call(ApiVersionsRequest(), 0)

    codec = lookup(API_VERSIONS, 0)
    assert codec is not None
    response = codec.decode_response(payload, 4)
    assert struct.pack(">i", 7) == payload[:4]
    assert error_codes.UNSUPPORTED_VERSION == response.error_code
    assert [(0, 4)] == [
        (api.min_version, api.max_version)
        for api in response.api_keys
        if api.api_key == API_VERSIONS
    ]
    assert error_codes.NONE == retried.error_code


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(b"", id="no-byte"),
        pytest.param(b"\x00", id="one-byte"),
        pytest.param(header(METADATA, 1)[:9], id="header-cut"),
        pytest.param(header(METADATA, 1, client_id=b"abc")[:-1], id="client-id-cut"),
        pytest.param(struct.pack(">hhih", METADATA, 1, 7, -2), id="client-id-of-length-minus-2"),
        pytest.param(header(METADATA, 1), id="no-body"),
        pytest.param(header(METADATA, 1) + struct.pack(">i", 2**31 - 1), id="array-too-long"),
        pytest.param(header(METADATA, 1) + struct.pack(">i", -2), id="array-of-minus-2"),
        pytest.param(header(DESCRIBE_CLUSTER, 0), id="no-tags-in-the-header"),
        pytest.param(header(DESCRIBE_CLUSTER, 0) + b"\x00\x00", id="no-tags-in-the-body"),
        pytest.param(header(DESCRIBE_CLUSTER, 0) + b"\xff" * 20, id="endless-varint"),
    ],
)
async def test_what_does_not_decode_closes_the_connection(payload: bytes) -> None:
    async with open_broker() as broker:
        reason = await closed_after(broker, payload)

    assert CloseReason.INVALID_REQUEST is reason


async def test_a_client_id_may_be_in_any_encoding_as_with_kafka() -> None:
    async with open_broker() as broker, connect(broker.bootstrap_servers) as client:
        payload = header(METADATA, 1, client_id="Müller".encode("latin-1")) + struct.pack(">i", 0)
        await client.send_bytes(framed(payload))

        assert struct.pack(">i", 7) == (await client.receive_frame())[:4]


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize("padding", [0, 5000], ids=["short", "long"])
async def test_strings_that_are_not_utf_8_are_replaced_as_by_kafka(
    version: int, padding: int
) -> None:
    """Java's decoder puts U+FFFD in the place of what is not valid."""
    name = "id" * padding
    request = InitProducerIdRequest(transactional_id=f"@{name}", transaction_timeout_ms=1000)
    codec = lookup(INIT_PRODUCER_ID, version)
    assert codec is not None

    async with open_broker() as broker, connect(broker.bootstrap_servers) as client:
        await client.send_bytes(encode_request(request, version).replace(b"@", b"\xff"))
        payload = await client.receive_frame()
        described = await client.call(
            DescribeTransactionsRequest(transactional_ids=[f"\ufffd{name}"]), 0
        )

    response = codec.decode_response(payload, 4 + codec.response_header_version)
    assert error_codes.NONE == response.error_code
    [transaction] = described.transaction_states
    assert (error_codes.NONE, response.producer_id) == (
        transaction.error_code,
        transaction.producer_id,
    )


async def test_request_of_too_many_elements_closes_the_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One array and its elements: with as many as request.max.elements allows it is served."""
    caplog.set_level("DEBUG", "trionet.server")
    topic = struct.pack(">h", 1) + b"t"
    async with open_broker(request_max_elements=10) as broker:
        async with connect(broker.bootstrap_servers) as client:
            topics = [MetadataRequestTopic(name="t") for _ in range(9)]
            assert await client.call(MetadataRequest(topics=topics), 1)

            many = header(METADATA, 1) + struct.pack(">i", 10) + topic * 10
            await client.send_bytes(framed(many))
            assert b"" == await client.receive_to_end()

        assert {CloseReason.INVALID_REQUEST: 1} == await close_reasons(broker)
        assert "MetadataRequest.topics: 10 more elements exceed the limit" in caplog.text
        assert "request.max.elements" in caplog.text


async def test_what_one_connection_does_wrong_is_not_the_others_business() -> None:
    async with open_broker() as broker, connect(broker.bootstrap_servers) as good:
        before = await good.call(ApiVersionsRequest(), 0)
        await closed_after(broker, b"garbage, but framed")
        after = await good.call(ApiVersionsRequest(), 0)

    assert before == after


async def test_responses_come_in_the_order_of_the_requests() -> None:
    async with open_broker() as broker, connect(broker.bootstrap_servers) as client:
        for version in range(5):
            await client.send(MetadataRequest(topics=[]), version + 4)
            await client.send(ApiVersionsRequest(), 0)

        answers = [type(await client.receive()).__name__ for _ in range(10)]

    assert ["MetadataResponse", "ApiVersionsResponse"] * 5 == answers


@pytest.mark.parametrize("client_id", [None, "", "ä client", "x" * 1000])
async def test_a_client_may_call_itself_anything(client_id: str | None) -> None:
    async with open_broker() as broker, connect(broker.bootstrap_servers, client_id) as client:
        old = await client.call(ApiVersionsRequest(), 0)
        flexible = await client.call(DescribeClusterRequest(), 0)

    assert (0, 0) == (old.error_code, flexible.error_code)


async def test_unknown_tags_are_skipped_in_the_header_and_in_the_body() -> None:
    tags = b"\x02\x64\x03abc\x65\x00"  # tags 100 and 101 of three bytes and none
    request = header(DESCRIBE_CLUSTER, 0) + tags + b"\x00" + tags
    async with open_broker() as broker, connect(broker.bootstrap_servers) as client:
        await client.send_bytes(framed(request))
        payload = await client.receive_frame()

    codec = lookup(DESCRIBE_CLUSTER, 0)
    assert codec is not None
    assert broker.cluster_id == codec.decode_response(payload, 5).cluster_id


async def test_a_frame_that_arrives_byte_by_byte_gets_a_response() -> None:
    frame = encode_request(MetadataRequest(topics=None), 12)
    async with open_broker() as broker, connect(broker.bootstrap_servers) as client:
        for position in range(len(frame)):
            await client.send_bytes(frame[position : position + 1])
            await settled(broker)
        payload = await client.receive_frame()

    assert struct.pack(">i", 1) == payload[:4]


async def test_calls_are_counted_by_api() -> None:
    async with open_broker() as broker, connect(broker.bootstrap_servers) as client:
        for _ in range(3):
            await client.call(MetadataRequest(topics=[]), 9)
        await client.call(ApiVersionsRequest(), 0)

        assert {"Metadata": 3, "ApiVersions": 1} == (await settled(broker)).calls


def test_handlers_that_are_said_not_to_wait_cannot() -> None:
    """They run in the turn of a processor, which has others to serve.

    Long calls have a task of their own, where they do.
    """
    for api in APIS:
        if not api.never_waits:
            continue
        _, handle = coverage.handler_of(api.key)
        waits = (ast.Await, ast.AsyncFor, ast.AsyncWith)
        apart = {
            inner
            for node in ast.walk(handle)
            if isinstance(node, ast.If) and "call.is_long" == ast.unparse(node.test)
            for statement in node.body
            for inner in ast.walk(statement)
        }

        assert not [
            node for node in ast.walk(handle) if isinstance(node, waits) and node not in apart
        ]
