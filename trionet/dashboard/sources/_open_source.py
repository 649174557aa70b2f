"""Opens sources: a broker in this process, or a cluster over the network."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Final

import attrs

from ..._util._wall_clock import now_ms
from ..model._model import Model
from ._actions import Actions
from ._http_client import HttpClient
from ._jafka_source import JafkaSource, is_jafka, without_kafka
from ._local_source import NO_METRICS, has_jafka, local_client
from ._network_source import (
    LISTS,
    LISTS_WITHOUT_CLIENTS,
    VIA_KAFKA,
    VIA_LISTENER,
    VIA_LOCAL,
    InProcessReader,
    MetricsListenerReader,
    NetworkSource,
)
from ._source import DeferredSource, JoinedSource, Part, Source

if TYPE_CHECKING:
    from ...broker.run._broker import Broker
    from ...metrics._log_ring import LogRing
    from ...net._network import Network

#: The reason shown if a broker in this process has no listener that the dashboard can use.
NO_PLAINTEXT_LISTENER: Final = (
    "all listeners of this broker require TLS or SASL; start another dashboard with the settings"
    " they need: trionet dashboard HOST:PORT -X KEY=VALUE"
)


def cluster_parts(
    bootstrap_servers: str,
    settings: Mapping[str, object],
    *,
    pipeline_topic: str | None = None,
    network: Network | None = None,
) -> list[Part]:
    """Return the parts of a source that use the Kafka protocol."""
    where: dict[str, object] = {
        "bootstrap_servers": bootstrap_servers,
        "settings": settings,
    }
    if network is not None:
        where["network"] = network
    return [
        DeferredSource("_cluster_source", "ClusterSource", where),
        DeferredSource("_record_sources", "TailSource", where, ("tail",)),
        DeferredSource(
            "_record_sources",
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
    """Open a source for a broker in this process, as a context manager.

    Args:
        broker: a running broker.
        settings: the settings, keyed by Kafka's names, of the clients that read topics, groups and
            records; by default the clients connect to a listener without TLS and SASL, if any.
        pipeline_topic: the results topic of ``trionet pipeline run``; None to search for it.
        log: the log lines to show; by default the lines logged after this call.
    """
    with broker.watch(log) as metrics:
        reader = InProcessReader(metrics)
        address = broker.bootstrap_servers if settings else _plaintext_address(broker)
        lists = LISTS_WITHOUT_CLIENTS if address is None else LISTS
        parts: list[Part] = [NetworkSource(reader, "the broker", lists)]
        if address is not None:
            parts += cluster_parts(address, settings or {}, pipeline_topic=pipeline_topic)
        actions = Actions(
            address or broker.bootstrap_servers,
            settings,
            close=reader.close_connection,
            order=reader.order,
        )
        name = ",".join(map(str, broker.endpoints))
        if address is None:
            yield JoinedSource(name, parts, actions, _without_clients)
        else:
            yield JoinedSource(name, parts, actions)


def _is_real(network: Network | None) -> bool:
    return network is None or not network.is_virtual


def _plaintext_address(broker: Broker) -> str | None:
    """Return the address of a listener without TLS and SASL, or None if there is none."""
    from ...net.wire._endpoint import SecurityProtocol  # a broker here has it loaded

    if broker.endpoints[0].security_protocol is SecurityProtocol.PLAINTEXT:
        return broker.bootstrap_servers
    plaintext = (
        each for each in broker.endpoints if each.security_protocol is SecurityProtocol.PLAINTEXT
    )
    found = next(plaintext, None)
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
    network: Network | None = None,
) -> AsyncIterator[Source]:
    """Open a source for a cluster, and for the inside of a trionet broker.

    The inside is that of the broker of a metrics listener if one is given, or else that of a broker
    of this user on this machine, which comes by a local socket. If that is a Jafka broker, it is
    the only source, because no client of Kafka can talk to it.

    Args:
        bootstrap_servers: the bootstrap servers of the cluster.
        settings: the client settings, keyed by Kafka's names.
        metrics_url: the metrics listener of a trionet broker; None to use the local socket, if the
            first of the bootstrap servers is on this machine.
        metrics_token: the token of the metrics listener.
        metrics_tls: the TLS context for the metrics listener; by default, the system's certificate
            authorities are trusted.
        pipeline_topic: the results topic of ``trionet pipeline run``; None to search for it.
        network: opens the connections; None for those of the system.

    Raises:
        ConfigError: the URL or the token is invalid.
    """
    parts = cluster_parts(
        bootstrap_servers, settings or {}, pipeline_topic=pipeline_topic, network=network
    )
    is_local = metrics_url is None
    has_own = is_local and _is_real(network) and await has_jafka(bootstrap_servers)
    if metrics_url is not None:
        inside: HttpClient | None = HttpClient(metrics_url, token=metrics_token, tls=metrics_tls)
    else:
        inside = local_client(bootstrap_servers, is_jafka=has_own) if _is_real(network) else None
    if inside is None:
        actions = Actions(bootstrap_servers, settings, network=network)
        yield JoinedSource(bootstrap_servers, parts, actions, _without_metrics)
        return
    what = metrics_url or f"the local socket of {bootstrap_servers}"
    via = VIA_LOCAL if is_local else VIA_LISTENER
    async with inside as client:
        if has_own if is_local else await is_jafka(client):
            own = JafkaSource(client, what, via)
            name = metrics_url or bootstrap_servers
            yield JoinedSource(name, [own], Actions(bootstrap_servers), without_kafka)
            return
        reader = MetricsListenerReader(client)
        may_close = is_local or metrics_token is not None
        close = reader.close_connection if may_close else None
        order = reader.order if may_close else None
        actions = Actions(bootstrap_servers, settings, close=close, order=order, network=network)
        parts.insert(0, NetworkSource(reader, what, via=via))
        yield JoinedSource(bootstrap_servers, parts, actions)


def _without_clients(model: Model) -> None:
    for section in (model.topics, model.partitions, model.brokers, model.configs, model.tail):
        section.mark_missing(NO_PLAINTEXT_LISTENER)
    model.pipeline.mark_missing(NO_PLAINTEXT_LISTENER)
    model.client_quotas_missing = NO_PLAINTEXT_LISTENER


def _without_metrics(model: Model) -> None:
    model.about = attrs.evolve(model.about, via=VIA_KAFKA)
    model.mark_network_missing(NO_METRICS)
