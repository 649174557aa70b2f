"""Why nodes cannot be reached, and which setting to change: logged once, and quoted in errors.

A few causes account for nearly all failures; changing one setting fixes most of them. A cause is
logged when it is new for a node rather than at every attempt, and again if the node has
been reached in the meantime. :meth:`Reachability.problem` explains why a wait has not ended.

**The problem.** A client retries forever, as in Kafka, so a wrong port, protocol or
``advertised.listeners`` looks like a slow cluster: the program waits, and the log repeats the same
line.

**The choice.** The latest cause is kept per node. It is logged once at WARNING (repetitions at
DEBUG), and every error about a wait quotes it. Waits that would have no time limit have one until
a broker of the cluster has responded at its advertised address. After that response, the address
and the protocol are known to be right, and the client may wait indefinitely.

**What was refused.** An error after the first failed connection: brokers restart. A limit for every
wait: a consumer must survive an outage of hours. Logging alone: a user who reads an exception may
not read the log.

**When to think again.** If brokers have listeners with different permissions, so that a response
from one broker proves nothing about the others.
"""

from __future__ import annotations

import logging
import math
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from itertools import islice
from typing import Final, NamedTuple

import trio

from ..._util._logging import get_logger
from ...errors import AuthenticationError, CallTimedOutError, DisconnectedError
from ...net._channel import Channel
from ...net._channel_state import ChannelState
from ...net.wire._close_reason import CloseReason
from ...net.wire._endpoint import SecurityProtocol
from ...net.wire._framing import LOOKS_LIKE_TLS
from ..security._sasl_client_authenticator import NOT_FOR_SASL
from ._cluster import Cluster, Node

logger = get_logger("trionet.client")

# OpenSSL's messages for bytes that are not a TLS record; they depend on the OpenSSL version.
_NOT_TLS: Final = ("wrong version number", "record layer failure", "packet length too long")

# The end of a connection may appear as a FIN or RST, in a read or in a write.
_CLOSED: Final = frozenset(
    {
        CloseReason.PEER_CLOSED,
        CloseReason.PEER_CLOSED_IN_FRAME,
        CloseReason.PEER_RESET,
        CloseReason.SEND_FAILED,
    }
)


class Stage(Enum):
    """The stages of connection setup; each value describes a timeout at that stage."""

    LOOKUP = "the host name lookup did not finish"
    CONNECT = "no response to the TCP connect"
    TLS = "the TLS handshake did not finish"
    SASL = "no response to SASL authentication"
    VERSIONS = "no response to ApiVersions"
    FIRST_REQUEST = "no response to the first request"
    IN_USE = "no response"


def stage_of(channel: Channel | None, *, is_checking: bool, is_unconfirmed: bool) -> Stage:
    """Return the stage that a connection has reached.

    Args:
        channel: the connection's channel; None before it is opened.
        is_checking: whether the ApiVersions request is still in flight.
        is_unconfirmed: whether the node has yet to respond to a request other than ApiVersions.
    """
    if channel is None:
        return Stage.LOOKUP
    if channel.reached is ChannelState.CONNECTING:
        return Stage.CONNECT
    if channel.reached is ChannelState.HANDSHAKING:
        return Stage.TLS
    if channel.reached is ChannelState.AUTHENTICATING:
        return Stage.SASL
    if is_checking:
        return Stage.VERSIONS
    return Stage.FIRST_REQUEST if is_unconfirmed else Stage.IN_USE


def no_response(stage: Stage, seconds: float) -> str:
    """Describe a timeout at a stage."""
    return f"{stage.value} within {seconds:g} s"


