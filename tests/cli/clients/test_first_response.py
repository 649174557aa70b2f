"""A command waits for a broker that may respond, and not where every server refuses."""

from __future__ import annotations

import logging
from argparse import Namespace
from contextlib import AbstractContextManager

import pytest
import trio
from trio.testing import MockClock

from support.scripted_node import ScriptedNode
from trionet import open_admin, open_broker, open_producer
from trionet.cli.clients._connection import logging_to_stderr
from trionet.cli.clients._first_response import HELD_SECONDS, connect
from trionet.errors import DisconnectedError
from trionet.testing import MemoryNetwork

HOST = "10.0.0.9"
ADDRESS = f"{HOST}:9092"


@pytest.fixture
def network() -> MemoryNetwork:
    return MemoryNetwork()


async def serve(network: MemoryNetwork, after: float = 0.0, advertised: str = ADDRESS) -> None:
    await trio.sleep(after)
    settings = {
        "listeners": f"PLAINTEXT://{ADDRESS}",
        "advertised.listeners": f"PLAINTEXT://{advertised}",
    }
    async with open_broker(settings, network=network):
        await trio.sleep_forever()


@pytest.mark.parametrize(
    ("option", "advice"),
    [("-m 60", "-b sets the address, -m 60 waits longer"), ("", "-b sets the address")],
)
async def test_an_address_that_may_be_mistyped_is_named_with_the_options_that_help(
    network: MemoryNetwork, autojump_clock: MockClock, option: str, advice: str
) -> None:
    async with open_admin(ADDRESS, network=network) as admin:
        with pytest.raises(DisconnectedError) as raised:
            await connect(admin, option=option)

    assert 2 == pytest.approx(trio.current_time())
    assert (
        f"nothing listens at 10.0.0.9:9092 (connection refused); gave up after 2 s ({advice})"
    ) == str(raised.value)


async def test_an_address_that_responds_is_not_mistyped(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    async with trio.open_nursery() as nursery, open_admin(ADDRESS, network=network) as admin:
        nursery.start_soon(serve, network, 0.0, "10.0.0.7:9092")

        with pytest.raises(DisconnectedError, match=r"; gave up after 2 s \(-m 60 waits longer\)$"):
            await connect(admin, option="-m 60")

        nursery.cancel_scope.cancel()


async def test_with_a_limit_of_the_users_own_nothing_is_waited_for(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    async with trio.open_nursery() as nursery, open_admin(ADDRESS, network=network) as admin:
        nursery.start_soon(serve, network, 30.0)

        await connect(admin, option="-m 60", waits=True)
        assert await admin.nodes()

        nursery.cancel_scope.cancel()


# The log.


def log_held_back() -> AbstractContextManager[None]:
    arguments = Namespace(prog="trionet topics list", log_level="warning")
    return logging_to_stderr(arguments, holds=True)


async def test_the_log_repeats_nothing_of_the_error(
    network: MemoryNetwork, autojump_clock: MockClock, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not even what a client tried before it was asked to."""
    with log_held_back():
        async with open_producer(ADDRESS, network=network) as producer:
            await trio.sleep(1)
            with pytest.raises(DisconnectedError):
                await connect(producer)

    assert "" == capsys.readouterr().err


async def test_what_was_logged_until_the_response_is_written(
    network: MemoryNetwork, autojump_clock: MockClock, capsys: pytest.CaptureFixture[str]
) -> None:
    with log_held_back():
        async with trio.open_nursery() as nursery, open_admin(ADDRESS, network=network) as admin:
            nursery.start_soon(serve, network, 1.0)
            logging.getLogger("trionet.client").warning("something else")
            assert "trionet topics list: something else\n" == capsys.readouterr().err

            await connect(admin)

            [written] = capsys.readouterr().err.splitlines()
            nursery.cancel_scope.cancel()

    assert "connection refused" in written


async def test_what_is_logged_of_a_silent_server_is_written_meanwhile(
    network: MemoryNetwork, autojump_clock: MockClock, capsys: pytest.CaptureFixture[str]
) -> None:
    silent = ScriptedNode(network, 9, HOST)
    silent.replies.clear()
    with log_held_back():
        async with (
            silent.listening(),
            open_admin(ADDRESS, network=network) as admin,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(connect, admin)
            await trio.sleep(HELD_SECONDS + 1)
            assert "no response to ApiVersions within 2 s" in capsys.readouterr().err
            nursery.cancel_scope.cancel()


async def test_with_a_limit_of_the_users_own_the_log_is_written_at_once(
    network: MemoryNetwork, autojump_clock: MockClock, capsys: pytest.CaptureFixture[str]
) -> None:
    with log_held_back():
        async with open_producer(ADDRESS, network=network) as producer:
            await connect(producer, waits=True)
            await trio.sleep(1)
            assert "connection refused" in capsys.readouterr().err
