"""What the processors of one server have in common."""

from __future__ import annotations

import logging

import attrs

from ..metrics.request_times import RequestTimes
from ..net.memory_pool import MemoryPool
from ..net.network import Network
from ..net.readiness import ReadinessKind
from .closed_connections import ClosedConnections
from .connection_quotas import ConnectionQuotas
from .handler_pool import Handler, NeverWaits
from .loop_faults import LoopFaults
from .recorder import Recorder
from .request_channel import RequestChannel


@attrs.frozen(kw_only=True)
class Shared:
    """What the processors of a server share, and the limits that they all have.

    Attributes:
        request_channel: where receives go.
        handler: answers requests.
        never_waits: whether it answers a request, or puts it off, without waiting for anything.
        quotas: count connections, and say when one must make room.
        closed_connections: remembers the last ones that ended.
        times: what requests are timed in as long as nobody says better.
        pool: memory for large requests; None for no limit.
        idle_seconds_max: ``connections.max.idle.ms``.
        authentication_seconds_max: how long TLS and SASL may take before the first request.
        readiness_kind: see :func:`trionet.net.readiness.open_readiness`.
        network: where the connections come from.
        log: where the server's lines go, with its prefix.
        faults: counts and logs what fails outside the step of a channel.
        recorder: told of requests that are over and connections that closed, if anybody is.
    """

    request_channel: RequestChannel
    handler: Handler
    never_waits: NeverWaits | None
    quotas: ConnectionQuotas
    closed_connections: ClosedConnections
    times: RequestTimes
    pool: MemoryPool | None
    idle_seconds_max: float
    authentication_seconds_max: float
    readiness_kind: ReadinessKind | None
    network: Network
    log: logging.LoggerAdapter[logging.Logger]
    faults: LoopFaults
    recorder: Recorder | None = None