def cause_of_end(
    channel: Channel, stage: Stage, protocol: SecurityProtocol, *, has_worked: bool = False
) -> str:
    """Return why a channel was closed, with the setting to change if one is the likely cause.

    Args:
        channel: a closed channel, with its ``close_reason``.
        stage: the stage that the connection had reached.
        protocol: the client's ``security.protocol``.
        has_worked: whether the node has responded before, so that the settings are right and it has
            probably stopped.
    """
    reason, detail = channel.close_reason, channel.close_detail
    assert reason is not None
    if stage is Stage.CONNECT:
        return detail or reason.value
    if LOOKS_LIKE_TLS in detail and not protocol.has_tls:
        return f"the listener speaks TLS; set security.protocol={_named(protocol, tls=True)}"
    if reason is CloseReason.AUTHENTICATION_FAILED:
        if any(each in detail for each in _NOT_TLS):
            detail += f"; the listener does not speak TLS; {_without_tls(protocol)}"
        elif detail == NOT_FOR_SASL:
            detail += f"; set security.protocol={_named(protocol, sasl=False)}"
        return detail
    if reason is CloseReason.INVALID_RECEIVE and stage is not Stage.IN_USE:
        return f"the listener does not speak Kafka's protocol: {detail}"
    if reason in _CLOSED and not has_worked and (hint := _hint(stage, protocol)):
        return f"the connection was closed {hint}"
    return f"{reason.value}: {detail}" if detail else reason.value


def _hint(stage: Stage, protocol: SecurityProtocol) -> str:
    """Return the stage at which the connection was closed, and the likely cause."""
    match stage:
        case Stage.TLS:
            return (
                "during the TLS handshake; the listener probably does not speak TLS;"
                f" {_without_tls(protocol)}"
            )
        case Stage.SASL:
            return (
                "during SASL authentication; possible causes: a firewall, a listener with a"
                " different security.protocol, or a broker older than Kafka 1.0 that rejects the"
                " credentials"
            )
        case Stage.VERSIONS if protocol.has_tls:
            return "before the response to ApiVersions; the listener may not be a Kafka broker's"
        case Stage.VERSIONS:
            return (
                "before the response to ApiVersions; the listener probably speaks TLS; set"
                f" security.protocol={_named(protocol, tls=True)}"
            )
        case Stage.FIRST_REQUEST if not protocol.has_sasl:
            # Kafka's SaslServerAuthenticator responds to ApiVersions, and closes the connection if
            # the next request is not SaslHandshake.
            return (
                "after the first request that followed ApiVersions; the listener probably requires"
                " SASL; set"
                f" security.protocol={_named(protocol, sasl=True)}"
            )
    return ""


def _without_tls(protocol: SecurityProtocol) -> str:
    return f"set security.protocol={_named(protocol, tls=False)}"


def _named(protocol: SecurityProtocol, *, tls: bool | None = None, sasl: bool | None = None) -> str:
    """Return the protocol's name, with TLS or SASL added or removed."""
    has_tls = protocol.has_tls if tls is None else tls
    has_sasl = protocol.has_sasl if sasl is None else sasl
    return f"{'SASL_' if has_sasl else ''}{'SSL' if has_tls else 'PLAINTEXT'}"


#: How :meth:`Reachability.problem` begins if no bootstrap server responds; the causes follow.
UNREACHED: Final = "no bootstrap broker could be reached"

# The number of nodes that a message names; further nodes are only counted.
_NAMED_MAX: Final = 3

#: The number of unreachable nodes that the log names at WARNING; further ones are logged at DEBUG.
#: A cluster may advertise any number of addresses.
LOGGED_MAX: Final = 20


class _Trouble(NamedTuple):
    """Why a node cannot be reached.

    Attributes:
        address: the node's host and port.
        cause: the reason, for messages.
        error: the error of the latest attempt; its cause is the system's error, if there was one,
            a TimeoutError for a node that is merely silent, and an AuthenticationError for one that
            rejects the credentials.
    """

    address: str
    cause: str
    error: DisconnectedError

    @property
    def is_refusal(self) -> bool:
        return isinstance(self.error.__cause__, ConnectionRefusedError)

    @property
    def is_lasting(self) -> bool:
        """Whether trying again would most likely change nothing."""
        because = self.error.__cause__
        if isinstance(because, socket.gaierror):
            return because.errno == socket.EAI_NONAME  # not EAI_AGAIN
        # ValueError: the address is impossible.
        return self.is_refusal or isinstance(because, ValueError | AuthenticationError)


