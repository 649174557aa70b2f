"""Opens a NetworkClient, or the KafkaClient below it, and closes it with its block."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import attrs
import trio

from ..._util._single_error import raise_single_error
from ...errors import ConfigError
from ...net._network import SYSTEM, Network
from ...net._selector import Selector
from ..connections._addresses import parse_bootstrap_servers
from ..connections._connection_states import ClusterConnectionStates, ConnectionTimes
from ..connections._connections import Connections, ConnectionSettings
from ..metadata._manual_metadata_updater import ManualMetadataUpdater
from ..metadata._metadata import Metadata, MetadataTimes
from ..metadata._metadata_updater import MetadataUpdater
from ..metrics._client_metrics import ClientMetrics, MetricsSettings
from ..metrics._telemetry import Telemetry, TelemetrySettings
from ..security._client_security import prepare_security
from ..security._settings import SecuritySettings
from ._kafka_client import KafkaClient
from ._network_client import NetworkClient
from ._request_settings import RequestSettings


@attrs.frozen(kw_only=True)
class ClientSettings:
    """All settings of a NetworkClient.

    Attributes:
        connections: how connections are made.
        times: the waits of connections.
        metadata: when metadata are asked for.
        requests: how requests are made.
        security: how connections are protected, and who we are.
        metrics: the windows of its metrics.
        telemetry: whether these are sent to brokers that ask for them.
        idle_seconds_max: how long a connection may be unused (``connections.max.idle.ms``), below
            the brokers' ten minutes, so that the client is the one who ends it.
    """

    connections: ConnectionSettings = attrs.field(factory=ConnectionSettings)
    times: ConnectionTimes = attrs.field(factory=ConnectionTimes)
    metadata: MetadataTimes = attrs.field(factory=MetadataTimes)
    requests: RequestSettings = attrs.field(factory=RequestSettings)
    security: SecuritySettings = attrs.field(factory=SecuritySettings)
    metrics: MetricsSettings = attrs.field(factory=MetricsSettings)
    telemetry: TelemetrySettings = attrs.field(factory=TelemetrySettings)
    idle_seconds_max: float = 540.0


@asynccontextmanager
async def open_network_client(
    bootstrap_servers: str | Iterable[str] = (),
    settings: ClientSettings | None = None,
    *,
    network: Network = SYSTEM,
    kind: str = "network-client",
    of_controllers: bool = False,
    metadata_updater: ManualMetadataUpdater | None = None,
) -> AsyncIterator[NetworkClient]:
    """A client of a cluster; one task of the block has to poll it.

    Args:
        bootstrap_servers: ``host:port`` texts, or one text of them with commas; none beside a
            ``metadata_updater``.
        settings: Kafka's defaults without.
        network: where connections come from.
        kind: what Kafka's names of the metrics begin with.
        of_controllers: the servers are controllers (``bootstrap.controllers``, KIP-919), and so
            are the nodes of the cluster that this describes.
        metadata_updater: has the nodes, which its owner gives; the client never asks for metadata
            then, and pushes no telemetry.

    Raises:
        ConfigError: ``bootstrap_servers`` is not of that form, or given beside a
            ``metadata_updater``, or the settings of security cannot be used.
        Exception: what a token provider raises.

    Cancellation: at the end of the block every connection is closed at once; whoever waits for an
    answer gets a :class:`.DisconnectedError`.
    """
    async with open_kafka_client(
        bootstrap_servers,
        settings,
        network=network,
        kind=kind,
        of_controllers=of_controllers,
        metadata_updater=metadata_updater,
    ) as client:
        yield NetworkClient(client)


@asynccontextmanager
async def open_kafka_client(
    bootstrap_servers: str | Iterable[str] = (),
    settings: ClientSettings | None = None,
    *,
    network: Network = SYSTEM,
    kind: str = "network-client",
    of_controllers: bool = False,
    metadata_updater: ManualMetadataUpdater | None = None,
) -> AsyncIterator[KafkaClient]:
    """As :func:`open_network_client`, for the clients that are built on it here."""
    settings = settings or ClientSettings()
    key = "bootstrap.controllers" if of_controllers else "bootstrap.servers"
    updater: MetadataUpdater
    if metadata_updater is None:
        servers = parse_bootstrap_servers(bootstrap_servers, key)
        metadata = Metadata(servers, settings.metadata, network.chance)
        updater = MetadataUpdater(metadata, of_controllers=of_controllers)
    elif bootstrap_servers:
        raise ConfigError(f"{key}: the metadata updater has the nodes; allowed beside it: none")
    else:
        updater = metadata_updater
    security = await prepare_security(settings.security, settings.requests.client_id, network)
    with raise_single_error() as caller:
        async with network.open_readiness(None) as readiness, trio.open_nursery() as nursery:
            selector = Selector(
                readiness, idle_seconds_max=settings.idle_seconds_max, parks_at_once=True
            )
            nursery.start_soon(selector.alarm.keep_time)
            nursery.start_soon(security.keep_fresh)
            connections = Connections(selector, network, settings.connections, security, nursery)
            client = _client(selector, connections, updater, settings, network, kind)
            if client.telemetry is not None:
                nursery.start_soon(client.telemetry.keep_pushing, client)
            try:
                with caller.block():
                    yield client
            finally:
                if client.telemetry is not None:
                    client.telemetry.end(client)
                client.end()
                nursery.cancel_scope.cancel(reason="the client is closed")


def _client(
    selector: Selector,
    connections: Connections,
    updater: MetadataUpdater,
    settings: ClientSettings,
    network: Network,
    kind: str,
) -> KafkaClient:
    """A client with what is measured of it."""
    metrics = ClientMetrics(kind, settings.metrics, selector, trio.current_time())
    telemetry = None
    if settings.telemetry.is_enabled and updater.asks:
        telemetry = Telemetry(metrics, settings.telemetry.labels, network)
    return KafkaClient(
        selector,
        connections,
        ClusterConnectionStates(settings.times, network.chance),
        updater,
        settings.requests,
        network.chance,
        metrics,
        telemetry,
    )


async def keep_polling(client: KafkaClient) -> None:
    """Poll beside those who ask; see :meth:`.NetworkClient.run`.

    Nobody waits for its beginning: what is asked before is sent with its first turn.
    """
    await client.run()
