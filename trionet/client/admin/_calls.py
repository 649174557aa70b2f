"""The sender of admin requests, which retries them until they succeed or time out.

(Kafka: KafkaAdminClient.Call, AdminApiDriver.) The settings say how often and for how long.
:func:`open_calls` opens a client for the calls of some groups alone, without importing the others.
A call sends either one request (:meth:`Calls.call_any` and the like) or one to each broker that is
responsible for some of its items (:meth:`Calls.for_each`).
"""

from __future__ import annotations

import random
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, TypeVar

import attrs
import trio

from ..._util._logging import get_logger
from ..._util._raising import raise_single_error
from ...errors import ApiError, CallTimedOutError, ConfigError, DisconnectedError, TrionetError
from ...net._network import SYSTEM, Network
from ...protocol import error_codes
from ...protocol._wire import Message
from .._api_errors import api_error
from .._backoff import ExponentialBackoff
from .._not_copied import NotCopied
from ..config._client_config import ClientConfig, check_nothing_beside, read_config
from ..config._client_settings import client_settings, retry_backoff
from ..config._keys import ADMIN_KEYS
from ..network._cluster import Node
from ..network._kafka_client import KafkaClient
from ..network._open_client import ClientSettings, keep_polling, open_kafka_client
from ..security._settings import TokenProvider
from ._conversions import check
from ._nodes import CONTROLLER_CODES, COORDINATOR_CODES, Nodes, Place

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

Outcomes = dict[K, V | TrionetError]
"""The value or error of each item."""

SendTo = Callable[[Node, Sequence[K]], Awaitable[Mapping[K, V | TrionetError]]]
"""Sends one broker a request about some items; raises errors that concern all of these items."""

INT_MAX: Final = 2**31 - 1

logger = get_logger("trionet.client")

IN_FLIGHT_MAX: Final = 1_000_000
"""Effectively no limit, as in KafkaAdminClient: calls do not wait for each other."""


@attrs.frozen(kw_only=True)
class AdminSettings:
    """All settings of an admin client; the defaults are Kafka's.

    Attributes:
        client: the NetworkClient's settings.
        controllers: controllers to use instead of brokers (``bootstrap.controllers``, KIP-919).
        api_timeout_seconds: the timeout of a call, including its retries
            (``default.api.timeout.ms``).
        retries: the maximum number of retries per call (``retries``).
        retry: the backoff between retries (``retry.backoff.ms``, ``retry.backoff.max.ms``).
        unknown_topic_seconds: how long to retry after UNKNOWN_TOPIC_OR_PARTITION, since some
            brokers learn about a new topic later than others. Kafka's own client retries for
            ``default.api.timeout.ms``, even if the name is misspelt.
    """

    client: ClientSettings = attrs.field(factory=lambda: ClientSettings(idle_seconds_max=300.0))
    controllers: tuple[str, ...] = ()
    api_timeout_seconds: float = 60.0
    retries: int = INT_MAX
    retry: ExponentialBackoff = attrs.field(default=ExponentialBackoff(0.1, 1.0))
    unknown_topic_seconds: float = 5.0


def admin_settings(
    config: Mapping[str, object] | AdminSettings | None,
    keywords: Mapping[str, object],
    token_provider: TokenProvider | None = None,
) -> AdminSettings:
    """Build and check an admin client's settings.

    Args:
        config: see :func:`.read_config`; or a settings object, which is returned unchanged.
        keywords: see :func:`.read_config`.
        token_provider: returns the tokens for OAUTHBEARER.

    Raises:
        TypeError: ``config`` is not settings, or is a settings object beside other settings.
        ConfigError: a key is unknown, a value is not allowed, or values are inconsistent.
    """
    if isinstance(config, AdminSettings):
        check_nothing_beside(keywords, token_provider)
        return config
    read = read_config(ADMIN_KEYS, config, keywords)
    settings = AdminSettings(
        client=client_settings(read, in_flight_max=IN_FLIGHT_MAX, token_provider=token_provider),
        controllers=read.names("bootstrap.controllers"),
        api_timeout_seconds=_api_timeout_seconds(read),
        retries=read.integer("retries"),
        retry=retry_backoff(read),
    )
    read.report()
    return settings


