"""Which nodes can be reached, and why others cannot: logged once, and named in errors.

A cause is logged when it is new for its node, not with each attempt, and again after the node was
reached. What a user waits for in vain says :meth:`Reachability.problem`.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

import trio

from ...errors import CallTimedOutError
from .._node import Node
from ..metadata._cluster import Cluster

logger = logging.getLogger("trionet.client")

# A sentence is read by people: it names so many nodes, and counts the others.
_NAMED_MAX: Final = 3


class _Trouble(NamedTuple):
    address: str
    cause: str


class Reachability:
    """Keeps one cause for each node that cannot be reached.

    Args:
        are_advertised: brokers are where they advertise to be; else where the client's owner says.

    Attributes:
        was_reached: a broker of the cluster has responded at the address that it advertises.
    """

    def __init__(self, *, are_advertised: bool = True) -> None:
        self.was_reached = False
        self._are_advertised = are_advertised
        self._troubles: dict[int, _Trouble] = {}
        self._reached: set[str] = set()
        self._scopes: set[trio.CancelScope] = set()
        self._waits_since: float | None = None

    # What happened.

    def failed(self, node: Node, cause: str, level: int = logging.WARNING) -> None:
        """A connection to a node could not be made, or is of no use."""
        trouble = _Trouble(node.address, cause)
        if self._troubles.get(_key(node)) == trouble:
            level = logging.DEBUG
        self._troubles[_key(node)] = trouble
        hint = ""
        if node.broker_id is not None and not self._is_known_at(node.address):
            hint = f"; broker {node.broker_id} advertises that address (advertised.listeners)"
        logger.log(level, "could not connect to %s: %s%s", node, cause, hint)

    def reached(self, node: Node) -> None:
        """A node has responded to a request."""
        self._troubles.pop(_key(node), None)
        self._reached.add(node.address)
        if node.id >= 0 and not self.was_reached:
            self.was_reached = True
            for scope in self._scopes:
                scope.deadline = math.inf

    def keep_up(self, cluster: Cluster) -> None:
        """The cluster was described anew: forget brokers that have left it."""
        for broker_id in [each for each in self._troubles if each >= 0]:
            if broker_id not in cluster.nodes:
                del self._troubles[broker_id]

    # What is said of it.

    def problem(self, cluster: Cluster) -> str:
        """Why the cluster, or a broker of it, cannot be reached; empty if nothing is known of that.

        Args:
            cluster: the newest snapshot.
        """
        brokers = {
            each: it
            for each, it in self._troubles.items()
            if each >= 0 and (self._are_advertised or each in cluster.nodes)
        }
        servers = {each: it for each, it in self._troubles.items() if each < 0}
        is_lost = cluster.is_bootstrap and len(servers) == len(cluster.nodes)
        if brokers and not is_lost:
            return _counted([self._of_broker(*each) for each in brokers.items()], "; ")
        if not servers or not cluster.is_bootstrap:
            return ""
        causes = [
            f"{each.address}: {servers[each.id].cause if each.id in servers else 'no response yet'}"
            for each in cluster.nodes.values()
        ]
        return f"no bootstrap broker could be reached ({_counted(causes, '; ')})"

    def _of_broker(self, broker_id: int, trouble: _Trouble) -> str:
        if self._is_known_at(trouble.address):
            return f"broker {broker_id} at {trouble.address} cannot be reached: {trouble.cause}"
        return (
            f"broker {broker_id} advertises {trouble.address} (advertised.listeners), which cannot"
            f" be reached: {trouble.cause}"
        )

    def _is_known_at(self, address: str) -> bool:
        """Whether it can be no wrong ``advertised.listeners`` that an address is not reached."""
        return not self._are_advertised or address in self._reached

    # Waits that would last for ever.

    @contextmanager
    def until_reached(self, seconds: float, problem: Callable[[], str]) -> Iterator[None]:
        """Limit the waits in this block, unless a broker of the cluster was reached before.

        To wait on would hide a wrong address or protocol. The time runs on from one block to the
        next, and begins anew after it was over.

        Args:
            seconds: ``default.api.timeout.ms``.
            problem: says why no broker can be reached. The block ends without an error, and without
                having come to its end, if there is nothing to say.

        Raises:
            CallTimedOutError: no broker was reached in time.
        """
        if self.was_reached:
            yield
            return
        if self._waits_since is None:
            self._waits_since = trio.current_time()
        with trio.CancelScope(deadline=self._waits_since + seconds) as scope:
            self._scopes.add(scope)
            try:
                yield
            finally:
                self._scopes.discard(scope)
        if scope.cancelled_caught:
            self._waits_since = None
            if why := problem():
                raise CallTimedOutError(
                    "no broker of the cluster was reached within default.api.timeout.ms ="
                    f" {seconds * 1000:.0f}: {why}"
                )


def _key(node: Node) -> int:
    """A broker has one entry, also where it has two connections."""
    return node.id if node.broker_id is None else node.broker_id


def _counted(texts: list[str], separator: str) -> str:
    shown = separator.join(texts[:_NAMED_MAX])
    more = len(texts) - _NAMED_MAX
    return f"{shown} and {more} more" if more > 0 else shown