class Reachability:
    """The nodes that cannot be reached, each with the latest cause.

    Args:
        are_advertised: whether brokers' addresses come from their ``advertised.listeners`` rather
            than from the client's owner.

    Attributes:
        was_reached: whether any broker has responded at its advertised address.
    """

    def __init__(self, *, are_advertised: bool = True) -> None:
        self.was_reached: bool = False
        self._are_advertised = are_advertised
        self._troubles: dict[int, _Trouble] = {}
        # The nodes with troubles that have been logged.
        self._logged: set[int] = set()
        self._reached: set[str] = set()
        self._bootstrap = ""  # the bootstrap server that has responded
        self._scopes: set[trio.CancelScope] = set()
        self._waiting_since: float | None = None

    # Events.

    def failed(
        self,
        node: Node,
        cause: str,
        because: BaseException | None = None,
        level: int = logging.WARNING,
    ) -> DisconnectedError:
        """Record and log that a connection could not be established or is not usable.

        Args:
            node: the node.
            cause: the reason, for messages.
            because: the system's error, if there was one.
            level: the level at which a new cause is logged.

        Returns:
            The error for the requests that wait for the node, caused by ``because``.
        """
        error = DisconnectedError(f"could not connect to {node}: {cause}")
        error.__cause__ = because
        before = self._troubles.get(_key(node))
        if (
            before is not None and (before.address, before.cause) == (node.address, cause)
        ) or not self._is_logged(_key(node)):
            level = logging.DEBUG
        self._troubles[_key(node)] = _Trouble(node.address, cause, error)
        hint = ""
        if node.broker_id is not None and not self._is_known_at(node.address):
            hint = f"; broker {node.broker_id} advertises that address (advertised.listeners)"
        # A command may say the same by itself, and then recognises the record by this attribute.
        logger.log(level, "%s%s", error, hint, extra={"unreached": node.address})
        return error

    def _is_logged(self, key: int) -> bool:
        """Whether the log names this node among those that cannot be reached."""
        if key in self._logged:
            return True
        if len(self._logged) == LOGGED_MAX:
            return False
        self._logged.add(key)
        if len(self._logged) == LOGGED_MAX:
            logger.warning(
                "%d nodes cannot be reached; further ones are logged at level DEBUG", LOGGED_MAX
            )
        return True

    def _forget(self, key: int) -> None:
        self._troubles.pop(key, None)
        self._logged.discard(key)

    def silent(self, node: Node, cause: str) -> DisconnectedError:
        """Record and log that a node has not responded in time; as :meth:`failed`."""
        return self.failed(node, cause, TimeoutError(cause))

    def reached(self, node: Node) -> None:
        """Record that a node has responded to a request."""
        self._forget(_key(node))
        self._reached.add(node.address)
        if node.id < 0:
            self._bootstrap = node.address
        elif not self.was_reached:
            self.was_reached = True
            for scope in self._scopes:
                scope.deadline = math.inf

    def forget_departed(self, cluster: Cluster) -> None:
        """Forget brokers that have left the cluster."""
        for broker_id in [each for each in self._troubles if each >= 0]:
            if broker_id not in cluster.nodes:
                self._forget(broker_id)

    # Messages.

    def problem(self, cluster: Cluster) -> str:
        """Return why the cluster or a broker cannot be reached; an empty string if unknown.

        Args:
            cluster: the newest snapshot of the cluster.
        """
        troubles = self._relevant(cluster)
        if not troubles:
            return ""
        if min(troubles) >= 0:
            named = islice(troubles.items(), _NAMED_MAX)
            return _counted([self._of_broker(*each) for each in named], len(troubles), "; ")
        causes = [
            f"{each.address}: "
            + (troubles[each.id].cause if each.id in troubles else "no response yet")
            for each in islice(cluster.nodes.values(), _NAMED_MAX)
        ]
        counted = _counted(causes, len(cluster.nodes), "; ")
        return f"{UNREACHED} ({counted})"

    def error(self, cluster: Cluster) -> DisconnectedError | None:
        """Return an error that :meth:`problem` describes, as the cause of a timeout.

        Args:
            cluster: the newest snapshot of the cluster.
        """
        return next((each.error for each in self._relevant(cluster).values()), None)

    def refusal(self, cluster: Cluster) -> str:
        """Return why no broker accepts this client; empty if one may still respond.

        That is certain only if nothing listens, the name does not exist or the credentials are
        rejected: at every bootstrap server, or at every address that the brokers advertise. Unlike
        in :meth:`problem`, everything else may pass: a container that starts accepts connections
        and closes them, or its name cannot be looked up yet.

        Args:
            cluster: the newest snapshot of the cluster.
        """
        troubles = self._relevant(cluster)
        if not troubles or not all(each.is_lasting for each in troubles.values()):
            return ""
        is_advertised = min(troubles) >= 0
        # Once all brokers have failed, the client begins anew at the bootstrap servers.
        if troubles.keys() != cluster.nodes.keys() and not (is_advertised and cluster.is_bootstrap):
            return ""
        found = [troubles[each] for each in sorted(troubles, key=abs)]
        if not all(each.is_refusal for each in found):
            return self.problem(cluster)
        named = [each.address for each in found[:_NAMED_MAX]]
        addresses = _counted(named, len(found), " or ")
        if not is_advertised:
            return f"nothing listens at {addresses} (connection refused)"
        if any(self._is_known_at(each.address) for each in found):
            return self.problem(cluster)
        brokers = "the broker is" if len(found) == 1 else "the brokers are"
        return (
            f"{self._bootstrap} responded, and says that {brokers} at {addresses}, where nothing"
            " listens (connection refused): set advertised.listeners"
        )

    def _relevant(self, cluster: Cluster) -> dict[int, _Trouble]:
        """Return the troubles with brokers or, if they are the problem, with bootstrap servers."""
        brokers = {
            id: trouble
            for id, trouble in self._troubles.items()
            if id >= 0 and (self._are_advertised or id in cluster.nodes)
        }
        servers = {id: trouble for id, trouble in self._troubles.items() if id < 0}
        is_lost = cluster.is_bootstrap and len(servers) == len(cluster.nodes)
        if brokers and not is_lost:
            return brokers
        return servers if cluster.is_bootstrap else {}

    def _of_broker(self, broker_id: int, trouble: _Trouble) -> str:
        if self._is_known_at(trouble.address):
            return f"broker {broker_id} at {trouble.address} cannot be reached: {trouble.cause}"
        return (
            f"broker {broker_id} advertises {trouble.address} (advertised.listeners), which cannot"
            f" be reached: {trouble.cause}"
        )

    def _is_known_at(self, address: str) -> bool:
        """Whether a wrong ``advertised.listeners`` can be ruled out as the cause."""
        return not self._are_advertised or address in self._reached

    def has_worked(self, node: Node) -> bool:
        """Whether the node's address has ever responded."""
        return node.address in self._reached

    # Waits that would never end.

    @contextmanager
    def until_reached(self, seconds: float, cluster: Callable[[], Cluster]) -> Iterator[None]:
        """Limit how long this block may run, until a broker of the cluster has been reached.

        Waiting forever would hide a wrong address or protocol. The time limit spans consecutive
        blocks, and starts over once it has expired.

        Args:
            seconds: the time limit (``default.api.timeout.ms``).
            cluster: returns the newest snapshot of the cluster. If no problem with it is known,
                the expired block is cancelled without an error.

        Raises:
            CallTimedOutError: no broker was reached in time.
        """
        if self.was_reached:
            yield
            return
        if self._waiting_since is None:
            self._waiting_since = trio.current_time()
        with trio.CancelScope(deadline=self._waiting_since + seconds) as scope:
            self._scopes.add(scope)
            try:
                yield
            finally:
                self._scopes.discard(scope)
        if scope.cancelled_caught:
            self._waiting_since = None
            if why := self.problem(cluster()):
                raise CallTimedOutError(
                    "no broker of the cluster could be reached within default.api.timeout.ms ="
                    f" {seconds * 1000:.0f}: {why}"
                ) from self.error(cluster())


def _key(node: Node) -> int:
    """Return a node's key, which a broker shares with its coordinator connections."""
    return node.id if node.broker_id is None else node.broker_id


def _counted(named: list[str], count: int, separator: str) -> str:
    shown = separator.join(named)
    more = count - len(named)
    return f"{shown} and {more} more" if more > 0 else shown
