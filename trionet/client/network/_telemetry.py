"""Client telemetry, which pushes metrics to a broker that subscribes to them (KIP-714).

(Kafka: ClientTelemetryReporter, NetworkClient.TelemetrySender.) The client requests a subscription
from a broker, which names the metrics and the push interval. It then pushes these metrics to the
same broker until the connection is lost. A broker without a metrics plugin does not advertise the
API, so the client sends it nothing. Telemetry runs in a background task: no call waits for it, and
errors are only logged.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, Protocol

import attrs
import trio

from ..._util._logging import get_logger
from ...errors import TrionetError, UnsupportedVersionError
from ...metrics._otlp import Point, PointKind, metrics_data
from ...metrics._registry import Kind, Metric, Snapshot
from ...net._network import Network
from ...protocol import api_keys, error_codes
from ...protocol._wire import NO_UUID
from ...protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from ...protocol.messages.push_telemetry import PushTelemetryRequest
from ...protocol.records.compression._codecs import NAMES, compress
from .._client_metrics import ClientMetrics
from ._api_versions import NodeApiVersions
from ._cluster import Node
from ._metadata import Metadata
from ._responses import ClientResponse, PendingResponse

logger = get_logger("trionet.client")

# If the broker names no interval or could not be reached (Kafka: DEFAULT_PUSH_INTERVAL_MS).
INTERVAL_SECONDS: Final = 300.0
#: The least that a Kafka broker can be configured to ask for; a push takes milliseconds.
INTERVAL_SECONDS_MIN: Final = 0.1
# The first push is spread over this share of the interval, so that clients do not push in step.
_FIRST_PUSH: Final = (0.5, 1.5)
_NO_COMPRESSION: Final = 0
_ALL: Final = "*"
_RETRY_AT_ONCE: Final = (
    error_codes.UNKNOWN_SUBSCRIPTION_ID,
    error_codes.UNSUPPORTED_COMPRESSION_TYPE,
)
_RETRY_LATER: Final = (error_codes.TELEMETRY_TOO_LARGE, error_codes.THROTTLING_QUOTA_EXCEEDED)


@attrs.frozen(kw_only=True)
class TelemetrySettings:
    """The telemetry settings of a client.

    Attributes:
        is_enabled: whether metrics are pushed (``enable.metrics.push``).
        labels: the labels of all metrics, keyed by their KIP-714 names: ``client_rack``,
            ``group_id``, ``group_instance_id``, ``transactional_id``.
    """

    is_enabled: bool = False
    labels: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen
class Subscription:
    """A broker's subscription to metrics of this client.

    Attributes:
        id: the subscription id.
        interval_seconds: the push interval.
        bytes_max: the maximum size of the compressed metrics in a push; 0 for no limit.
        compression: the compression codec of pushes.
        is_delta: whether a push contains each counter's increase since the preceding push, rather
            than its value.
        prefixes: the name prefixes of the requested metrics; empty if none are requested.
    """

    id: int
    interval_seconds: float
    bytes_max: int
    compression: int
    is_delta: bool
    prefixes: tuple[str, ...]

    @classmethod
    def of(cls, response: GetTelemetrySubscriptionsResponse) -> Subscription:
        """Create a subscription from a broker's response."""
        interval_ms = response.push_interval_ms
        known = (each for each in response.accepted_compression_types if each in NAMES)
        return cls(
            response.subscription_id,
            max(interval_ms / 1000, INTERVAL_SECONDS_MIN) if interval_ms > 0 else INTERVAL_SECONDS,
            response.telemetry_max_bytes,
            next(known, _NO_COMPRESSION),
            response.delta_temporality,
            tuple("" if each == _ALL else each for each in response.requested_metrics),
        )


def retry_seconds(error_code: int, interval_seconds: float) -> float:
    """Return the seconds until the next subscription request; ``math.inf`` for never.

    (Kafka: ClientTelemetryUtils.maybeFetchErrorIntervalMs.)
    """
    if error_code in _RETRY_AT_ONCE:
        return 0.0
    return interval_seconds if error_code in _RETRY_LATER else math.inf


class TelemetryClient(Protocol):
    """The part of :class:`.KafkaClient` that telemetry uses."""

    @property
    def metadata(self) -> Metadata: ...

    async def until_updated(self, updates: int = 0) -> None: ...

    async def until_ready(self, node: Node) -> None: ...

    def least_loaded_node(self, now: float) -> tuple[Node | None, bool]: ...

    def can_send(self, node_id: int, now: float) -> bool: ...

    def versions(self, node: Node) -> NodeApiVersions | None: ...

    def send_internal(
        self, node: Node, body: Any, now: float, *, version_min: int, callback: Any
    ) -> None: ...


