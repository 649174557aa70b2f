"""Asking until there is an answer, or time is up (Kafka: KafkaAdminClient.Call, AdminApiDriver)."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import attrs
import trio

from ...._util._single_error import raise_single_error
from ....errors import ApiError, CallTimedOutError, DisconnectedError, TrionetError
from ....protocol import error_codes
from ....protocol._wire import Message
from ..._api_errors import api_error
from ..._node import Node
from ..._topic_partition import TopicPartition
from ...network._kafka_client import KafkaClient
from ._nodes import CONTROLLER_CODES, CoordinatorKind, Nodes
from ._results import Results
from ._settings import AdminSettings

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

Place = Callable[[Sequence[K]], Awaitable[Mapping[K, Node | TrionetError]]]
"""Whom to ask about each item, or why nobody can be asked."""

Ask = Callable[[Node, Sequence[K]], Awaitable[Mapping[K, V | TrionetError]]]
"""Asks one broker about some items; raises what is wrong with all of them."""


class Calls:
    """The requests of an admin client.

    Args:
        client: what sends them.
        settings: how often, and for how long.
        chance: what blurs the waits.

    Attributes:
        client: the same.
        nodes: finds whom to ask.
    """

    def __init__(self, client: KafkaClient, settings: AdminSettings, chance: random.Random) -> None:
        self.client = client
        self.nodes = Nodes(client, of_controllers=bool(settings.controllers))
        self._settings = settings
        self._chance = chance

    @property
    def timeout_ms(self) -> int:
        """How long a broker may take for what it does before it answers."""
        return round(self._settings.client.requests.timeout_seconds * 1000)

    # One answer.

    async def once(self, ask: Callable[[], Awaitable[T]], retried: Collection[int] = ()) -> T:
        """Ask until there is an answer.

        Args:
            ask: raises ApiError for an answer that is an error.
            retried: the codes of those after which asking again may help.

        Raises:
            CallTimedOutError: there was none in time; its cause is what went wrong last.
            TrionetError: what ``ask`` raises.
        """
        attempts = _Attempts(self._settings, self.nodes, self._chance)
        error: TrionetError | None = None
        with trio.move_on_after(self._settings.api_seconds):
            while True:
                try:
                    return await ask()
                except (DisconnectedError, ApiError) as failure:
                    error = failure
                if not attempts.may_pass(error, retried):
                    raise error
                await attempts.wait(error)
        raise attempts.timed_out(error)

    async def ask_any(self, body: Message, check: Callable[[Any], T], *, version_min: int = 0) -> T:
        """Ask any broker.

        Args:
            body: the request.
            check: makes a value of the answer, or raises ApiError.
            version_min: the oldest version that can carry the body.
        """

        async def ask() -> T:
            node = await self.nodes.any()
            return check(await self.client.request(node, body, version_min=version_min))

        return await self.once(ask)

    async def ask_controller(
        self,
        body: Message,
        check: Callable[[Any], T],
        *,
        version_min: int = 0,
        retried: Collection[int] = (),
    ) -> T:
        """As :meth:`ask_any`, the controller."""

        async def ask() -> T:
            node = await self.nodes.controller()
            return check(await self.client.request(node, body, version_min=version_min))

        return await self.once(ask, {*CONTROLLER_CODES, *retried})

    async def ask_broker(
        self, node_id: int, body: Message, check: Callable[[Any], T], *, version_min: int = 0
    ) -> T:
        """As :meth:`ask_any`, one broker."""

        async def ask() -> T:
            node = await self.nodes.broker(node_id)
            return check(await self.client.request(node, body, version_min=version_min))

        return await self.once(ask)

    # An answer for each of many.

    async def each(
        self,
        keys: Iterable[K],
        place: Place[K],
        ask: Ask[K, V],
        retried: Collection[int] = (),
        *,
        singly: bool = False,
    ) -> Results[K, V]:
        """Ask about many items, each until there is an answer, those of one broker together.

        Args:
            keys: the items.
            place: whom to ask about them.
            ask: asks one broker.
            retried: the codes of errors of items after which asking again may help.
            singly: a request holds one item: all are under way at the same time.

        Raises:
            CallTimedOutError: nobody could be asked about anything in time.
            TrionetError: it went wrong for all items alike.
        """
        attempts = _Attempts(self._settings, self.nodes, self._chance)
        wanted = list(dict.fromkeys(keys))
        outcomes: dict[K, V | TrionetError | _Whole] = {}
        left = wanted
        with trio.move_on_after(self._settings.api_seconds):
            await trio.lowlevel.checkpoint()  # also about nothing
            while left:
                await self._round(left, place, ask, outcomes, singly)
                left = [key for key in left if attempts.may_pass(_error(outcomes[key]), retried)]
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
        ask: Ask[K, V],
        outcomes: dict[K, V | TrionetError | _Whole],
        singly: bool,
    ) -> None:
        """Ask once about each; what one broker said stays when the time of another is up."""
        requests: dict[tuple[Node, K | None], list[K]] = {}
        await trio.lowlevel.checkpoint()
        try:
            places = await place(keys)
        except TrionetError as error:
            outcomes.update(dict.fromkeys(keys, _Whole(error)))
            return
        for key in keys:
            node = places[key]
            if isinstance(node, Node):
                requests.setdefault((node, key if singly else None), []).append(key)
            else:
                outcomes[key] = node

        async def ask_one(node: Node, about: Sequence[K]) -> None:
            await trio.lowlevel.checkpoint()
            try:
                answers = await ask(node, about)
            except TrionetError as error:
                outcomes.update(dict.fromkeys(about, _Whole(error)))
                return
            for key in about:
                outcomes[key] = answers[key] if key in answers else _not_told(node, key)

        with raise_single_error():
            async with trio.open_nursery() as nursery:
                for (node, _), about in requests.items():
                    nursery.start_soon(ask_one, node, about)

    # Places.

    async def at_any(self, keys: Sequence[K]) -> dict[K, Node | TrionetError]:
        """All at one broker, no matter which."""
        return dict.fromkeys(keys, await self.nodes.any())

    async def at_controller(self, keys: Sequence[K]) -> dict[K, Node | TrionetError]:
        """All at the controller."""
        return dict.fromkeys(keys, await self.nodes.controller())

    async def at_leaders(
        self, keys: Sequence[TopicPartition]
    ) -> dict[TopicPartition, Node | TrionetError]:
        """Each partition at its leader."""
        return await self.nodes.leaders(keys)

    async def at_groups(self, keys: Sequence[str]) -> dict[str, Node | TrionetError]:
        """Each group at its coordinator."""
        return await self.nodes.coordinators(CoordinatorKind.GROUP, keys)

    def at_group(self, group: str) -> Place[K]:
        """All at the coordinator of one group."""

        async def place(keys: Sequence[K]) -> dict[K, Node | TrionetError]:
            return dict.fromkeys(keys, (await self.at_groups([group]))[group])

        return place

    async def at_transactions(self, keys: Sequence[str]) -> dict[str, Node | TrionetError]:
        """Each transactional id at its coordinator."""
        return await self.nodes.coordinators(CoordinatorKind.TRANSACTION, keys)

    async def at_themselves(self, keys: Sequence[int]) -> Mapping[int, Node | TrionetError]:
        """Each broker, by its id, at itself."""
        itself: Place[int] = self.at_brokers(lambda node_id: node_id)
        return await itself(keys)

    def at_brokers(self, node_id_of: Callable[[K], int]) -> Place[K]:
        """Each at a broker that is known by its id."""

        async def place(keys: Sequence[K]) -> dict[K, Node | TrionetError]:
            found: dict[K, Node | TrionetError] = {}
            await trio.lowlevel.checkpoint()
            for key in keys:
                try:
                    found[key] = await self.nodes.broker(node_id_of(key))
                except ApiError as error:
                    found[key] = error
            return found

        return place


@attrs.frozen
class _Whole:
    """What went wrong with a request as a whole, and so with each item of it."""

    error: TrionetError


def _error(outcome: object) -> TrionetError | None:
    if isinstance(outcome, _Whole):
        return outcome.error
    return outcome if isinstance(outcome, TrionetError) else None


def _results(keys: Sequence[K], outcomes: Mapping[K, V | TrionetError | _Whole]) -> Results[K, V]:
    """The outcomes in the order of the items.

    Raises:
        TrionetError: they all are errors of whole requests.
    """
    whole = [each.error for each in outcomes.values() if isinstance(each, _Whole)]
    if keys and len(whole) == len(keys):
        raise whole[0]
    results: Results[K, V] = Results()
    for key in keys:
        outcome = outcomes[key]
        results[key] = outcome.error if isinstance(outcome, _Whole) else outcome
    return results


def _not_told(node: Node, key: object) -> ApiError:
    return api_error(
        error_codes.UNKNOWN_SERVER_ERROR, str(key), f"the answer of {node} does not speak of it"
    )


class _Attempts:
    """How often something was tried, and whether it is worth to try it again."""

    def __init__(self, settings: AdminSettings, nodes: Nodes, chance: random.Random) -> None:
        self._settings = settings
        self._nodes = nodes
        self._chance = chance
        self._failures = 0
        self._began_at = trio.current_time()

    def may_pass(self, error: TrionetError | None, retried: Collection[int]) -> bool:
        """Whether asking again may help."""
        if error is None or self._failures >= self._settings.retries:
            return False
        if not isinstance(error, ApiError):
            return isinstance(error, DisconnectedError)
        if error.error_code == error_codes.UNKNOWN_TOPIC_OR_PARTITION:
            waited = trio.current_time() - self._began_at
            if waited >= self._settings.unknown_topic_seconds:
                return False
        if self._nodes.of_controllers and error.error_code in CONTROLLER_CODES:
            return True  # who is asked is always the active one
        return error.error_code in retried

    async def wait(self, error: TrionetError | None) -> None:
        """Wait before the next attempt; what is known of the cluster may be what was wrong."""
        if isinstance(error, DisconnectedError) or (
            isinstance(error, ApiError) and error.error_code in CONTROLLER_CODES
        ):
            self._nodes.refresh()
        self._failures += 1
        await trio.sleep(self._settings.retry.seconds(self._failures, self._chance))

    def timed_out(self, error: TrionetError | None) -> CallTimedOutError:
        """Time is up."""
        error = error or self._nodes.last_error()
        what = str(error or "no broker has responded")
        if not isinstance(error, ApiError):
            what = self._nodes.problem() or what
        failure = CallTimedOutError(
            f"no success within default.api.timeout.ms ({self._settings.api_seconds:g} s): {what}"
        )
        failure.__cause__ = error
        return failure
