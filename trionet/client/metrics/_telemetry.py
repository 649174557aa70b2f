"""Pushes a client's metrics to a broker that asks for them (KIP-714).

(Kafka: ClientTelemetryReporter, NetworkClient.TelemetrySender.) A broker without a plugin that
takes them does not know the API, and is sent nothing. One is asked which metrics it wants, and how
often; these are then sent to it, and to the same broker for as long as there is a connection.
Nobody waits for any of this, and it fails nothing else.
"""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, Protocol

import attrs
import trio

from ...errors import TrionetError, UnsupportedVersionError
from ...metrics._otlp import metrics_data
from ...net._network import Network
from ...protocol import api_keys, error_codes
from ...protocol._wire import NO_UUID
from ...protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from ...protocol.messages.push_telemetry import PushTelemetryRequest
from ...protocol.records.compression._codecs import NAMES, compress
from .._node import Node
from ..metadata._metadata import Metadata
from ..requests._api_versions import NodeApiVersions
from ..requests._pending_response import AwaitedAnswer
from ..requests._response import ClientResponse
from ._client_metrics import ClientMetrics
from ._telemetry_points import TelemetryPoints

logger = logging.getLogger("trionet.client")

# After a broker that does not take part, or could not be asked (Kafka: DEFAULT_PUSH_INTERVAL_MS).
INTERVAL_SECONDS: Final = 300.0
# The first push comes after so many parts of the interval, so that not all clients push at once.
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
    """What a client tells brokers of itself.

    Attributes:
        is_enabled: whether it tells anything (``enable.metrics.push``).
        labels: what goes with all of its metrics, such as its rack and its group, by the names of
            KIP-714: ``client_rack``, ``group_id``, ``group_instance_id``, ``transactional_id``.
    """

    is_enabled: bool = False
    labels: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen
class Subscription:
    """What a broker wants to know.

    Attributes:
        id: of this set of metrics.
        interval_seconds: between two pushes.
        bytes_max: the most that one push may have.
        compression: the codec of pushes.
        is_delta: whether counters tell what was added since the last push.
        prefixes: what the names of wanted metrics begin with; none if no metric is wanted.
    """

    id: int
    interval_seconds: float
    bytes_max: int
    compression: int
    is_delta: bool
    prefixes: tuple[str, ...]

    @classmethod
    def of(cls, answer: GetTelemetrySubscriptionsResponse) -> Subscription:
        """Read a broker's answer."""
        interval_ms = answer.push_interval_ms
        known = (each for each in answer.accepted_compression_types if each in NAMES)
        return cls(
            answer.subscription_id,
            interval_ms / 1000 if interval_ms > 0 else INTERVAL_SECONDS,
            answer.telemetry_max_bytes,
            next(known, _NO_COMPRESSION),
            answer.delta_temporality,
            tuple("" if each == _ALL else each for each in answer.requested_metrics),
        )


def retry_seconds(error_code: int, interval_seconds: float) -> float:
    """How long after a refusal the broker is asked again; ``math.inf`` for never.

    (Kafka: ClientTelemetryUtils.maybeFetchErrorIntervalMs.)
    """
    if error_code in _RETRY_AT_ONCE:
        return 0.0
    return interval_seconds if error_code in _RETRY_LATER else math.inf


class Asker(Protocol):
    """What is needed here of a NetworkClient."""

    @property
    def metadata(self) -> Metadata: ...

    async def until_updated(self, updates: int = 0) -> None: ...

    async def until_ready(self, node: Node) -> None: ...

    def least_loaded_node(self, now: float) -> tuple[Node | None, bool]: ...

    def can_send(self, node_id: int, now: float) -> bool: ...

    def versions(self, node: Node) -> NodeApiVersions | None: ...

    def send_internal(
        self, node: Node, body: Any, now: float, *, version_min: int, told: Any
    ) -> None: ...


