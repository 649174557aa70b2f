"""A command waits for a broker that may respond, and not where every server refuses."""

from __future__ import annotations

import logging
from argparse import Namespace
from functools import partial

import pytest
import trio
from trio.testing import MockClock

from trionet import open_admin, open_broker
from trionet.cli.clients._connection import logging_to_stderr
from trionet.cli.clients._first_response import REFUSED_SECONDS, first_response
from trionet.errors import DisconnectedError
from trionet.testing import MemoryNetwork

ADDRESS = "10.0.0.9:9092"


@pytest.fixture
def network() -> MemoryNetwork:
    return MemoryNetwork()


async def serve(network: MemoryNetwork, after: float) -> None:
    await trio.sleep(after)
    async with open_broker({"listeners": f"PLAINTEXT://{ADDRESS}"}, network=network):
        await trio.sleep_forever()


async def test_nothing_that_listens_is_said_after_two_seconds(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    async with open_admin(ADDRESS, network=network) as admin:
        with pytest.raises(DisconnectedError) as raised:
            await first_response(admin, admin.nodes, option="-m 60")

    assert 2 == pytest.approx(trio.current_time())
    assert (
        "nothing listens at 10.0.0.9:9092 (connection refused); gave up after 2 s (-b sets the"
        " address, -m 60 waits longer)"
    ) == str(raised.value)


async def test_all_servers_are_named_as_typed(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    async with open_admin(f"{ADDRESS},10.0.0.8:9", network=network) as admin:
        with pytest.raises(DisconnectedError, match=r"at 10\.0\.0\.9:9092 or 10\.0\.0\.8:9 \("):
            await first_response(admin, admin.nodes)


@pytest.mark.parametrize(("after", "waits"), [(REFUSED_SECONDS / 2, False), (30.0, True)])
async def test_a_broker_may_start_beside_the_command_and_later_where_that_was_asked_for(
    network: MemoryNetwork, autojump_clock: MockClock, after: float, waits: bool
) -> None:
    async with trio.open_nursery() as nursery, open_admin(ADDRESS, network=network) as admin:
        nursery.start_soon(serve, network, after)

        assert await first_response(admin, admin.nodes, waits=waits)

        nursery.cancel_scope.cancel()


async def test_one_that_is_slow_to_respond_is_waited_for(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    async with trio.open_nursery() as nursery, open_admin(ADDRESS, network=network) as admin:
        nursery.start_soon(serve, network, 0.0)

        assert 5 == await first_response(admin, partial(slowly, 5))

        nursery.cancel_scope.cancel()


async def slowly(seconds: int) -> int:
    await trio.sleep(seconds)
    return seconds


@pytest.fixture
def arguments() -> Namespace:
    return Namespace(prog="trionet topics list", log_level="warning")


async def test_the_log_repeats_nothing_of_it(
    network: MemoryNetwork,
    autojump_clock: MockClock,
    arguments: Namespace,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with logging_to_stderr(arguments):
        async with open_admin(ADDRESS, network=network) as admin:
            with pytest.raises(DisconnectedError):
                await first_response(admin, admin.nodes)

    assert "" == capsys.readouterr().err


async def test_what_was_logged_until_the_response_is_written(
    network: MemoryNetwork,
    autojump_clock: MockClock,
    arguments: Namespace,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with logging_to_stderr(arguments):
        async with open_admin(ADDRESS, network=network) as admin:

            async def ask() -> None:
                await trio.lowlevel.checkpoint()
                logging.getLogger("trionet.client").warning("something else")

            await first_response(admin, ask)

            assert "trionet topics list: something else\n" == capsys.readouterr().err
