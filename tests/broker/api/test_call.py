from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from support.client import Client, connect, encode_request, host_and_port
from support.wire import Peer
from trionet import SocketServer
from trionet.broker.api._call import Call
from trionet.broker.api._dispatch import Api, Apis
from trionet.broker.api._long_calls import LongCalls
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._endpoint import Endpoint
from trionet.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from trionet.server import NO_OP, CloseConnection

API_VERSIONS = 18
ANSWER = ApiVersionsResponse(api_keys=[ApiVersion(api_key=18, max_version=4)])

Handle = Callable[[Any, Call], Awaitable[Any]]


class Serving:
    """A server of one API, and a client of it."""

    def __init__(self, server: SocketServer, address: str, client: Client) -> None:
        self.server = server
        self.address = address
        self.client = client

    async def close_reasons(self) -> dict[CloseReason, int]:
        await trio.testing.wait_all_tasks_blocked()
        return self.server.statistics().closed


@asynccontextmanager
async def serving(handle: Handle) -> AsyncIterator[Serving]:
    async with trio.open_nursery() as nursery:
        long_calls = LongCalls(nursery, 1_000_000)
        apis = Apis([Api(API_VERSIONS, 0, 4, handle)], long_calls)
        server = SocketServer(apis.handle, [Endpoint.parse("PLAINTEXT://127.0.0.1:0")])
        endpoints: list[Endpoint] = await nursery.start(server.run)
        async with connect(endpoints[0].address, "me") as client:
            yield Serving(server, endpoints[0].address, client)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("version", range(5))
async def test_a_call_reports_who_asks_and_in_which_version(version: int) -> None:
    calls = []

    async def handle(request: ApiVersionsRequest, call: Call) -> ApiVersionsResponse:
        calls.append(call)
        return ANSWER

    async with serving(handle) as serve:
        await serve.client.call(ApiVersionsRequest(), version)

    [call] = calls
    assert (version, 1, "me") == (call.version, call.correlation_id, call.client_id)
    assert "PLAINTEXT" == call.listener_name


async def test_a_response_may_be_given_long_after_the_handler_has_returned() -> None:
    waiting: list[Call] = []

    async def handle(request: ApiVersionsRequest, call: Call) -> None:
        waiting.append(call)

    async with serving(handle) as serve:
        await serve.client.send(ApiVersionsRequest(), 4)
        await trio.testing.wait_all_tasks_blocked()

        waiting[0].respond(ANSWER)

        assert ANSWER == await serve.client.receive()


async def test_a_response_to_a_peer_that_has_gone_is_dropped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    waiting: list[Call] = []

    async def handle(request: ApiVersionsRequest, call: Call) -> None:
        waiting.append(call)

    async with serving(handle) as serve:
        with await Peer.connect(host_and_port(serve.address)[1]) as leaving:
            await leaving.send(encode_request(ApiVersionsRequest(), 0))
            await trio.testing.wait_all_tasks_blocked()
            leaving.reset()
        await trio.testing.wait_all_tasks_blocked()

        waiting[0].respond(ANSWER)

        assert {CloseReason.PEER_RESET: 1} == await serve.close_reasons()
        # It is not even encoded, but the request is over, and is counted as every other.
        assert waiting[0].request.response is NO_OP
    assert [] == [record for record in caplog.records if record.levelname != "INFO"]


async def test_a_call_that_is_given_up_closes_its_connection_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    waiting: list[Call] = []

    async def handle(request: ApiVersionsRequest, call: Call) -> None:
        waiting.append(call)

    async with serving(handle) as serve:
        await serve.client.send(ApiVersionsRequest(), 0)
        await trio.testing.wait_all_tasks_blocked()

        waiting[0].fail(ZeroDivisionError("ours"))

        assert b"" == await serve.client.receive_to_end()
        assert {CloseReason.HANDLER_FAILED: 1} == await serve.close_reasons()
    [record] = caplog.records
    assert "unexpected error in ApiVersions" in record.message
    assert record.exc_info is not None


async def test_a_late_response_that_cannot_be_encoded_fails_its_own_call_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    waiting: list[Call] = []

    async def handle(request: ApiVersionsRequest, call: Call) -> None:
        waiting.append(call)

    async with serving(handle) as serve, connect(serve.address) as other:
        await serve.client.send(ApiVersionsRequest(), 4)
        await trio.testing.wait_all_tasks_blocked()
        await other.send(ApiVersionsRequest(), 4)
        await trio.testing.wait_all_tasks_blocked()

        # As one task completes the calls of all members of a group.
        for call, error_code in zip(waiting, (70_000, 0), strict=True):
            call.respond(ApiVersionsResponse(error_code=error_code))

        assert b"" == await serve.client.receive_to_end()
        assert 0 == (await other.receive()).error_code
        assert {CloseReason.HANDLER_FAILED: 1} == await serve.close_reasons()
    [message] = caplog.messages
    assert "unexpected error in ApiVersions" in message


async def test_a_call_that_had_its_response_before_it_is_given_up_keeps_it() -> None:
    waiting: list[Call] = []

    async def handle(request: ApiVersionsRequest, call: Call) -> None:
        waiting.append(call)

    async with serving(handle) as serve:
        await serve.client.send(ApiVersionsRequest(), 4)
        await trio.testing.wait_all_tasks_blocked()

        waiting[0].respond(ANSWER)
        waiting[0].fail(ZeroDivisionError("ours"))

        assert ANSWER == await serve.client.receive()
        assert {} == await serve.close_reasons()


async def test_a_handler_may_return_no_response_or_the_end_of_the_connection() -> None:
    async def handle(request: ApiVersionsRequest, call: Call) -> Any:
        if call.version == 0:
            return NO_OP
        return CloseConnection(CloseReason.INVALID_REQUEST, "enough")

    async with serving(handle) as serve:
        await serve.client.send_unanswered(ApiVersionsRequest(), 0)
        await serve.client.send_unanswered(ApiVersionsRequest(), 1)

        assert b"" == await serve.client.receive_to_end()
        assert {CloseReason.INVALID_REQUEST: 1} == await serve.close_reasons()


async def test_an_unexpected_error_of_a_handler_closes_that_connection_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def handle(request: ApiVersionsRequest, call: Call) -> ApiVersionsResponse:
        if call.version == 1:
            raise ZeroDivisionError("ours")
        return ANSWER

    async with serving(handle) as serve, connect(serve.address) as other:
        await serve.client.send(ApiVersionsRequest(), 1)

        assert b"" == await serve.client.receive_to_end()
        assert ANSWER.api_keys == (await other.call(ApiVersionsRequest(), 0)).api_keys
        assert {CloseReason.HANDLER_FAILED: 1} == await serve.close_reasons()
    [message] = caplog.messages
    assert message.startswith("[SocketServer broker 0] unexpected error")


async def test_a_response_that_cannot_be_encoded_closes_that_connection_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def handle(request: ApiVersionsRequest, call: Call) -> ApiVersionsResponse:
        return ApiVersionsResponse(error_code=70_000 if call.version == 1 else 0)

    async with serving(handle) as serve, connect(serve.address) as other:
        await serve.client.send(ApiVersionsRequest(), 1)

        assert b"" == await serve.client.receive_to_end()
        assert 0 == (await other.call(ApiVersionsRequest(), 0)).error_code
    [message] = caplog.messages
    assert message.startswith("[SocketServer broker 0] unexpected error")