class Telemetry:
    """Pushes one client's metrics to a broker.

    Args:
        metrics: the metrics to push.
        labels: the labels of all metrics; see :class:`TelemetrySettings`.
        network: provides the wall-clock time and random numbers.

    Attributes:
        client_instance_id: the id that a broker assigned to this client; None before the first
            subscription.
    """

    def __init__(self, metrics: ClientMetrics, labels: Mapping[str, str], network: Network) -> None:
        self.client_instance_id: bytes | None = None
        self._metrics = metrics
        self._labels = labels
        self._network = network
        self._rng: random.Random = network.rng
        self._points = TelemetryPoints(self._now_ns())
        self._subscription: Subscription | None = None
        self._interval_seconds = INTERVAL_SECONDS
        self._node: Node | None = None
        self._is_delta = False
        # Whether the latest request was sent, and its outcome has not been handled yet.
        self._is_in_flight = False

    def _now_ns(self) -> int:
        return self._network.now_ms() * 1_000_000

    async def push_periodically(self, client: TelemetryClient) -> None:
        """Subscribe and push until cancelled, or until a broker permanently rejects telemetry.

        Returns when the client is closed, too. Another task must be polling the client.
        """
        await trio.lowlevel.checkpoint()
        seconds = 0.0
        while seconds < math.inf:
            await trio.sleep(seconds)
            try:
                if self._subscription is None:
                    seconds = await self._subscribe(client)
                else:
                    seconds = await self._push(client, self._subscription)
            except TrionetError as error:
                logger.debug("could not push metrics: %s", error)
                self._node = self._subscription = None
                self._is_in_flight = False
                seconds = INTERVAL_SECONDS
            except trio.ClosedResourceError:
                return  # the client is being closed

    async def _subscribe(self, client: TelemetryClient) -> float:
        """Request a subscription, and return the delay before the next request, in seconds."""
        known = self.client_instance_id or NO_UUID
        body = GetTelemetrySubscriptionsRequest(client_instance_id=known)
        response = await self._request(client, api_keys.GET_TELEMETRY_SUBSCRIPTIONS, body)
        if response.error_code:
            return max(self._rejected(response.error_code), INTERVAL_SECONDS_MIN)
        found = Subscription.of(response)
        self.client_instance_id = bytes(response.client_instance_id)
        if found.is_delta != self._is_delta:
            self._points.forget()
            self._is_delta = found.is_delta
        self._interval_seconds = found.interval_seconds
        if not found.prefixes:
            return found.interval_seconds
        self._subscription = found
        return found.interval_seconds * self._rng.uniform(*_FIRST_PUSH)

    async def _push(self, client: TelemetryClient, subscription: Subscription) -> float:
        """Push the subscribed metrics, and return the delay before the next request, in seconds."""
        await trio.lowlevel.checkpoint()
        body = self._push_request(subscription, is_last=False)
        if body is None:
            return subscription.interval_seconds
        response = await self._request(client, api_keys.PUSH_TELEMETRY, body)
        if response.error_code:
            return self._rejected(response.error_code)
        self._points.acknowledged()
        return subscription.interval_seconds

    def _rejected(self, error_code: int) -> float:
        self._subscription = None
        seconds = retry_seconds(error_code, self._interval_seconds)
        name = error_codes.name_of(error_code)
        if seconds == math.inf:
            logger.warning("a broker permanently rejected this client's metrics: %s", name)
        else:
            logger.info("a broker temporarily rejected this client's metrics: %s", name)
        return seconds

    def _push_request(
        self, subscription: Subscription, *, is_last: bool
    ) -> PushTelemetryRequest | None:
        """Build a PushTelemetry request; None if the metrics exceed the broker's limit."""
        assert self.client_instance_id is not None
        now = trio.current_time()
        points = self._points.points(
            self._metrics.snapshot(now),
            subscription.prefixes,
            self._now_ns(),
            is_delta=subscription.is_delta,
        )
        data = compress(subscription.compression, metrics_data(points, self._labels))
        if 0 < subscription.bytes_max < len(data):
            logger.warning(
                "not pushing metrics: %d bytes exceed the broker's limit of %d bytes",
                len(data),
                subscription.bytes_max,
            )
            return None
        return PushTelemetryRequest(
            client_instance_id=self.client_instance_id,
            subscription_id=subscription.id,
            terminating=is_last,
            compression_type=subscription.compression,
            metrics=data,
        )

    async def _request(self, client: TelemetryClient, api_key: int, body: Any) -> Any:
        """Send a request to the current broker, or to another broker if the connection is lost.

        Raises:
            TrionetError: no response was received.
        """
        await client.until_updated()
        now = trio.current_time()
        node = self._node
        if node is None or client.versions(node) is None:
            node, _ = client.least_loaded_node(now)
        if node is None:  # all nodes are busy
            node = self._rng.choice(list(client.metadata.cluster.nodes.values()))
        await client.until_ready(node)
        versions = client.versions(node)
        if versions is None or not versions.versions(api_key):
            raise UnsupportedVersionError(f"{node} does not support client metrics")
        self._node = node
        pending = PendingResponse()
        client.send_internal(node, body, trio.current_time(), version_min=0, callback=pending)
        self._is_in_flight = True
        response = await pending.wait()
        self._is_in_flight = False
        return response

    def end(self, client: TelemetryClient) -> None:
        """Push the final metrics of a closing client, if a request can be sent without waiting.

        A push in flight counts as accepted, as in Kafka: its increase is not part of the last push.
        """
        node, subscription = self._node, self._subscription
        now = trio.current_time()
        if node is None or subscription is None or not client.can_send(node.id, now):
            return
        if self._is_in_flight:
            self._points.acknowledged()
        body = self._push_request(subscription, is_last=True)
        if body is not None:
            with suppress(UnsupportedVersionError):
                client.send_internal(node, body, now, version_min=0, callback=_ignore)