def _api_timeout_seconds(config: ClientConfig) -> float:
    """Return the timeout of a call; at least ``request.timeout.ms`` if only that key is set.

    (Kafka: KafkaAdminClient.configureDefaultApiTimeoutMs.)
    """
    key = "default.api.timeout.ms"
    call, request = config.seconds(key), config.seconds("request.timeout.ms")
    if key in config.given or call >= request:
        return call
    logger.warning(
        "%s is not set, and its default is lower than request.timeout.ms;"
        " using request.timeout.ms for both",
        key,
    )
    return request


@asynccontextmanager
async def open_calls(
    bootstrap_servers: str | Iterable[str] | None,
    settings: AdminSettings,
    *,
    network: Network = SYSTEM,
) -> AsyncIterator[Calls]:
    """Open an admin client's request sender for the duration of an ``async with`` block.

    Pass the sender to a group of calls, such as ``GroupCalls(calls)``. Unlike
    :func:`._admin.open_admin`, this does not import the other groups of calls.

    Args:
        bootstrap_servers: see :func:`._admin.open_admin`.
        settings: the settings.
        network: opens connections.

    Raises:
        ConfigError: ``bootstrap_servers`` is invalid, or both servers and controllers are set, or
            neither.

    Cancellation: at the end of the block all connections are closed immediately.
    """
    if (bootstrap_servers is None) == (not settings.controllers):
        raise ConfigError(
            "an admin client requires either bootstrap.servers or bootstrap.controllers;"
            f" {'both are' if settings.controllers else 'neither is'} set"
        )
    async with open_kafka_client(
        settings.controllers if bootstrap_servers is None else bootstrap_servers,
        settings.client,
        network=network,
        kind="admin-client",
        of_controllers=bootstrap_servers is None,
    ) as client:
        client.background.start_soon(keep_polling, client)
        yield Calls(client, settings, network.rng)


class Results(dict[K, V | TrionetError]):
    """Maps each item of a call to its value or error.

    Errors of individual items are not raised.
    """

    @property
    def errors(self) -> dict[K, TrionetError]:
        """The errors of the items that failed."""
        return {key: value for key, value in self.items() if isinstance(value, TrionetError)}

    def checked(self) -> dict[K, V]:
        """Return the values of all items.

        Raises:
            TrionetError: the error of the first item that failed.
        """
        for error in self.errors.values():
            raise error
        return {key: value for key, value in self.items() if not isinstance(value, TrionetError)}


