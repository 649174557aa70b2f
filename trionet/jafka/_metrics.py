"""The metrics of a Jafka broker, served as a Kafka broker's are, so that the dashboard reads them.

They have the names of Kafka's metrics: everything of the network layer, topics, partitions, and the
size of the logs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

import trio

from .. import __version__
from ..errors import ConfigError
from ..metrics._log_ring import LogRing
from ..metrics._loop import LoopMonitor
from ..metrics._prometheus import gauge
from ..metrics._registry import Family, Kind, Metric, Registry, Sample, single
from ..net.wire._endpoint import Endpoint, SecurityProtocol
from ..server._request_channel import Request
from ..server._socket_server import SocketServer
from ..server.metrics._http_exchange import HttpRules
from ..server.metrics._metrics_listener import FindPage, MetricsListener
from ..server.metrics._metrics_pages import MetricsPages
from ..server.metrics._server_metrics import (
    server_collectors,
    server_orders,
    server_sections,
    server_state,
    server_streams,
)
from ._handlers import Handlers
from ._topics import Topics

PORT_MAX = 65535
_URL = re.compile(r"http://(127\.0\.0\.1|localhost|\[::1\]):([0-9]{1,5})")
_KAFKA = ("controller", "KafkaController")
TOPIC_COUNT = gauge(*_KAFKA, "GlobalTopicCount", "Topics.")
PARTITION_COUNT = gauge(*_KAFKA, "GlobalPartitionCount", "Partitions of all topics.")
LOG_BYTES = Metric("trionet_log_bytes", Kind.GAUGE, "Bytes in the logs of all partitions.")
PARTITION_BYTES = Metric(
    "trionet_jafka_log_bytes", Kind.GAUGE, "Bytes in a log.", ("topic", "partition")
)


def make_metrics(
    server: SocketServer, handlers: Handlers, topics: Topics, monitor: LoopMonitor, log: LogRing
) -> tuple[Registry, FindPage]:
    """Return the metrics of a broker, and the function that finds their pages.

    Rates and quantiles need snapshots of the metrics; see :func:`.take_snapshots`.
    """
    registry = Registry()

    def collect(_: float) -> Iterator[Family]:
        sizes = {(topic, str(partition)): log.size for topic, partition, log in topics}
        yield single(TOPIC_COUNT, len(topics.logs))
        yield single(PARTITION_COUNT, len(sizes))
        yield single(LOG_BYTES, sum(sizes.values()))
        samples = (Sample(labels, size) for labels, size in sizes.items())
        yield Family(PARTITION_BYTES, tuple(samples))

    for each in (*server_collectors(server, monitor.statistics, handlers), collect):
        registry.register(each)
    pages = MetricsPages(
        lambda: registry.snapshot(trio.current_time()),
        lambda: {
            "trionet": __version__,
            "protocol": "jafka",
            "topics": {
                topic: [log.size for log in logs.values()] for topic, logs in topics.logs.items()
            },
            "uptime_seconds": monitor.statistics().seconds,
            **server_state(server, handlers),
        },
        server_sections(server, log, _name_of),
        server_orders(server),
        server_streams(server, _name_of),
        is_ready=lambda: not server.is_stopping,
    )
    return registry, pages.find


def _name_of(request: Request) -> str | None:
    return cast("str | None", request.kind)


async def serve(url: str, find_page: FindPage, *, task_status: trio.TaskStatus[str]) -> None:
    """Serve a broker's metrics over HTTP until cancelled; reports the base URL once it is ready.

    Raises:
        ConfigError: ``url`` is not allowed.
        OSError: its address cannot be bound.
    """
    endpoint = _endpoint(url)
    listener = MetricsListener(find_page, rules=HttpRules(token=None, host=endpoint.host))
    async with trio.open_nursery() as nursery:
        bound: Endpoint = await nursery.start(listener.run, endpoint, name="metrics-listener")
        task_status.started(f"http://{bound.address}")


def _endpoint(url: str) -> Endpoint:
    found = _URL.fullmatch(url)
    if found is None or int(found[2]) > PORT_MAX:
        raise ConfigError(
            f"metrics.listener = {url!r} is not allowed; allowed: http://127.0.0.1:PORT"
        )
    return Endpoint("METRICS", SecurityProtocol.PLAINTEXT, found[1].strip("[]"), int(found[2]))
