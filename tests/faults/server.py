"""A SocketServer that is to be disturbed, in a process of its own.

It listens on four listeners and responds by the first byte of a request. The words on its stdin:

* ``report``: what it did and holds;
* ``settle``: the same, when everything that can happen has happened;
* ``empty``: the same, when it holds nothing any more, or it gave that up;
* ``answer``: respond to all requests that wait for it, and to all that come.
"""

from __future__ import annotations

import gc
import logging
import os
import resource
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

import attrs
import trio
from trio.testing import wait_all_tasks_blocked

from faults.program import tell, told
from faults.words import BIG, BIG_BYTES, ECHO, HOLD, KEEP, LATER, LATER_SECONDS
from support.sasl import exchange
from trionet.metrics._loop import LoopMonitor
from trionet.net._channel import Channel
from trionet.net.tls._tls_context import TlsSettings, server_context
from trionet.net.wire._endpoint import Endpoint, SecurityProtocol
from trionet.net.wire._transmission import Send
from trionet.server import ListenerSecurity, Request, Response, ServerConfig, SocketServer
from trionet.server.quotas._connection_limits import ListenerLimits, ServerLimits

LISTENERS = {
    "PLAIN": SecurityProtocol.PLAINTEXT,
    "TLS": SecurityProtocol.SSL,
    "SASL": SecurityProtocol.SASL_PLAINTEXT,
    "FEW": SecurityProtocol.PLAINTEXT,
}
# How long nothing must happen until everything has happened.
QUIET_SECONDS = 0.2
EMPTY_SECONDS_MAX = 30.0
_EMPTY_CHECK_SECONDS = 0.02


@attrs.frozen
class Settings:
    """What the server is told at the start.

    Attributes:
        config: of Kafka's settings, the numbers.
        limits: of the server; see :class:`trionet.server.quotas._connection_limits.ServerLimits`.
        few: limits of the listener FEW.
        address_rates: connections a second by address.
        descriptors_max: how many it may have open; 0 leaves the system's limit.
        certificate: the file of its key and certificate; empty leaves the listener TLS out.
    """

    config: Mapping[str, int]
    limits: Mapping[str, Any] = attrs.field(factory=dict)
    few: Mapping[str, int] = attrs.field(factory=dict)
    address_rates: Mapping[str, int] = attrs.field(factory=dict)
    descriptors_max: int = 0
    certificate: str = ""


