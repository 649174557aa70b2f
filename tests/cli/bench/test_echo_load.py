"""Load on an echo server, in virtual time."""

from __future__ import annotations

import pytest
import trio

from trionet.cli.bench._echo_load import EchoLoad
from trionet.cli.bench._results import Result
from trionet.cli.bench._runs import Plan, Run
from trionet.errors import DisconnectedError, TrionetError
from trionet.net.wire._endpoint import Endpoint
from trionet.server import CloseConnection, Request, Response, SocketServer
from trionet.server._handler_pool import Handler
from trionet.testing import MemoryNetwork


def frame(payload: bytes | bytearray) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


async def answered_at_once(request: Request) -> Response:
    return frame(request.payload)


async def asked(handler: Handler, plan: Plan, *, connections: int = 1, size: int = 10) -> Result:
    """What comes of a run against a server with this handler."""
    network = MemoryNetwork()
    server = SocketServer(handler, [Endpoint.parse("PLAINTEXT://127.0.0.1:0")], network=network)
    async with trio.open_nursery() as nursery:
        [bound] = await nursery.start(server.run)
        load = EchoLoad(
            bound.host, bound.port, connections=connections, request_bytes=size, network=network
        )
        result = await load.run(Run("requests", plan, interval=0))
        nursery.cancel_scope.cancel()
    return result


async def test_each_request_is_counted_once(autojump_clock: trio.abc.Clock) -> None:
    result = await asked(answered_at_once, Plan(records_max=1000), connections=7, size=30)

    tally = result.tally
    assert (1000, 30_000, 1000, 0) == (
        tally.records,
        tally.bytes,
        tally.histogram.count,
        tally.failed,
    )


async def test_requests_at_a_rate_are_sent_when_they_are_due(
    autojump_clock: trio.abc.Clock,
) -> None:
    result = await asked(answered_at_once, Plan(records_max=11, rate=10))

    assert 11 == result.tally.records
    assert 1.1 == pytest.approx(result.tally.seconds, abs=0.01)
    assert result.tally.histogram.maximum < 10_000


async def test_a_duration_ends_a_run(autojump_clock: trio.abc.Clock) -> None:
    result = await asked(answered_at_once, Plan(seconds_max=2.0, rate=10))

    assert 20 == result.tally.records


@pytest.mark.parametrize(
    "plan",
    [Plan(seconds_max=1.0, rate=3), Plan(records_max=3, rate=3), Plan(seconds_max=1.0, rate=1)],
)
async def test_the_rate_of_few_requests_is_the_one_that_was_asked_for(
    plan: Plan, autojump_clock: trio.abc.Clock
) -> None:
    result = await asked(answered_at_once, plan)

    assert plan.rate == pytest.approx(result.document()["requests_per_second"], rel=0.01)


async def test_who_would_have_come_while_the_server_stalled_has_waited_too(
    autojump_clock: trio.abc.Clock,
) -> None:
    seen = 0

    async def stalls_once(request: Request) -> Response:
        nonlocal seen
        seen += 1
        if seen == 1:
            await trio.sleep(1)
        return frame(request.payload)

    result = await asked(stalls_once, Plan(records_max=20, rate=10))

    # 10 requests were due during that second, and half of them waited for half of it or more.
    assert 500_000 <= result.tally.histogram.quantile(0.75) <= 600_000
    assert 1_000_000 <= result.tally.histogram.maximum < 1_010_000


async def test_a_response_that_never_comes_has_failed(autojump_clock: trio.abc.Clock) -> None:
    async def never(request: Request) -> Response:
        await trio.sleep_forever()

    result = await asked(never, Plan(seconds_max=1.0), connections=3)

    assert (0, 3, "no response") == (
        result.tally.records,
        result.tally.failed,
        result.tally.failure,
    )


async def test_another_response_is_an_error(autojump_clock: trio.abc.Clock) -> None:
    async def forgets(request: Request) -> Response:
        return frame(bytes(len(request.payload)))

    expected = pytest.RaisesExc(TrionetError, match="a response differs from its request")
    with pytest.RaisesGroup(expected):
        await asked(forgets, Plan(records_max=1))


async def test_a_server_that_closes_is_an_error(autojump_clock: trio.abc.Clock) -> None:
    async def closes(request: Request) -> Response:
        return CloseConnection()

    expected = pytest.RaisesExc(DisconnectedError, match="closed the connection")
    with pytest.RaisesGroup(expected):
        await asked(closes, Plan(records_max=1))


async def test_no_listening_socket_is_an_error(autojump_clock: trio.abc.Clock) -> None:
    load = EchoLoad("127.0.0.1", 1, connections=2, request_bytes=1, network=MemoryNetwork())

    with pytest.raises(DisconnectedError, match=r"^nothing listens at 127\.0\.0\.1:1 "):
        await load.run(Run("requests", Plan(), interval=0))