class Telemetry:
    """The telemetry of one client.

    Args:
        metrics: what is pushed.
        labels: what goes with it.
        network: its time of day counts.

    Attributes:
        client_instance_id: what a broker calls this client in its own metrics; None before one
            was asked.
    """

    def __init__(self, metrics: ClientMetrics, labels: Mapping[str, str], network: Network) -> None:
        self.client_instance_id: bytes | None = None
        self._metrics = metrics
        self._labels = labels
        self._network = network
        self._chance: random.Random = network.chance
        self._points = TelemetryPoints(self._now_ns())
        self._subscription: Subscription | None = None
        self._interval_seconds = INTERVAL_SECONDS
        self._node: Node | None = None
        self._is_delta = False

    def _now_ns(self) -> int:
        return self._network.now_ms() * 1_000_000

    async def keep_pushing(self, asker: Asker) -> None:
        """Ask and push until cancelled, or a broker says that it makes no sense.

        Another task polls.
        """
        await trio.lowlevel.checkpoint()
        seconds = 0.0
        while seconds < math.inf:
            await trio.sleep(seconds)
            try:
                if self._subscription is None:
                    seconds = await self._subscribe(asker)
                else:
                    seconds = await self._push(asker, self._subscription)
            except TrionetError as error:
                logger.debug("metrics could not be pushed: %s", error)
                self._node = self._subscription = None
                seconds = INTERVAL_SECONDS
            except trio.ClosedResourceError:
                return  # the client was closed in the same instant

    async def _subscribe(self, asker: Asker) -> float:
        """Ask what is wanted; the seconds until the next step."""
        known = self.client_instance_id or NO_UUID
        body = GetTelemetrySubscriptionsRequest(client_instance_id=known)
        answer = await self._ask(asker, api_keys.GET_TELEMETRY_SUBSCRIPTIONS, body)
        if answer.error_code:
            return self._refused(answer.error_code)
        found = Subscription.of(answer)
        self.client_instance_id = bytes(answer.client_instance_id)
        if found.is_delta != self._is_delta:
            self._points.forget()
            self._is_delta = found.is_delta
        self._interval_seconds = found.interval_seconds
        if not found.prefixes:
            return found.interval_seconds
        self._subscription = found
        return found.interval_seconds * self._chance.uniform(*_FIRST_PUSH)

    async def _push(self, asker: Asker, subscription: Subscription) -> float:
        """Send what is wanted; the seconds until the next step."""
        await trio.lowlevel.checkpoint()
        body = self._request(subscription, is_last=False)
        if body is None:
            return subscription.interval_seconds
        answer = await self._ask(asker, api_keys.PUSH_TELEMETRY, body)
        if answer.error_code:
            return self._refused(answer.error_code)
        return subscription.interval_seconds

    def _refused(self, error_code: int) -> float:
        self._subscription = None
        seconds = retry_seconds(error_code, self._interval_seconds)
        name = error_codes.name_of(error_code)
        if seconds == math.inf:
            logger.warning("a broker refuses this client's metrics, no more are pushed: %s", name)
        else:
            logger.info("a broker refuses this client's metrics for now: %s", name)
        return seconds

    def _request(self, subscription: Subscription, *, is_last: bool) -> PushTelemetryRequest | None:
        """A push of everything that is wanted; None if it is more than the broker takes."""
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
                "metrics are not pushed: they have %d bytes, and the broker takes %d",
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

    async def _ask(self, asker: Asker, api_key: int, body: Any) -> Any:
        """Ask the broker that was asked before, or another if that one is gone.

        Raises:
            TrionetError: there is no answer.
        """
        await asker.until_updated()
        now = trio.current_time()
        node = self._node
        if node is None or asker.versions(node) is None:
            node, _ = asker.least_loaded_node(now)
        if node is None:  # all are busy
            node = self._chance.choice(list(asker.metadata.cluster.nodes.values()))
        await asker.until_ready(node)
        versions = asker.versions(node)
        if versions is None or not versions.versions(api_key):
            raise UnsupportedVersionError(f"{node} takes no metrics of clients")
        self._node = node
        answer = AwaitedAnswer()
        asker.send_internal(node, body, trio.current_time(), version_min=0, told=answer)
        return await answer.wait()

    def end(self, asker: Asker) -> None:
        """Send the last numbers if that takes no waiting: the client is about to be closed."""
        node, subscription = self._node, self._subscription
        now = trio.current_time()
        if node is None or subscription is None or not asker.can_send(node.id, now):
            return
        body = self._request(subscription, is_last=True)
        if body is not None:
            with suppress(UnsupportedVersionError):
                asker.send_internal(node, body, now, version_min=0, told=_nobody_waits)


def _nobody_waits(response: ClientResponse) -> None:
    """What becomes of the last push: there is nobody left to tell."""