class Disturbed:
    """The server and what its responses are."""

    def __init__(self, settings: Settings) -> None:
        names = [name for name in LISTENERS if name != "TLS" or settings.certificate]
        config = ServerConfig(
            **settings.config,  # type: ignore[arg-type]
            limits=ServerLimits(**settings.limits),
            listener_limits={"FEW": ListenerLimits(**settings.few)},
        )
        endpoints = [Endpoint(name, LISTENERS[name], "127.0.0.1", 0) for name in names]
        self.server = SocketServer(self._handle, endpoints, config, _security(settings))
        for address, limit in settings.address_rates.items():
            self.server.quotas.set_address_rate(address, limit)
        self._later: trio.Nursery | None = None
        self._kept: list[Request] = []
        self._may_answer = trio.Event()
        self._monitor = LoopMonitor()
        self._descriptors_at_first = 0

    async def run(self) -> None:
        """Serve until stdin ends."""
        async with AsyncExitStack() as stack:
            nursery = await stack.enter_async_context(trio.open_nursery())
            self._later = nursery
            bound: list[Endpoint] = await nursery.start(self.server.run)
            stack.enter_context(self._monitor)
            self._descriptors_at_first = _descriptors()
            tell({endpoint.listener_name: endpoint.port for endpoint in bound})
            async for line in trio.wrap_file(sys.stdin):
                tell(await self._obey(line.strip()))
            self._answer()
            await self.server.stop()
            nursery.cancel_scope.cancel()

    async def _handle(self, request: Request) -> Response | None:
        word = bytes(request.payload[:1])
        if word == ECHO:
            return _framed(bytes(request.payload))
        if word == BIG:
            return _framed(bytes(BIG_BYTES))
        if word == LATER:
            assert self._later is not None
            self._later.start_soon(self._answer_later, request)
            return None
        if word == HOLD:
            await self._may_answer.wait()
            return _framed(b"")
        if word == KEEP and not self._may_answer.is_set():
            self._kept.append(request)
            return None
        return _framed(b"")

    async def _answer_later(self, request: Request) -> None:
        await trio.sleep(LATER_SECONDS)
        request.respond(_framed(b""))

    def _answer(self) -> None:
        self._may_answer.set()
        while self._kept:
            self._kept.pop().respond(_framed(b""))

    async def _obey(self, word: str) -> dict[str, Any]:
        if word == "settle":
            await wait_all_tasks_blocked(QUIET_SECONDS)
        elif word == "empty":
            await self._emptied()
        elif word == "answer":
            self._answer()
        report = self._report()
        self._monitor.clear()
        return report

    async def _emptied(self) -> None:
        """Return when nothing is held, or too late.

        A listener that has to wait for its rate has a socket that nothing else tells of.
        """
        gives_up_at = trio.current_time() + EMPTY_SECONDS_MAX
        while trio.current_time() < gives_up_at:
            await trio.sleep(_EMPTY_CHECK_SECONDS)
            # Only then it can be counted: that takes a descriptor, too.
            if not any(self._held().values()) and _descriptors() <= self._descriptors_at_first:
                break
        gc.collect()

    def _held(self) -> dict[str, int]:
        """What must be nothing when nobody is connected."""
        server = self.server
        statistics = server.statistics()
        throttled = sum(len(each._throttled) for each in server._listeners.values())
        return {
            "connections": statistics.connections,
            "quotas.total": server.quotas.total,
            "requests": statistics.request_queue_size,
            "responses": statistics.response_queue_size,
            "in flight": sum(processor.counts.in_flight for processor in server.processors),
            "pool.used": 0 if server.pool is None else server.pool.used,
            "throttled": throttled,
            "kept": len(self._kept),
        }

    def _report(self) -> dict[str, Any]:
        statistics = self.server.statistics()
        loop = self._monitor.statistics()
        pool = self.server.pool
        return {
            "held": self._held(),
            "tasks": trio.lowlevel.current_statistics().tasks_living,
            "channels": sum(isinstance(each, Channel) for each in gc.get_objects()),
            "depleted seconds": 0 if pool is None else pool.depleted_seconds(trio.current_time()),
            "connections made": statistics.connections_created,
            "requests": statistics.requests,
            "received": statistics.bytes_received,
            "request queue full": statistics.request_queue_full,
            "quotas": {
                what: sum(getattr(each, what) for each in self.server.quotas.listeners)
                for what in ("delayed", "throttled", "rejected")
            },
            "closed": {reason.name: count for reason, count in statistics.closed.items()},
            "loop": attrs.asdict(loop),
        }


def _framed(payload: bytes) -> Send:
    return Send([len(payload).to_bytes(4, "big") + payload])


def _security(settings: Settings) -> dict[str, ListenerSecurity]:
    found = {"SASL": ListenerSecurity(authenticator=lambda _: exchange())}
    if settings.certificate:
        context, _ = server_context(
            TlsSettings(keystore_type="PEM", keystore_location=settings.certificate)
        )
        found["TLS"] = ListenerSecurity(tls_context=lambda: context)
    return found


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def main() -> None:
    """Serve what stdin says."""
    settings = Settings(**told())
    logging.basicConfig(
        stream=sys.stderr, level="INFO", format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    if settings.descriptors_max:
        limit = settings.descriptors_max
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    trio.run(Disturbed(settings).run)


if __name__ == "__main__":
    main()