def _ignore(response: ClientResponse) -> None:
    """Ignore the response to the last push, since the client is closed."""


_DOMAIN: Final = "org.apache.kafka"


def telemetry_name(metric: Metric) -> str:
    """Return the KIP-714 name of a metric; empty for a metric that Kafka does not have."""
    _, _, rest = metric.kafka.partition(":type=")
    group, comma, name = rest.partition(",")
    if not comma:
        return ""
    return ".".join((_DOMAIN, group.removesuffix("-metrics"), name)).replace("-", ".")


class TelemetryPoints:
    """Converts snapshots to data points, keeping the acknowledged values to compute deltas.

    The increase of a push that no broker acknowledged is part of the next one.

    Args:
        now_ns: the time at which the client was opened, in nanoseconds since the epoch.
    """

    def __init__(self, now_ns: int) -> None:
        self._opened_ns = self._acknowledged_ns = self._pushed_ns = now_ns
        self._acknowledged: dict[tuple[str, tuple[str, ...]], float] = {}
        self._pushed: dict[tuple[str, tuple[str, ...]], float] = {}

    def forget(self) -> None:
        """Discard the previous values, so that the next deltas count from the client's opening."""
        self._acknowledged.clear()
        self._acknowledged_ns = self._opened_ns

    def acknowledged(self) -> None:
        """Count the next deltas from the points yielded last, which a broker has accepted."""
        self._acknowledged.update(self._pushed)
        self._acknowledged_ns = self._pushed_ns

    def points(
        self, snapshot: Snapshot, prefixes: tuple[str, ...], now_ns: int, *, is_delta: bool
    ) -> Iterator[Point]:
        """Yield the data points of the metrics whose names start with one of the prefixes.

        Args:
            snapshot: a snapshot of the client's metrics.
            prefixes: the name prefixes of the requested metrics.
            now_ns: the time of the snapshot, in nanoseconds since the epoch.
            is_delta: whether to yield the increase of each counter since the last acknowledgement.
        """
        self._pushed_ns = now_ns
        self._pushed.clear()
        for family in snapshot.values():
            name = telemetry_name(family.metric)
            if not name or not name.startswith(prefixes):
                continue
            is_sum = family.metric.kind is Kind.COUNTER
            keys = [label.replace("-", "_") for label in family.metric.labels]
            for sample in family.samples:
                if not math.isfinite(sample.value) or sample.suffix or sample.quantile:
                    continue
                attributes = {k: v for k, v in zip(keys, sample.labels, strict=True) if v}
                kind, start_ns, value = PointKind.GAUGE, now_ns, sample.value
                if is_sum and is_delta:
                    kind, start_ns = PointKind.DELTA, self._acknowledged_ns
                    value -= self._acknowledged.get((name, sample.labels), 0.0)
                    self._pushed[name, sample.labels] = sample.value
                elif is_sum:
                    kind, start_ns = PointKind.CUMULATIVE, self._opened_ns
                yield Point(name, kind, value, start_ns, now_ns, attributes)
