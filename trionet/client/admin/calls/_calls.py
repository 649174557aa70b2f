"""The sender of admin requests, which retries them until they succeed or time out.

(Kafka: KafkaAdminClient.Call, AdminApiDriver.)
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import attrs
import trio

from ...._util._raising import raise_single_error
from ....errors import ApiError, CallTimedOutError, DisconnectedError, TrionetError
from ....protocol import error_codes
from ....protocol._wire import Message
from ..._api_errors import api_error
from ..._topic_partition import TopicPartition
from ...network._cluster import Node
from ...network._kafka_client import KafkaClient
from ._nodes import CONTROLLER_CODES, CoordinatorKind, Nodes
from ._settings import AdminSettings

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

Lookup = Callable[[Sequence[K]], Awaitable[Mapping[K, Node | TrionetError]]]
"""Returns the broker responsible for each item, or an error if none is known."""

SendTo = Callable[[Node, Sequence[K]], Awaitable[Mapping[K, V | TrionetError]]]
"""Sends one broker a request about some items; raises errors that concern all of these items."""


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

        async def find() -> Node:
            return await (self.nodes.any() if broker_id is None else self.nodes.broker(broker_id))

        node = await self.retry(find)
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
        self, body: Message, check: Callable[[Any], T], *, version_min: int = 0
    ) -> T:
        """Send a request to any broker.

        Args:
            body: the request.
            check: converts the response to the call's value, or raises ApiError.
            version_min: the oldest version that can carry the body.
        """

        async def send() -> T:
            node = await self.nodes.any()
            return check(await self.client.request(node, body, version_min=version_min))

        return await self.retry(send)

    async def call_controller(
        self,
        body: Message,
        check: Callable[[Any], T],
        *,
        version_min: int = 0,
        retried: Collection[int] = (),
    ) -> T:
        """Send a request to the controller; otherwise like :meth:`call_any`."""

        async def send() -> T:
            node = await self.nodes.controller()
            return check(await self.client.request(node, body, version_min=version_min))

        return await self.retry(send, {*CONTROLLER_CODES, *retried})

    async def call_broker(
        self, node_id: int, body: Message, check: Callable[[Any], T], *, version_min: int = 0
    ) -> T:
        """Send a request to one broker; otherwise like :meth:`call_any`."""

        async def send() -> T:
            node = await self.nodes.broker(node_id)
            return check(await self.client.request(node, body, version_min=version_min))

        return await self.retry(send)

    # Calls about many items.

    async def for_each(
        self,
        keys: Iterable[K],
        lookup: Lookup[K],
        send: SendTo[K, V],
        retried: Collection[int] = (),
        *,
        singly: bool = False,
    ) -> Results[K, V]:
        """Send requests about many items, one per broker, and retry the items that fail.

        Args:
            keys: the items.
            lookup: finds the responsible brokers.
            send: sends the request to one broker.
            retried: the error codes for which an item is retried.
            singly: whether to send one request per item instead, concurrently.

        Raises:
            CallTimedOutError: no broker responded about any item in time.
            TrionetError: every request failed as a whole.
        """
        attempts = _Attempts(self._settings, self.nodes, self._rng)
        wanted = list(dict.fromkeys(keys))
        outcomes: dict[K, V | TrionetError | _Whole] = {}
        left = wanted
        with trio.move_on_after(self._settings.api_timeout_seconds):
            await trio.lowlevel.checkpoint()  # even without items
            while left:
                await self._round(left, lookup, send, outcomes, singly)
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
        lookup: Lookup[K],
        send: SendTo[K, V],
        outcomes: dict[K, V | TrionetError | _Whole],
        singly: bool,
    ) -> None:
        """Send one round of requests; outcomes are kept even if other requests time out."""
        requests: dict[tuple[Node, K | None], list[K]] = {}
        await trio.lowlevel.checkpoint()
        try:
            nodes = await lookup(keys)
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

    # Responsible brokers.

    async def at_any(self, keys: Sequence[K]) -> dict[K, Node | TrionetError]:
        """Return the same arbitrary broker for all items."""
        return dict.fromkeys(keys, await self.nodes.any())

    async def at_controller(self, keys: Sequence[K]) -> dict[K, Node | TrionetError]:
        """Return the controller for all items."""
        return dict.fromkeys(keys, await self.nodes.controller())

    async def at_leaders(
        self, keys: Sequence[TopicPartition]
    ) -> dict[TopicPartition, Node | TrionetError]:
        """Return each partition's leader."""
        return await self.nodes.leaders(keys)

    async def at_groups(self, keys: Sequence[str]) -> dict[str, Node | TrionetError]:
        """Return each group's coordinator."""
        return await self.nodes.coordinators(CoordinatorKind.GROUP, keys)

    def at_group(self, group: str) -> Lookup[K]:
        """Return a lookup of one group's coordinator, for all items."""

        async def lookup(keys: Sequence[K]) -> dict[K, Node | TrionetError]:
            return dict.fromkeys(keys, (await self.at_groups([group]))[group])

        return lookup

    async def at_transactions(self, keys: Sequence[str]) -> dict[str, Node | TrionetError]:
        """Return each transactional id's coordinator."""
        return await self.nodes.coordinators(CoordinatorKind.TRANSACTION, keys)

    async def at_themselves(self, keys: Sequence[int]) -> Mapping[int, Node | TrionetError]:
        """Return the brokers whose ids are the items."""
        itself: Lookup[int] = self.at_brokers(lambda node_id: node_id)
        return await itself(keys)

    def at_brokers(self, node_id_of: Callable[[K], int]) -> Lookup[K]:
        """Return a lookup of the broker whose id ``node_id_of`` returns for each item."""

        async def lookup(keys: Sequence[K]) -> dict[K, Node | TrionetError]:
            found: dict[K, Node | TrionetError] = {}
            await trio.lowlevel.checkpoint()
            for key in keys:
                try:
                    found[key] = await self.nodes.broker(node_id_of(key))
                except ApiError as error:
                    found[key] = error
            return found

        return lookup


class AdminCalls:
    """A group of admin calls.

    Args:
        calls: sends the requests.
    """

    def __init__(self, calls: Calls) -> None:
        self._calls = calls


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
        what = str(error or "no broker has responded")
        if not isinstance(error, ApiError):
            what = self._nodes.problem() or what
        failure = CallTimedOutError(
            "the call did not succeed within default.api.timeout.ms"
            f" ({self._settings.api_timeout_seconds:g} s): {what}"
        )
        failure.__cause__ = error
        return failure