class Calls:
    """The sender of an admin client's requests.

    Args:
        client: the network client that sends them.
        settings: timeouts and retries.
        rng: the source of the backoff's jitter.

    Attributes:
        client: the network client that sends them.
        nodes: finds the responsible brokers.
    """

    def __init__(self, client: KafkaClient, settings: AdminSettings, rng: random.Random) -> None:
        self.client = client
        self.nodes: Nodes = Nodes(client, of_controllers=bool(settings.controllers))
        self._settings = settings
        self._rng = rng

    @property
    def timeout_ms(self) -> int:
        """How long a broker may take to carry out a request, in ms."""
        return round(self._settings.client.requests.timeout_seconds * 1000)

    # Calls with one response.

    async def request(
        self, body: Message, *, broker_id: int | None = None, version_max: int | None = None
    ) -> Any:
        """Send a request to a broker once, and return the response unchecked.

        See :meth:`.Admin.request`.
        """
        node = await self.retry(self._finder(broker_id))
        return await self.client.request(node, body, version_max=version_max)

    async def retry(self, send: Callable[[], Awaitable[T]], retried: Collection[int] = ()) -> T:
        """Send a request, and retry it until it succeeds or times out.

        Args:
            send: sends the request; raises ApiError if the response has an error code.
            retried: the error codes to retry.

        Raises:
            CallTimedOutError: no attempt succeeded in time; the cause is the last error.
            TrionetError: ``send`` raised an error that is not retried, or retries are exhausted.
        """
        attempts = _Attempts(self._settings, self.nodes, self._rng)
        error: TrionetError | None = None
        with trio.move_on_after(self._settings.api_timeout_seconds):
            while True:
                try:
                    return await send()
                except (DisconnectedError, ApiError) as failure:
                    error = failure
                if not attempts.should_retry(error, retried):
                    raise error
                await attempts.wait(error)
        raise attempts.timed_out(error)

    async def call_any(
        self,
        body: Message,
        about: str = "",
        *,
        broker_id: int | None = None,
        version_min: int = 0,
    ) -> Any:
        """Send a request to any broker or to the given one, and return the response.

        Args:
            body: the request.
            about: the subject of the response's error; empty if a response has no error code.
            broker_id: the broker; None for any.
            version_min: the oldest version that can carry the body.

        Raises:
            ApiError: the response has an error code.
            TrionetError: see :meth:`retry`.
        """
        return await self._call(self._finder(broker_id), body, about, version_min)

    async def call_controller(self, body: Message, about: str, *, version_min: int = 0) -> Any:
        """Send a request to the controller; otherwise like :meth:`call_any`."""
        find = self.nodes.controller
        return await self._call(find, body, about, version_min, CONTROLLER_CODES)

    async def _call(
        self,
        find: Callable[[], Awaitable[Node]],
        body: Message,
        about: str,
        version_min: int,
        retried: Collection[int] = (),
    ) -> Any:
        async def send() -> Any:
            response = await self.client.request(await find(), body, version_min=version_min)
            if about:
                check(response, about)
            return response

        return await self.retry(send, retried)

    def _finder(self, broker_id: int | None) -> Callable[[], Awaitable[Node]]:
        return self.nodes.any if broker_id is None else partial(self.nodes.broker, broker_id)

    # Calls about many items.

    async def for_each(
        self,
        keys: Iterable[K],
        place: Place[K],
        send: SendTo[K, V],
        *,
        retried: Collection[int] = (),
        singly: bool = False,
    ) -> Results[K, V]:
        """Send requests about many items, one per broker, and retry the items that fail.

        Args:
            keys: the items.
            place: finds the responsible brokers.
            send: sends the request to one broker.
            retried: more error codes for which an item is retried than the place has.
            singly: whether to send one request per item instead, concurrently.

        Raises:
            CallTimedOutError: no broker responded about any item in time.
            TrionetError: every request failed as a whole.
        """
        attempts = _Attempts(self._settings, self.nodes, self._rng)
        wanted = list(dict.fromkeys(keys))
        outcomes: dict[K, V | TrionetError | _Whole] = {}
        left = wanted
        retried = place.retried.union(retried)
        with trio.move_on_after(self._settings.api_timeout_seconds):
            await trio.lowlevel.checkpoint()  # even without items
            while left:
                await self._round(left, place, send, outcomes, singly)
                left = [
                    key for key in left if attempts.should_retry(_error(outcomes[key]), retried)
                ]
                if left:
                    await attempts.wait(_error(outcomes[left[0]]))
        for key in left:
            last = outcomes.get(key)
            if key not in outcomes or isinstance(last, _Whole):
                outcomes[key] = _Whole(attempts.timed_out(_error(last)))
        return _results(wanted, outcomes)

    async def _round(
        self,
        keys: Sequence[K],
        place: Place[K],
        send: SendTo[K, V],
        outcomes: dict[K, V | TrionetError | _Whole],
        singly: bool,
    ) -> None:
        """Send one round of requests; outcomes are kept even if other requests time out."""
        requests: dict[tuple[Node, K | None], list[K]] = {}
        await trio.lowlevel.checkpoint()
        try:
            nodes = await place.find(keys)
        except TrionetError as error:
            outcomes.update(dict.fromkeys(keys, _Whole(error)))
            return
        for key in keys:
            node = nodes[key]
            if isinstance(node, Node):
                requests.setdefault((node, key if singly else None), []).append(key)
            else:
                outcomes[key] = node

        async def send_one(node: Node, about: Sequence[K]) -> None:
            await trio.lowlevel.checkpoint()
            try:
                responses = await send(node, about)
            except TrionetError as error:
                outcomes.update(dict.fromkeys(about, _Whole(error)))
                return
            for key in about:
                outcomes[key] = responses[key] if key in responses else _missing(node, key)

        with raise_single_error():
            async with trio.open_nursery() as nursery:
                for (node, _), about in requests.items():
                    nursery.start_soon(send_one, node, about)

    async def list_everywhere(
        self,
        body: Message,
        listed: Callable[[Any, Node], dict[str, V]],
        *,
        version_min: int,
    ) -> dict[str, V]:
        """Send a request to all brokers, and return what their responses list, keyed by name.

        If a broker does not respond, all are asked again: what it coordinates may move to one that
        has already responded.

        Args:
            body: the request.
            listed: converts the response of a broker, or raises ApiError.
            version_min: the oldest version that can carry the body.

        Raises:
            TrionetError: a broker could not be reached, so the listing would be incomplete.
        """

        async def ask_all() -> dict[str, V]:
            found: dict[str, V] = {}
            errors: list[TrionetError] = []

            async def ask(node: Node) -> None:
                await trio.lowlevel.checkpoint()
                try:
                    response = await self.client.request(node, body, version_min=version_min)
                    found.update(listed(response, node))
                except TrionetError as error:
                    errors.append(error)

            brokers = await self.nodes.all()
            with raise_single_error():
                async with trio.open_nursery() as nursery:
                    for node in brokers.values():
                        nursery.start_soon(ask, node)
            if errors:
                raise errors[0]
            return found

        return await self.retry(ask_all, COORDINATOR_CODES)


