"""Sources for what a user names: a broker in this process, or a cluster and a metrics listener."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Final

from ...net.endpoint import SecurityProtocol
from ...net.network import SYSTEM, Network
from ...net.wall_clock import now_ms
from ..actions import Actions
from ..model import Model
from . import Source
from .http_client import HttpClient
from .joined import JoinedSource, Part
from .later import DeferredSource
from .network_source import NetworkSource

if TYPE_CHECKING:
    from ...broker.broker import Broker
    from ...metrics.log_ring import LogRing

#: Why there is nothing of the inside of a broker that only the Kafka protocol tells of.
NO_METRICS: Final = (
    "the Kafka protocol does not tell this; a trionet broker does, by its metrics listener:"
    " --metrics URL"
)
#: Why there is nothing that clients are told of a broker in this process.
NO_PLAINTEXT_LISTENER: Final = (
    "every listener of this broker asks for TLS or SASL; look at it from outside, with what it asks"
    " for: trionet dashboard HOST:PORT -X KEY=VALUE"
)
#: Why there are no tasks of a broker in another process.
NO_TASKS: Final = "the tasks are those of a broker in this process: trionet broker --dashboard"


def cluster_parts(
    bootstrap_servers: str,
    settings: Mapping[str, object],
    *,
    pipeline_topic: str | None = None,
    network: Network = SYSTEM,
) -> list[Part]:
    """What the Kafka protocol tells."""
    where: dict[str, object] = {
        "bootstrap_servers": bootstrap_servers,
        "settings": settings,
        "network": network,
    }
    return [
        DeferredSource("cluster_source", "ClusterSource", where),
        DeferredSource("tail_source", "TailSource", where, ("tail",)),
        DeferredSource(
            "pipeline_source",
            "PipelineSource",
            {**where, "topic": pipeline_topic, "now_ms": now_ms},
            ("pipeline",),
        ),
    ]


@contextmanager
def watch_broker(
    broker: Broker,
    settings: Mapping[str, object] | None = None,
    *,
    pipeline_topic: str | None = None,
    log: LogRing | None = None,
) -> Iterator[Source]:
    """A source for a broker in this process, for the length of a block.

    Args:
        broker: running.
        settings: of clients that reach it, by Kafka's keys: topics, groups and records are read
            as by any client. Without, its first listener has to be one without TLS and SASL.
        pipeline_topic: of the results of ``trionet pipeline run``; None looks for one.
        log: keeps its log lines; by default those from now on.
    """
    from .in_process import InProcessReader
    from .task_source import TaskSource

    with broker.watch(log) as metrics:
        reader = InProcessReader(metrics)
        parts: list[Part] = [NetworkSource(reader, "the broker"), TaskSource()]
        address = broker.bootstrap_servers if settings else _open_address(broker)
        if address is not None:
            parts += cluster_parts(address, settings or {}, pipeline_topic=pipeline_topic)
        actions = Actions(
            address or broker.bootstrap_servers, settings, close=reader.close_connection
        )
        name = ",".join(map(str, broker.endpoints))
        yield JoinedSource(name, parts, actions, _anything if address else _without_clients)


def _open_address(broker: Broker) -> str | None:
    """Where a client gets in without TLS and SASL; None if it does nowhere."""
    if broker.endpoints[0].security_protocol is SecurityProtocol.PLAINTEXT:
        return broker.bootstrap_servers
    open_ones = (
        each for each in broker.endpoints if each.security_protocol is SecurityProtocol.PLAINTEXT
    )
    found = next(open_ones, None)
    return None if found is None else found.address


@asynccontextmanager
async def open_remote(
    bootstrap_servers: str,
    settings: Mapping[str, object] | None = None,
    *,
    metrics_url: str | None = None,
    metrics_token: str | None = None,
    metrics_tls: ssl.SSLContext | None = None,
    pipeline_topic: str | None = None,
    network: Network = SYSTEM,
) -> AsyncIterator[Source]:
    """A source for a cluster, and for the broker whose metrics listener is named.

    Args:
        bootstrap_servers: of the cluster.
        settings: of the clients, by Kafka's keys.
        metrics_url: of the metrics listener of a trionet broker; without, there is nothing of its
            inside.
        metrics_token: its token.
        metrics_tls: what to trust there; the system's authorities by default.
        pipeline_topic: of the results of ``trionet pipeline run``; None looks for one.
        network: where connections come from.

    Raises:
        ConfigError: the URL is none.
    """
    parts = cluster_parts(
        bootstrap_servers, settings or {}, pipeline_topic=pipeline_topic, network=network
    )
    if metrics_url is None:
        actions = Actions(bootstrap_servers, settings, network=network)
        yield JoinedSource(bootstrap_servers, parts, actions, _without_metrics)
        return
    from .metrics_source import MetricsListenerReader

    async with HttpClient(metrics_url, token=metrics_token, tls=metrics_tls) as client:
        reader = MetricsListenerReader(client)
        close = None if metrics_token is None else reader.close_connection
        actions = Actions(bootstrap_servers, settings, close=close, network=network)
        parts.insert(0, NetworkSource(reader, metrics_url))
        yield JoinedSource(bootstrap_servers, parts, actions, _without_tasks)


def _anything(model: Model) -> None:
    """All parts are there."""


def _without_clients(model: Model) -> None:
    for section in (model.topics, model.partitions, model.brokers, model.configs, model.tail):
        section.mark_missing(NO_PLAINTEXT_LISTENER)
    model.pipeline.mark_missing(NO_PLAINTEXT_LISTENER)
    model.client_quotas_missing = NO_PLAINTEXT_LISTENER


def _without_metrics(model: Model) -> None:
    model.mark_network_missing(NO_METRICS)
    _without_tasks(model)


def _without_tasks(model: Model) -> None:
    model.tasks.mark_missing(NO_TASKS)
