"""What the settings of a server refuse, before anything is bound."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest
import trio

import trionet
from support.served import ANYWHERE
from support.serving import echo, listener
from support.wire import Peer, open_sockets
from trionet.errors import ConfigError
from trionet.server import ListenerLimits, Request, ServerConfig, SocketServer

INT_MAX = 2**31 - 1
LIMITS = ListenerLimits(connections_max=1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_network_threads": 0}, "num_network_threads = 0 .* 1 or more"),
        ({"num_io_threads": 0}, "num_io_threads = 0 .* 1 or more"),
        ({"queued_max_requests": 0}, "queued_max_requests = 0 .* 1 or more"),
        ({"socket_request_max_bytes": 0}, "socket_request_max_bytes = 0 .* 1 or more"),
        ({"listener_network_threads": {"A": 0}}, r"listener_network_threads\['A'\] = 0 .* 1 or"),
        ({"listener_network_threads": {"a": 3, "b": -1}}, r"listener_network_threads\['B'\] = -1"),
        ({"socket_listen_backlog_size": 0}, "socket_listen_backlog_size = 0 .* 1 to 2147483647"),
        ({"socket_listen_backlog_size": 2**31}, "socket_listen_backlog_size = 2147483648 "),
        ({"socket_send_buffer_bytes": 0}, "bytes = 0 .* allowed: -1, or 1 to 2147483647"),
        ({"socket_send_buffer_bytes": -2}, "socket_send_buffer_bytes = -2 "),
        ({"socket_send_buffer_bytes": 2**31}, "socket_send_buffer_bytes = 2147483648 "),
        ({"socket_receive_buffer_bytes": 0}, "bytes = 0 .* allowed: -1, or 1 to 2147483647"),
        ({"socket_receive_buffer_bytes": 2**40}, "socket_receive_buffer_bytes = 1099511627776 "),
        ({"connections_max_idle_ms": -2}, "connections_max_idle_ms = -2 .* -1 or more"),
        ({"authentication_timeout_ms": 0}, "authentication_timeout_ms = 0 .* 1 or more"),
        ({"quota_window_num": 0}, "quota_window_num = 0 .* 1 or more"),
        ({"quota_window_size_seconds": 0}, "quota_window_size_seconds = 0 .* above 0"),
        ({"quota_window_size_seconds": math.inf}, "quota_window_size_seconds = inf .* finite"),
        ({"quota_window_size_seconds": math.nan}, "quota_window_size_seconds = nan .* finite"),
    ],
)
def test_a_number_that_cannot_work_is_refused(settings: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ServerConfig(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"listener_network_threads": {"OTHER": 1}}, "listener_network_threads names OTHER, "),
        ({"listener_limits": {"other": LIMITS}}, "listener_limits names OTHER, which is not "),
        ({"protected_listener": "OTHER"}, "protected_listener names OTHER, .* PLAINTEXT$"),
    ],
)
async def test_a_setting_for_a_listener_that_there_is_not_is_an_error_before_anything_is_bound(
    settings: Mapping[str, Any], message: str
) -> None:
    before = open_sockets()
    config = ServerConfig(**settings)

    with trio.fail_after(5), pytest.raises(ConfigError, match=message):
        await trionet.serve(nothing, [ANYWHERE], config=config)

    assert before == open_sockets()


async def nothing(request: Request) -> None:
    """A handler."""


async def test_a_server_without_a_listener_is_an_error() -> None:
    with trio.fail_after(5), pytest.raises(ConfigError, match="no endpoint"):
        await trionet.serve(nothing, [])


async def test_a_setting_names_its_listener_in_any_case() -> None:
    config = ServerConfig(
        listener_network_threads={"plaintext": 1},
        listener_limits={"Plaintext": LIMITS},
        protected_listener="plainText",
    )
    server = SocketServer(echo, [listener()], config)
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            await nursery.start(server.run)

            assert 1 == len(server.processors)
            assert LIMITS == server.quotas.listener("PLAINTEXT").limits
            assert "PLAINTEXT" == server.config.protected_listener
            nursery.cancel_scope.cancel()


async def test_the_largest_numbers_that_are_allowed_work() -> None:
    """The kernel cuts sizes to what it has."""
    config = ServerConfig(
        socket_send_buffer_bytes=INT_MAX,
        socket_receive_buffer_bytes=INT_MAX,
        socket_listen_backlog_size=INT_MAX,
    )
    server = SocketServer(echo, [listener()], config)
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            [endpoint] = await nursery.start(server.run)
            with await Peer.connect(endpoint.port) as peer:
                await peer.send_frames(b"a")

                assert b"a" == await peer.receive_frame()
            nursery.cancel_scope.cancel()