class AdminCalls(NotCopied):
    """A group of admin calls.

    Args:
        calls: sends the requests.
    """

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._nodes = calls.nodes
        self._request = calls.client.request


@attrs.frozen
class _Whole:
    """The error of a whole request, which applies to each item in the request."""

    error: TrionetError


def _error(outcome: object) -> TrionetError | None:
    if isinstance(outcome, _Whole):
        return outcome.error
    return outcome if isinstance(outcome, TrionetError) else None


def _results(keys: Sequence[K], outcomes: Mapping[K, V | TrionetError | _Whole]) -> Results[K, V]:
    """Return the outcomes in the order of the items.

    Raises:
        TrionetError: every request failed as a whole.
    """
    whole = [each.error for each in outcomes.values() if isinstance(each, _Whole)]
    if keys and len(whole) == len(keys):
        raise whole[0]
    results: Results[K, V] = Results()
    for key in keys:
        outcome = outcomes[key]
        results[key] = outcome.error if isinstance(outcome, _Whole) else outcome
    return results


def _missing(node: Node, key: object) -> ApiError:
    return api_error(
        error_codes.UNKNOWN_SERVER_ERROR, str(key), f"missing from the response of {node}"
    )


class _Attempts:
    """The attempts of one call; decides whether and when to retry."""

    def __init__(self, settings: AdminSettings, nodes: Nodes, rng: random.Random) -> None:
        self._settings = settings
        self._nodes = nodes
        self._rng = rng
        self._failures = 0
        self._began_at = trio.current_time()

    def should_retry(self, error: TrionetError | None, retried: Collection[int]) -> bool:
        """Return whether to retry after an error."""
        if error is None or self._failures >= self._settings.retries:
            return False
        if not isinstance(error, ApiError):
            return isinstance(error, DisconnectedError)
        if error.error_code == error_codes.UNKNOWN_TOPIC_OR_PARTITION:
            waited = trio.current_time() - self._began_at
            if waited >= self._settings.unknown_topic_seconds:
                return False
        if self._nodes.of_controllers and error.error_code in CONTROLLER_CODES:
            return True  # every request goes to the active controller
        return error.error_code in retried

    async def wait(self, error: TrionetError | None) -> None:
        """Wait out the backoff, and refresh the metadata if stale metadata may be the cause."""
        if isinstance(error, DisconnectedError) or (
            isinstance(error, ApiError) and error.error_code in CONTROLLER_CODES
        ):
            self._nodes.refresh()
        self._failures += 1
        await trio.sleep(self._settings.retry.seconds(self._failures, self._rng))

    def timed_out(self, error: TrionetError | None) -> CallTimedOutError:
        """Return the error to raise after the call has timed out."""
        error = error or self._nodes.last_error()
        what = str(error or self._nodes.controller_problem() or "no broker has responded")
        if not isinstance(error, ApiError):
            what = self._nodes.problem() or what
        failure = CallTimedOutError(
            "the call did not succeed within default.api.timeout.ms"
            f" ({self._settings.api_timeout_seconds:g} s): {what}"
        )
        failure.__cause__ = error
        return failure
