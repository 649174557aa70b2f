"""The settings of a NetworkClient, the context managers that open one, and waits for any node.

A client retries for as long as its caller waits, since brokers restart. Where an address may be
wrong, or its broker was never started, a program would seem to hang: :func:`until_connected` ends
it after :data:`REFUSED_SECONDS`. Ending at the first refusal was rejected, because scripts start a
broker and its clients at once.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Final

import attrs
import trio

from ..._util._background import call_at_end, open_background_nursery
from ..._util._raising import again
from ..._util._trio_task import check_trio
from ...errors import AuthenticationError, ConfigError, DisconnectedError
from ...net._network import SYSTEM, Network
from ...net._selector import Selector
from .._client_metrics import ClientMetrics, MetricsSettings
from .._network_settings import ConnectionSettings, ConnectionTimes, MetadataTimes, RequestSettings
from ..security._client_security import prepare_security
from ..security._settings import SecuritySettings
from ._addresses import parse_bootstrap_servers
from ._cluster import Node
from ._connection_states import ClusterConnectionStates
from ._connections import Connections
from ._kafka_client import KafkaClient
from ._metadata import Metadata
from ._metadata_updater import DefaultMetadataUpdater, ManualMetadataUpdater, MetadataUpdater
from ._network_client import NetworkClient
from ._telemetry import Telemetry, TelemetrySettings


@attrs.frozen(kw_only=True)
class ClientSettings:
    """All settings of a NetworkClient; each attribute's description names Kafka's key.

    Attributes:
        connections: the connection settings.
        times: the backoffs and timeouts of connections.
        metadata: the age limit, backoff and timeout of metadata updates.
        requests: the request settings.
        security: TLS and the client's credentials.
        metrics: the sampling windows of the metrics.
        telemetry: whether to push metrics to brokers that request them, and their labels.
        idle_seconds_max: how long a connection may stay idle (``connections.max.idle.ms``). The
            default is below the brokers' ten minutes, so that the client closes idle connections
            first.
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
        TypeError: ``settings`` are not ClientSettings.
        RuntimeError: trio does not run the calling task.
        AuthenticationError, DisconnectedError: a token endpoint returned no token.
        Exception: a token provider raised it.

    Cancellation: calls that shield themselves work until the block ends, if the task that polls
    is shielded, too. At the end of the block all connections are closed immediately, and tasks
    waiting for a response raise :class:`.DisconnectedError`.
    """
    if settings is not None and not isinstance(settings, ClientSettings):
        raise TypeError(f"settings must be ClientSettings or None, not {settings!r}")
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

    See :func:`open_network_client` for the arguments. The tasks of these clients run in the
    client's background nursery.
    """
    check_trio("clients")
    settings = settings or ClientSettings()
    key = "bootstrap.controllers" if of_controllers else "bootstrap.servers"
    updater: MetadataUpdater
    servers: list[tuple[str, int]] = []
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
    security = await prepare_security(
        settings.security,
        settings.requests.client_id,
        network,
        [host for host, _ in servers],
    )
    async with network.open_readiness(None) as readiness, open_background_nursery() as nursery:
        selector = Selector(
            readiness, idle_seconds_max=settings.idle_seconds_max, parks_at_once=True
        )
        nursery.start_soon(selector.alarm.keep_time)
        nursery.start_soon(security.keep_token_fresh)
        metrics = ClientMetrics(kind, settings.metrics, selector, trio.current_time())
        telemetry = None
        if settings.telemetry.is_enabled and updater.is_automatic:
            telemetry = Telemetry(metrics, settings.telemetry.labels, network)
        client = KafkaClient(
            selector,
            Connections(selector, network, settings.connections, security, nursery),
            ClusterConnectionStates(settings.times, network.rng),
            updater,
            settings.requests,
            network.rng,
            metrics,
            nursery,
            telemetry,
        )
        if telemetry is not None:
            nursery.start_soon(telemetry.push_periodically, client)
        nursery.start_soon(call_at_end, client.shut_down)
        try:
            yield client
        finally:
            # First, so that no task notices the closed client before it is cancelled.
            nursery.cancel_scope.cancel(reason="the client is closed")
            client.shut_down()


async def keep_polling(client: KafkaClient) -> None:
    """Poll in a background task until the client is closed.

    Requests may be made before the task has started; the first poll sends them.
    """
    await trio.lowlevel.checkpoint()
    while not client.is_closed:
        await client.poll()


# The maximum delay until a node that becomes usable only through the passage of time is noticed.
_RECHECK_SECONDS: Final = 0.01


async def until_any_ready(client: KafkaClient) -> Node:
    """Wait until a request can be sent to some node of the cluster, and return that node.

    The client connects to one node after another; a slow node does not delay the others. If the
    only connected nodes are busy writing a large request, the least loaded of these nodes is
    returned, and the caller's request waits until that write has finished.

    Raises:
        AuthenticationError: a node rejected this client during the wait.
        trio.ClosedResourceError: the client is closed.
    """
    client.check_thread()
    await trio.lowlevel.checkpoint()
    client.wakeup()  # the current poll may sleep beyond the end of a node's backoff
    before = client.authentication_errors()
    while True:
        now = trio.current_time()
        node, _ = client.least_loaded_node(now)
        if node is not None and client.ready(node):
            return node
        for error in client.authentication_errors():
            if error not in before:
                raise again(error)
        seconds = math.inf
        if node is None:
            if (busy := client.least_loaded_busy_node()) is not None:
                return busy
            seconds = max(_RECHECK_SECONDS, client.next_usable_delay(now))
        with trio.move_on_after(seconds):
            await client.until_polled()


async def until_broker_ready(client: KafkaClient, updates: int = 0) -> Node:
    """Wait until a request can be sent to a broker of the cluster, at its advertised address.

    Args:
        client: the client, which another task polls.
        updates: the number of updates of the metadata to wait for first, exclusive.

    Returns:
        The least loaded broker.

    Raises:
        AuthenticationError, UnsupportedVersionError: the brokers do not accept this client.
        trio.ClosedResourceError: the client is closed.
    """
    while True:
        await client.until_updated(updates)
        node = await until_any_ready(client)
        if node.id >= 0:
            return node
        updates = client.metadata.request_update()  # the client has rebootstrapped meanwhile


#: How long connections may be refused: long enough for a broker that is started beside the client.
REFUSED_SECONDS: Final = 2.0


async def until_connected(client: KafkaClient) -> None:
    """Wait until a broker accepts requests, unless all refuse; see :meth:`.Admin.until_connected`.

    Args:
        client: the client, which another task polls.
    """
    with trio.move_on_after(REFUSED_SECONDS):
        await until_broker_ready(client)
        return
    if why := client.connection_refusal():
        trouble = client.connection_error()
        if trouble is not None and isinstance(trouble.__cause__, AuthenticationError):
            raise again(trouble.__cause__)
        error = DisconnectedError(f"{why}; gave up after {REFUSED_SECONDS:g} s")
        raise error from trouble
    await until_broker_ready(client)
