"""The metrics of a SocketServer: its collectors, the lists of a snapshot, and a state summary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import trio

from ...metrics._log_ring import LogRing
from ...metrics._loop import LoopStatistics
from ...metrics._rates import SAMPLE_SECONDS, SAMPLES
from ...metrics._registry import Collect, Labels
from ...metrics._request_metrics import RequestMetrics, RequestSource, api_totals
from ...metrics._request_times import RequestTimes
from ...metrics._sensors import Sampling
from .._processor_counts import ProcessorCounts
from .._request_channel import Request
from .._socket_server import SocketServer
from ._load_metrics import LoadMetrics
from ._quota_metrics import MemoryPoolMetrics, QuotaMetrics, quota_rows
from ._selector_metrics import ConnectionKinds, SelectorMetrics
from ._snapshot_sections import Section, closed_page, connections_page, log_page

_TOTALS = ("requests", "responses", "bytes_received", "bytes_sent", "connections_created")


class UnnamedRequests:
    """The request counts of a server without API names, in which all requests have one kind.

    Args:
        server: the server that counts the requests.
    """

    def __init__(self, server: SocketServer) -> None:
        self._server = server

    def request_times(self) -> Iterable[RequestTimes]:
        return (self._server.times,)

    def requests(self) -> Mapping[Labels, int]:
        return {("", ""): self._server.statistics().requests}

    def deprecated_requests(self) -> Mapping[Labels, int]:
        return {}

    def errors(self) -> Mapping[Labels, int]:
        return {}


def server_collectors(
    server: SocketServer,
    loop: Callable[[], LoopStatistics],
    requests: RequestSource,
    *,
    samples: int = SAMPLES,
    seconds: float = SAMPLE_SECONDS,
) -> list[Collect]:
    """Return the collectors of a server; the last collector measures its requests.

    Args:
        server: the server, running or not.
        loop: returns the statistics of the loop on which the server runs.
        requests: the request counts by name; see :class:`UnnamedRequests`.
        samples: ``metrics.num.samples``.
        seconds: ``metrics.sample.window.ms``, in seconds.
    """

    def processors() -> list[ProcessorCounts]:
        return [processor.counts for processor in server.processors]

    sampling = Sampling(samples, seconds)
    return [
        SelectorMetrics(processors, loop, sampling).collect,
        LoadMetrics(processors, loop, server, requests.request_times, sampling).collect,
        ConnectionKinds(lambda: server.processors).collect,
        QuotaMetrics(server.quotas, sampling).collect,
        MemoryPoolMetrics(server.pool, sampling).collect,
        RequestMetrics(requests).collect,
    ]


def server_sections(
    server: SocketServer,
    log: LogRing,
    name_of: Callable[[Request], str | None] = lambda request: None,  # noqa: ARG005
) -> dict[str, Section]:
    """Return the lists in a server's snapshot, by name.

    Args:
        server: the server, which must be running.
        log: the most recent log lines of the server.
        name_of: returns the name of a request; None if unknown.
    """
    return {
        "connections": partial(connections_page, lambda: server.processors, name_of),
        "recently_closed": partial(closed_page, server.closed_connections),
        "log": partial(log_page, log),
    }


def server_state(server: SocketServer, requests: RequestSource) -> dict[str, object]:
    """Return the state summary in a server's snapshot.

    The summary contains the listeners, queue sizes, close reasons, totals of the server and of each
    processor since the start, quotas, and requests by API.
    """
    statistics = server.statistics()
    return {
        "listeners": [str(endpoint) for endpoint in server.endpoints],
        "queues": {
            "requests": len(server.request_channel),
            "requests_max": server.request_channel.requests_max,
            "responses": {str(p.id): len(p.responses) for p in server.processors},
        },
        "closed": dict(sorted((each.name, count) for each, count in statistics.closed.items())),
        "totals": {
            **{name: getattr(statistics, name) for name in _TOTALS},
            "connections_closed": sum(statistics.closed.values()),
        },
        "processors": [_processor_row(each.counts) for each in server.processors],
        "quotas": list(quota_rows(server.quotas, trio.current_time())),
        "apis": api_totals(requests),
    }


def _processor_row(processor: ProcessorCounts) -> dict[str, object]:
    return {
        "id": processor.id,
        "listener": processor.endpoint.listener_name,
        "connections": processor.connection_count,
        "in_flight": processor.in_flight,
        "response_queue": processor.response_queue_size,
        "request_queue_full": processor.request_queue_full,
        "requests": processor.requests_received,
        "responses": processor.responses_sent,
        "bytes_received": processor.bytes_received,
        "bytes_sent": processor.bytes_sent,
    }
