"""Serves a broker's metrics on Unix sockets of its user; see :mod:`trionet.net._local_socket`.

It is on by default, so it must cost a start nothing that could be felt, and never prevent one: the
pages and HTTP are loaded when the first client connects, and whatever fails is logged.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Final

import trio

from ..._util._logging import get_logger
from ...net._local_socket import IS_SUPPORTED, LocalSocket, is_local, is_own_peer
from ...net.wire._endpoint import Endpoint

if TYPE_CHECKING:
    from ._metrics_listener import FindPage

logger = get_logger("trionet.server.metrics")

#: The key that turns the sockets off.
KEY: Final = "metrics.local.enable"
#: Connections are from the user's own processes, so that no pause needs to protect the loop.
_ACCEPT_PAUSE_SECONDS: Final = 0.0
_MODULES: Final = tuple(
    f"{__package__}.{name}" for name in ("_http_exchange", "_metrics_listener", "_metrics_pages")
)


@contextmanager
def open_local_sockets(kind: str, endpoints: Iterable[Endpoint]) -> Iterator[list[LocalSocket]]:
    """Open a socket for each endpoint that clients reach by a loopback address.

    Those that cannot be opened are logged and left out.

    Args:
        kind: what is served; see :class:`.LocalSocket`.
        endpoints: the bound endpoints of the server.
    """
    with ExitStack() as stack:
        opened: list[LocalSocket] = []
        for endpoint in filter(is_local, endpoints if IS_SUPPORTED else ()):
            try:
                opened.append(stack.enter_context(LocalSocket(kind, endpoint)))
            except OSError as error:
                logger.warning(
                    "%s: `trionet dashboard` on this machine will not show the inside of this"
                    " broker: %s: %s; %s = false turns this off",
                    endpoint,
                    error.filename or "no folder for a socket",
                    error.strerror or error,
                    KEY,
                )
        yield opened


async def serve_locally(
    sockets: Sequence[LocalSocket], make_pages: Callable[[], FindPage], modules: Iterable[str]
) -> None:
    """Serve pages and actions to processes of the same user until cancelled.

    Args:
        sockets: the open sockets; the caller closes them, unless an error has.
        make_pages: makes the pages; called once the first client has connected.
        modules: the modules that ``make_pages`` imports, and that take long to load.
    """
    try:
        await _any_readable(sockets)
        # In a thread, since loading takes 15 ms, for which the loop must not stop.
        await trio.to_thread.run_sync(_load, (*modules, *_MODULES))
        from ._http_exchange import HttpRules
        from ._metrics_listener import ListenerLimits, MetricsListener

        listener = MetricsListener(
            make_pages(),
            rules=HttpRules(allows_orders=True),
            limits=ListenerLimits(accept_pause_seconds=_ACCEPT_PAUSE_SECONDS),
            admits=is_own_peer,
        )
        async with trio.open_nursery() as nursery:
            for each in sockets:
                nursery.start_soon(listener.serve, each.sock, name="local-metrics")
    except Exception:  # boundary: the broker goes on without
        logger.exception("unexpected error while serving metrics on a local socket; closing it")
        for each in sockets:
            each.close()


async def _any_readable(sockets: Iterable[LocalSocket]) -> None:
    """Wait until a client has connected to one of the sockets."""
    async with trio.open_nursery() as nursery:

        async def wait(sock: socket.socket) -> None:
            await trio.lowlevel.wait_readable(sock)
            nursery.cancel_scope.cancel(reason="a client has connected")

        for each in sockets:
            nursery.start_soon(wait, each.sock)


def _load(modules: Iterable[str]) -> None:
    for name in modules:
        import_module(name)
