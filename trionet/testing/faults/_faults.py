"""Fault injection: makes a broker fail in a chosen way on chosen requests.

The problem: tests of clients need a broker that fails in a chosen way on a chosen request, while
the real broker serves everything else. Tests may be synchronous (the broker is in another
thread) or trio programs (the broker shares their loop).

The choice: faults are added by plain calls that never wait; each returns a :class:`Fault` that
lists the requests to which it was applied. Faults are applied where requests enter the APIs
(:mod:`._interception`), so a fault sees a decoded request and may still have it handled. Of the
matching faults that are not over, the one added first is applied, so two faults for the same
requests are applied in sequence. A fault that only delays or holds a request passes it on to later
faults. Faults are added and removed in the broker's loop, so no request sees a partial change.

Faults apply only to requests. They cannot affect the exchanges that precede requests on a
connection: the TLS handshake, SASL, and ApiVersions before SASL.

Rejected: a proxy between client and broker (it would have to decode everything again, and could
not delay operations inside the broker) and scripted fake brokers (tests would only check the
script).
For faults below the level of frames, see :class:`~trionet.testing.MemoryNetwork`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, TypedDict, Unpack

import trio

from ...broker.api._response_errors import error_fields
from ...net._channel import Channel
from ...net._selector import Selector
from ...net.wire._close_reason import CloseReason
from ...protocol import api_keys
from ...server._processor import Processor
from .._internals import InLoop, call_directly
from .._names import ApiName, ErrorName, error_code
from .._seen_requests import Fault, SeenRequest, Which, api_keys_of
from ._fault_actions import (
    RECORD_APIS,
    Action,
    Body,
    Close,
    Continue,
    Corrupt,
    Cut,
    Fail,
    HoldMarkers,
    Respond,
    Swallow,
    Throttle,
    check_body,
    close_with_reset,
)
from ._interception import FOREVER, FaultRule, Interception, check_timing
from ._response_errors import response_class

# pytest leaves the frames of this module out of its reports.
__tracebackhide__ = True

Apis = ApiName | tuple[ApiName, ...] | list[ApiName] | None
"""One API, several, or None for all."""

#: The maximum of the field, an INT32.
THROTTLE_MS_MAX: Final = 2**31 - 1
# The APIs that a group coordinator handles.
_GROUP_APIS: Final = (
    "OffsetCommit",
    "OffsetFetch",
    "JoinGroup",
    "Heartbeat",
    "LeaveGroup",
    "SyncGroup",
    "DescribeGroups",
    "DeleteGroups",
    "OffsetDelete",
    "TxnOffsetCommit",
)
# The APIs that a transaction coordinator handles for one transactional id.
_TRANSACTION_APIS: Final = (
    "InitProducerId",
    "AddPartitionsToTxn",
    "AddOffsetsToTxn",
    "EndTxn",
    "DescribeTransactions",
)
# Part of the authentication, which happens before requests.
_BEFORE_REQUESTS: Final = {api_keys.SASL_HANDSHAKE, api_keys.SASL_AUTHENTICATE}


class FaultOptions(TypedDict, total=False):
    """Arguments common to all faults: which requests they affect, and when.

    An unknown argument, or one of the wrong type, raises TypeError; a number out of range raises
    ValueError.

    Attributes:
        topic: only requests about this topic. An error is reported for this topic only; the rest
            of the request is handled.
        partition: only requests about this partition of the topic.
        group: only requests about this consumer group.
        transactional_id: only requests about this transactional id.
        client_id: only requests from clients with this id.
        connection: only requests on the connection with this id.
        node: only requests to the broker with this ``node.id``.
        when: only requests for which this function returns true; called in the broker's thread.
        times: how many requests to apply the fault to, 1 by default; None for all requests until
            the fault is removed.
        skip: how many matching requests to let through first.
        delay: how long to delay each request before applying the fault, in seconds; other
            connections are not delayed.
    """

    topic: str
    partition: int
    group: str
    transactional_id: str
    client_id: str
    connection: str
    node: int
    when: Callable[[SeenRequest], bool]
    times: int | None
    skip: int
    delay: float


class Faults:
    """Injects faults into the brokers of a test.

    Args:
        interception: applies the faults to requests.
        in_loop: runs a function in the brokers' loop.
        is_inside: whether this object, but not its faults, is used only in the brokers' loop.
    """

    def __init__(
        self, interception: Interception, in_loop: InLoop, *, is_inside: bool = False
    ) -> None:
        self._internals = interception.internals
        self._seen = interception.seen
        self._clients = interception.clients
        self._rules = interception.faults
        self._add_rule = interception.add
        self._in_loop = call_directly if is_inside else in_loop
        self._in_loop_of_faults = in_loop

    # Faults of requests.

    def fail(
        self,
        apis: Apis,
        error: ErrorName,
        *,
        message: str | None = None,
        executed: bool = False,
        **options: Unpack[FaultOptions],
    ) -> Fault:
        """Respond with an error, set in every field in which the API reports errors.

        Args:
            apis: one API or several, by name or number; None for all.
            error: Kafka's name or code for the error.
            message: the error message, if the API has a field for it.
            executed: whether to handle the request first, as if only the response had failed.
            options: see :class:`FaultOptions`.

        Raises:
            ValueError: the API or error is unknown, the broker does not support the API, or the API
                reports no errors.
        """
        return self._add(apis, Fail(error_code(error), message, executed), options)

    def respond(self, apis: Apis, body: Body, **options: Unpack[FaultOptions]) -> Fault:
        """Respond with ``body``, without handling the request.

        Args:
            apis: see :meth:`fail`.
            body: a response of :mod:`trionet.protocol.messages`; or bytes, which follow the
                response header; or a function that creates either from the request.
            options: see :class:`FaultOptions`.

        Raises:
            TypeError: the body is neither a response, bytes nor a function.
            ValueError: the API is unknown, the broker does not support it, or the body is a
                response of another API.
        """
        keys = api_keys_of(apis)
        if not callable(body):
            check_body(body, keys)
        return self._add(apis, Respond(body), options)

    def answer(self, apis: Apis, body: Body, **options: Unpack[FaultOptions]) -> Fault:
        """Deprecated alias of :meth:`respond`."""
        return self.respond(apis, body, **options)

    def delay(self, apis: Apis, seconds: float, **options: Unpack[FaultOptions]) -> Fault:
        """Handle the request after a delay; other connections are not delayed.

        Args:
            apis: see :meth:`fail`.
            seconds: the delay, in seconds on the clock of the broker's loop.
            options: see :class:`FaultOptions`.

        Raises:
            ValueError: the API is unknown, or the broker does not support it.
        """
        return self._add(apis, Continue(), {**options, "delay": seconds})

    def hold(self, apis: Apis = None, **options: Unpack[FaultOptions]) -> Fault:
        """Hold the request, and handle it when the fault is removed.

        Args:
            apis: see :meth:`fail`.
            options: see :class:`FaultOptions`.

        Raises:
            ValueError: the API is unknown, or the broker does not support it.
        """
        return self._add(apis, Continue(), {**options, "delay": FOREVER})

    def swallow(
        self, apis: Apis = None, *, executed: bool = False, **options: Unpack[FaultOptions]
    ) -> Fault:
        """Never respond, and stop reading from the connection, like a hung broker.

        Args:
            apis: see :meth:`fail`.
            executed: whether to handle the request nevertheless.
            options: see :class:`FaultOptions`.

        Raises:
            ValueError: the API is unknown, or the broker does not support it.
        """
        return self._add(apis, Swallow(executed), options)

    def close(
        self,
        apis: Apis = None,
        *,
        executed: bool = False,
        reset: bool = False,
        **options: Unpack[FaultOptions],
    ) -> Fault:
        """Close the connection instead of responding.

        Args:
            apis: see :meth:`fail`.
            executed: whether to handle the request first.
            reset: whether to close with a reset (RST) instead of an orderly close (FIN).
            options: see :class:`FaultOptions`.

        Raises:
            ValueError: the API is unknown, or the broker does not support it.
        """
        return self._add(apis, Close(executed, reset), options)

    def cut(self, apis: Apis = None, *, at: float = 0.5, **options: Unpack[FaultOptions]) -> Fault:
        """Handle the request, but close the connection partway through the response.

        Args:
            apis: see :meth:`fail`.
            at: how much of the response's frame to send: a number of bytes or, as a float, a
                fraction of the frame. At least one byte is sent; 1.0 sends the whole response.
            options: see :class:`FaultOptions`.

        Raises:
            ValueError: the API is unknown or unsupported, or ``at`` is negative or a fraction
                above 1.
        """
        if isinstance(at, bool) or at < 0 or (not isinstance(at, int) and at > 1):
            raise ValueError(
                f"invalid at={at!r}; expected a number of bytes, or a fraction from 0.0 to 1.0"
            )
        return self._add(apis, Cut(at), options)

    def corrupt(self, apis: Apis = None, **options: Unpack[FaultOptions]) -> Fault:
        """Flip a bit of the records in transit, as faulty memory or a faulty cable would.

        The bit is in each partition's first batch, in the part that the checksum covers. The broker
        rejects the records of a Produce request with CORRUPT_MESSAGE; a consumer receives the
        corrupt records of a Fetch response.

        Args:
            apis: Produce, Fetch, or None for both.
            options: see :class:`FaultOptions`.

        Raises:
            ValueError: an API is unknown or carries no records.
        """
        return self._add(apis or ("Produce", "Fetch"), Corrupt(), options)

    def throttle(
        self, apis: Apis, throttle_ms: int, *, mute: bool = False, **options: Unpack[FaultOptions]
    ) -> Fault:
        """Respond as if the client exceeded a quota and had to wait (``throttle_time_ms``).

        In older versions of some APIs, responses lack this field, so clients do not see it.

        Args:
            apis: see :meth:`fail`.
            throttle_ms: the reported throttle time.
            mute: whether to mute the connection for that time, as Kafka does (KIP-219).
            options: see :class:`FaultOptions`.

        Raises:
            ValueError: the API is unknown or unsupported, its responses have no throttle time, or
                ``throttle_ms`` is out of range.
        """
        if not 0 <= throttle_ms <= THROTTLE_MS_MAX:
            raise ValueError(
                f"invalid throttle_ms={throttle_ms}; it must be 0 to {THROTTLE_MS_MAX}"
            )
        for key in api_keys_of(apis):
            if "throttle_time_ms" not in response_class(key).__slots__:
                raise ValueError(f"responses of {api_keys.name_of(key)} have no throttle_time_ms")
        return self._add(apis, Throttle(throttle_ms, mute), options)

    # Faults of brokers.

    def bounce_coordinator(
        self,
        group: str | None = None,
        *,
        transactional_id: str | None = None,
        error: ErrorName = "NOT_COORDINATOR",
        seconds: float | None = None,
    ) -> Fault:
        """Make a group coordinator or transaction coordinator unavailable, as if it had moved.

        Requests to the coordinator fail with ``error``, including group requests already pending.

        Args:
            group: the group whose coordinator is unavailable; None for all groups.
            transactional_id: the transactional id whose coordinator is unavailable, instead of
                those of groups. The offsets of transactions go to the coordinators of groups.
            error: the error; ``COORDINATOR_LOAD_IN_PROGRESS`` simulates a coordinator that is
                starting up.
            seconds: how long the fault lasts, in seconds; None for until it is removed.

        Raises:
            ValueError: the error is unknown, or both a group and a transactional id are given.
        """
        if group is not None and transactional_id is not None:
            raise ValueError("group and transactional_id have different coordinators; give one")
        apis = _GROUP_APIS if transactional_id is None else _TRANSACTION_APIS
        which = Which(
            api_keys=api_keys_of(list(apis)), group=group, transactional_id=transactional_id
        )
        code = error_code(error)

        def bounce() -> Fault:
            until = FOREVER if seconds is None else trio.current_time() + seconds
            fault = self._fault(which, Fail(code, None, False), times=None, until=until)
            for groups in self._internals.coordinators() if transactional_id is None else ():
                for id in list(groups.groups):
                    if group in (None, id):
                        groups.fail_waiting(id, code)
            return fault

        return self._in_loop(bounce)

    def hold_markers(self, transactional_id: str | None = None) -> Fault:
        """Hold the markers of transactions that end, until the fault is removed.

        The decision is stored and the client gets its response, but the transaction stays in the
        state ``PrepareCommit`` or ``PrepareAbort``: its records are not committed or aborted yet,
        and requests for its next transaction fail with CONCURRENT_TRANSACTIONS. Its offsets are
        committed with the decision. The fault hits the EndTxn requests.

        Args:
            transactional_id: only transactions of this transactional id; None for all.
        """
        which = Which(api_keys=api_keys_of("EndTxn"), transactional_id=transactional_id)
        coordinator = self._internals.cluster.transactions

        def hold() -> Fault:
            coordinator.held.append(transactional_id)
            return self._fault(
                which,
                HoldMarkers(),
                times=None,
                on_remove=lambda: coordinator.release(transactional_id),
            )

        return self._in_loop(hold)

    def fill_disk(self, topic: str | None = None, *, node: int | None = None) -> Fault:
        """Simulate a full disk: Produce fails with KAFKA_STORAGE_ERROR until the fault is removed.

        Everything else is still stored: group offsets, topics, and records appended by the test.

        Args:
            topic: only Produce requests to this topic.
            node: only the broker with this ``node.id``.
        """
        code = error_code("KAFKA_STORAGE_ERROR")
        which = Which(api_keys=api_keys_of("Produce"), topic=topic, node=node)
        text = "No space left on device"
        return self._in_loop(lambda: self._fault(which, Fail(code, text, False), times=None))

    def stop_reading(
        self,
        *,
        connection: str | None = None,
        client_id: str | None = None,
        node: int | None = None,
    ) -> Fault:
        """Stop reading requests until the fault is removed; pending responses are still sent.

        If only some connections are selected, a connection that already has a request in progress
        still reads its next request, which is then held.

        Args:
            connection: only the connection with this id.
            client_id: only connections from clients with this id.
            node: only the broker with this ``node.id``.
        """
        which = Which(connection=connection, client_id=client_id, node=node)

        def stop() -> Fault:
            read_again = self._stop_reading(which)
            return self._fault(which, Continue(), times=None, delay=FOREVER, on_remove=read_again)

        return self._in_loop(stop)

    def reset_connections(
        self,
        *,
        connection: str | None = None,
        client_id: str | None = None,
        node: int | None = None,
    ) -> int:
        """Close connections with a reset (RST).

        Args:
            connection: only the connection with this id.
            client_id: only connections from clients with this id.
            node: only the broker with this ``node.id``.

        Returns:
            The number of connections closed.
        """
        which = Which(connection=connection, client_id=client_id, node=node)

        def reset() -> int:
            count = 0
            for processor, channel in self._channels(which):
                close_with_reset(channel)
                processor.selector.disconnect(channel, CloseReason.CLOSE_RESPONSE, "fault: reset")
                processor.selector.wakeup()
                count += 1
            return count

        return self._in_loop(reset)

    def clear(self) -> None:
        """Remove all faults, and raise an error that has not been raised yet.

        After the broker has stopped, only the error is raised.

        Raises:
            Exception: an error raised by a function of the test; see :attr:`Fault.error`.
        """

        def clear() -> None:
            for rule in list(self._rules):
                rule.fault.remove_now()

        with suppress(trio.RunFinishedError):
            self._in_loop(clear)
        self.raise_errors()

    @contextmanager
    def block(self) -> Iterator[None]:
        """At the end of the block, remove the faults that were added in it.

        Raises:
            Exception: see :meth:`clear`.
        """
        before = set(self._rules)

        def remove() -> None:
            for rule in set(self._rules) - before:
                rule.fault.remove_now()

        try:
            yield
        except BaseException as error:  # boundary: raised again, with a note on a fault's error
            self.explain(error)
            raise
        finally:
            with suppress(trio.RunFinishedError):
                self._in_loop(remove)
        self.raise_errors()

    def raise_errors(self) -> None:
        """Raise the first unreported error of the test's functions (:attr:`Fault.error`)."""
        for rule in self._rules:
            rule.fault.raise_error()

    def explain(self, error: BaseException) -> None:
        """Annotate a test's error with the earlier errors of the test's functions."""
        for rule in self._rules:
            rule.fault.explain(error)

    @property
    def active(self) -> list[Fault]:
        """The faults that are still in effect."""
        return [rule.fault for rule in self._rules if not rule.fault.is_over]

    # Adding faults.

    def _add(self, apis: Apis, action: Action, options: FaultOptions) -> Fault:
        keys = api_keys_of(apis)
        self._check(keys, action)
        when = options.get("when")
        if when is not None and not callable(when):
            raise TypeError(f"invalid when={when!r}; expected a function of a SeenRequest")
        unknown = options.keys() - FaultOptions.__annotations__.keys()
        if unknown:
            raise TypeError(
                f"unknown fault arguments: {', '.join(sorted(unknown))};"
                f" allowed: {', '.join(FaultOptions.__annotations__)}"
            )
        arguments: dict[str, Any] = dict(options)
        timing = {
            name: arguments.pop(name) for name in ("times", "skip", "delay") if name in arguments
        }
        which = Which(api_keys=keys, **arguments)
        return self._in_loop(lambda: self._fault(which, action, **timing))

    def _check(self, keys: frozenset[int], action: Action) -> None:
        served = {
            each.api_key for node in self._internals.nodes for each in node.apis.advertised.ranges
        }
        for key in keys:
            name = api_keys.name_of(key)
            if key in _BEFORE_REQUESTS:
                raise ValueError(f"{name} is part of authentication, to which faults do not apply")
            if key not in served:
                raise ValueError(
                    f"{name} is not supported by this broker, so no fault can match it"
                )
            if isinstance(action, Fail) and not any(error_fields(response_class(key))):
                raise ValueError(f"responses of {name} carry no error; use respond() instead")
            if isinstance(action, Corrupt) and key not in RECORD_APIS:
                raise ValueError(f"{name} carries no records; allowed: Produce, Fetch")

    def _fault(
        self,
        which: Which,
        action: Action,
        *,
        times: int | None = 1,
        skip: int = 0,
        delay: float = 0.0,
        until: float = FOREVER,
        on_remove: Callable[[], None] | None = None,
    ) -> Fault:
        check_timing(times, skip, delay)
        fault = Fault(
            which,
            _described(action, delay),
            times,
            until,
            self._seen,
            self._internals,
            self._in_loop_of_faults,
            on_remove,
            trio.lowlevel.current_clock().current_time,
        )
        self._add_rule(FaultRule(fault, action, skip, delay))
        return fault

    def _stop_reading(self, which: Which) -> Callable[[], None]:
        """Stop reading, and return a function that resumes reading."""
        selectors: list[Selector] = []
        muted: list[tuple[Processor, Channel]] = []
        if which.connection is None and which.client_id is None:
            for node in self._internals.nodes:
                if which.node in (None, node.id):
                    selectors += [each.selector for each in node.processors]
        else:
            muted = [
                (processor, channel)
                for processor, channel in self._channels(which)
                if channel.attachment.request is None  # otherwise its next request is held
            ]
        for selector in selectors:
            selector.pause_reading()
        for processor, channel in muted:
            processor.selector.mute(channel)

        def read_again() -> None:
            for selector in selectors:
                selector.resume_reading()
                selector.wakeup()
            for processor, channel in muted:
                processor.selector.unmute(channel)
                processor.selector.wakeup()

        return read_again

    def _channels(self, which: Which) -> list[tuple[Processor, Channel]]:
        """Return the matching open connections, each with its processor."""
        return [
            (processor, channel)
            for node in self._internals.nodes
            if which.node in (None, node.id)
            for processor, channel in node.channels()
            if which.connection in (None, channel.id)
            and which.client_id in (None, self._clients.get(channel.id))
        ]


def _described(action: Action, delay: float) -> str:
    """Describe what is done to requests, in words."""
    if not delay:
        return str(action)
    held = "hold" if delay == FOREVER else f"delay for {delay:g} s"
    return held if type(action) is Continue else f"{held}, then {action}"
