"""The context managers that open a NetworkClient, or the KafkaClient inside it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import trio

from ..._util._raising import raise_single_error
from ...errors import ConfigError
from ...net._network import SYSTEM, Network
from ...net._selector import Selector
from ..connections._addresses import parse_bootstrap_servers
from ..connections._connection_states import ClusterConnectionStates
from ..connections._connections import Connections
from ..metadata._manual_metadata_updater import ManualMetadataUpdater
from ..metadata._metadata import Metadata
from ..metadata._metadata_updater import DefaultMetadataUpdater, MetadataUpdater
from ..metrics._client_metrics import ClientMetrics
from ..metrics._telemetry import Telemetry
from ..security._client_security import prepare_security
from ._kafka_client import KafkaClient
from ._network_client import NetworkClient
from ._settings import ClientSettings


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
    """Open a network client for a cluster; one task in the block must poll the client.

    Args:
        bootstrap_servers: ``host:port`` strings, or one comma-separated string; omit them with a
            ``metadata_updater``.
        settings: the settings; None for the defaults.
        network: opens connections.
        kind: the prefix of the metric names.
        of_controllers: whether the servers are controllers (``bootstrap.controllers``, KIP-919);
            all nodes of the client are then controllers.
        metadata_updater: provides the nodes; the client then never requests metadata, and pushes no
            telemetry.

    Raises:
        ConfigError: ``bootstrap_servers`` is invalid or given together with a
            ``metadata_updater``, or the security settings cannot be used.
        AuthenticationError, DisconnectedError: a token endpoint returned no token.
        Exception: a token provider raised it.

    Cancellation: at the end of the block all connections are closed immediately, and tasks waiting
    for a response raise :class:`.DisconnectedError`.
    """
    async with open_kafka_client(
        bootstrap_servers,
        settings,
        network=network,
        kind=kind,
        of_controllers=of_controllers,
        metadata_updater=metadata_updater,
    ) as client:
        yield NetworkClient._create(client)  # noqa: SLF001 - nothing else creates one


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
    """Open the compiled client on which the producer, consumer and admin client are built.

    See :func:`open_network_client` for the arguments.
    """
    settings = settings or ClientSettings()
    key = "bootstrap.controllers" if of_controllers else "bootstrap.servers"
    updater: MetadataUpdater
    if metadata_updater is None:
        servers = parse_bootstrap_servers(bootstrap_servers, key)
        metadata = Metadata(servers, settings.metadata, network.rng)
        updater = DefaultMetadataUpdater(metadata, of_controllers=of_controllers)
    elif bootstrap_servers:
        raise ConfigError(
            f"{key} must not be set with a metadata updater, which provides the nodes"
        )
    else:
        updater = metadata_updater
    security = await prepare_security(settings.security, settings.requests.client_id, network)
    with raise_single_error() as caller:
        async with network.open_readiness(None) as readiness, trio.open_nursery() as nursery:
            selector = Selector(
                readiness, idle_seconds_max=settings.idle_seconds_max, parks_at_once=True
            )
            nursery.start_soon(selector.alarm.keep_time)
            nursery.start_soon(security.keep_token_fresh)
            connections = Connections(selector, network, settings.connections, security, nursery)
            client = _client(selector, connections, updater, settings, network, kind)
            if client.telemetry is not None:
                nursery.start_soon(client.telemetry.push_periodically, client)
            try:
                with caller.block():
                    yield client
            finally:
                if client.telemetry is not None:
                    client.telemetry.end(client)
                client.shut_down()
                nursery.cancel_scope.cancel(reason="the client is closed")


def _client(
    selector: Selector,
    connections: Connections,
    updater: MetadataUpdater,
    settings: ClientSettings,
    network: Network,
    kind: str,
) -> KafkaClient:
    """Create a client with its metrics and telemetry."""
    metrics = ClientMetrics(kind, settings.metrics, selector, trio.current_time())
    telemetry = None
    if settings.telemetry.is_enabled and updater.is_automatic:
        telemetry = Telemetry(metrics, settings.telemetry.labels, network)
    return KafkaClient(
        selector,
        connections,
        ClusterConnectionStates(settings.times, network.rng),
        updater,
        settings.requests,
        network.rng,
        metrics,
        telemetry,
    )


async def keep_polling(client: KafkaClient) -> None:
    """Poll in a background task; see :meth:`.NetworkClient.run`.

    Requests may be made before the task has started; the first poll sends them.
    """
    await client.run()
