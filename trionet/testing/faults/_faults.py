"""Faults on demand: what a broker does wrong, with which requests, and how often.

The words are the same in a synchronous program and in a trio program: none of them waits. Each
gives a :class:`Fault`, which tells what it has met. A request meets the first fault, in the order
in which they were told, that is for it and not over; so two of them are a sequence. One that only
delays or holds it lets it go on to those that were told later.

Faults are for requests. What goes before them on a connection is none: TLS, SASL, and ApiVersions
before SASL.
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
from ..internals._broker_internals import InLoop
from ..requests._names import ApiName, ErrorName, error_code
from ..requests._seen_requests import SeenRequest, Which, api_keys_of
from ._fault import FOREVER, Fault, check_timing
from ._fault_actions import (
    RECORD_APIS,
    Action,
    Answer,
    Body,
    Close,
    Corrupt,
    Cut,
    Fail,
    GoOn,
    Swallow,
    Throttle,
    check_body,
    close_with_reset,
)
from ._interception import Interception
from ._response_errors import response_class

Apis = ApiName | tuple[ApiName, ...] | list[ApiName] | None
"""The APIs whose requests are meant: one, several, or None for all."""

# What a coordinator of groups answers.
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
)
# They are a part of the authentication, which no fault sees.
_BEFORE_REQUESTS: Final = {api_keys.SASL_HANDSHAKE, api_keys.SASL_AUTHENTICATE}


class Meets(TypedDict, total=False):
    """Which requests a fault meets, and when: what every fault can be told.

    Attributes:
        topic: only requests about this topic. An error is told of this topic alone, and the rest
            of the request is done.
        partition: only about this partition of it.
        group: only about this consumer group.
        client_id: only of the client that calls itself so.
        connection: only on the connection with this id.
        node: only to the broker with this ``node.id``.
        when: only those for which this is true; called in the broker's thread.
        times: how many, 1 by default; None for all until the fault is removed.
        skip: how many pass before.
        delay: seconds for which each is kept first; it holds up no other connection.
    """

    topic: str
    partition: int
    group: str
    client_id: str
    connection: str
    node: int
    when: Callable[[SeenRequest], bool]
    times: int | None
    skip: int
    delay: float


class Faults:
    """The faults of the brokers of a test.

    Args:
        interception: what does to requests what is told here.
        in_loop: runs what changes anything in the brokers' loop.
    """

    def __init__(self, interception: Interception, in_loop: InLoop) -> None:
        self._inside = interception.inside
        self._seen = interception.seen
        self._clients = interception.clients
        self._told = interception.faults
        self._in_loop = in_loop

    # What a fault does.

    def fail(
        self,
        apis: Apis,
        error: ErrorName,
        *,
        message: str | None = None,
        executed: bool = False,
        **meets: Unpack[Meets],
    ) -> Fault:
        """Answer with an error, wherever the API carries it: for each topic and partition.

        Args:
            apis: one API or several, by name or number; None for all.
            error: by Kafka's name or code.
            message: goes with the code where there is a place for it.
            executed: do what was asked for all the same, as when the answer is what went wrong.
            meets: see :class:`Meets`.

        Raises:
            ValueError: there is no such API or error, or it is none that this can be told of.
        """
        return self._add(apis, Fail(error_code(error), message, executed), meets)

    def answer(self, apis: Apis, body: Body, **meets: Unpack[Meets]) -> Fault:
        """Answer with ``body``, and do nothing of what was asked for.

        Args:
            apis: see :meth:`fail`.
            body: a response of :mod:`trionet.protocol.messages`; or bytes, which go behind the
                header of the answer as they are; or a function that makes either of the request.
            meets: see :class:`Meets`.
        """
        keys = api_keys_of(apis)
        if not callable(body):
            check_body(body, keys)
        return self._add(apis, Answer(body), meets)

    def delay(self, apis: Apis, seconds: float, **meets: Unpack[Meets]) -> Fault:
        """Do what was asked for after a while; other connections are served meanwhile."""
        return self._add(apis, GoOn(), {**meets, "delay": seconds})

    def hold(self, apis: Apis = None, **meets: Unpack[Meets]) -> Fault:
        """Do what was asked for when the fault is removed."""
        return self._add(apis, GoOn(), {**meets, "delay": FOREVER})

    def swallow(
        self, apis: Apis = None, *, executed: bool = False, **meets: Unpack[Meets]
    ) -> Fault:
        """Never answer, and read nothing more of that connection, as a broker that hangs.

        Args:
            apis: see :meth:`fail`.
            executed: do what was asked for.
            meets: see :class:`Meets`.
        """
        return self._add(apis, Swallow(executed), meets)

    def close(
        self,
        apis: Apis = None,
        *,
        executed: bool = False,
        reset: bool = False,
        **meets: Unpack[Meets],
    ) -> Fault:
        """Close the connection in place of an answer.

        Args:
            apis: see :meth:`fail`.
            executed: do what was asked for before.
            reset: by a reset (RST) and not in order (FIN).
            meets: see :class:`Meets`.
        """
        return self._add(apis, Close(executed, reset), meets)

    def cut(self, apis: Apis = None, *, at: float = 0.5, **meets: Unpack[Meets]) -> Fault:
        """Do what was asked for, and close the connection in the middle of the answer.

        Args:
            apis: see :meth:`fail`.
            at: how many bytes of the answer's frame leave, one at least; as a float below 1, which
                part of them. With as many as it has, the whole answer leaves.
            meets: see :class:`Meets`.
        """
        if at < 0 or (not isinstance(at, int) and at > 1):
            raise ValueError(f"at={at!r} is not allowed; allowed: bytes, or a part from 0.0 to 1.0")
        return self._add(apis, Cut(at), meets)

    def corrupt(self, apis: Apis = None, **meets: Unpack[Meets]) -> Fault:
        """Flip a bit of the records on their way, as bad memory or a bad cable does.

        Of each partition it is in the first batch, where the checksum covers it: the broker refuses
        the records of a Produce request with CORRUPT_MESSAGE by itself, and a consumer gets those
        of a Fetch response as they are.

        Args:
            apis: Produce, Fetch, or None for both.
            meets: see :class:`Meets`.

        Raises:
            ValueError: another API, which carries no records.
        """
        return self._add(apis or ("Produce", "Fetch"), Corrupt(), meets)

    def throttle(
        self, apis: Apis, throttle_ms: int, *, mute: bool = False, **meets: Unpack[Meets]
    ) -> Fault:
        """Answer that the client has exceeded a quota, and is to wait (``throttle_time_ms``).

        Old versions of some APIs have no such field, and their clients are told nothing.

        Args:
            apis: see :meth:`fail`.
            throttle_ms: what the client is told, in ms.
            mute: do not read the connection for as long, as Kafka does (KIP-219).
            meets: see :class:`Meets`.
        """
        if throttle_ms < 0:
            raise ValueError(f"throttle_ms={throttle_ms} is not allowed; allowed: 0 or more")
        for key in api_keys_of(apis):
            if "throttle_time_ms" not in response_class(key).__slots__:
                raise ValueError(f"answers of {api_keys.name_of(key)} have no throttle_time_ms")
        return self._add(apis, Throttle(throttle_ms, mute), meets)

    # What happens to brokers.

    def bounce_coordinator(
        self,
        group: str | None = None,
        *,
        error: ErrorName = "NOT_COORDINATOR",
        seconds: float | None = None,
    ) -> Fault:
        """Have the coordinator of groups move away and come back.

        Everything that is asked of it is answered with ``error``, also what waits there now.

        Args:
            group: only this one; None for all.
            error: ``COORDINATOR_LOAD_IN_PROGRESS`` if it is to look like one that just starts.
            seconds: for how long; None until the fault is removed.
        """
        which = Which(api_keys=api_keys_of(_GROUP_APIS), group=group)
        code = error_code(error)

        def bounce() -> Fault:
            until = FOREVER if seconds is None else trio.current_time() + seconds
            fault = self._fault(which, Fail(code, None, False), times=None, until=until)
            for groups in self._inside.coordinators():
                for id in list(groups.groups):
                    if group in (None, id):
                        groups.turn_away(id, code)
            return fault

        return self._in_loop(bounce)

    def fill_disk(self, topic: str | None = None, *, node: int | None = None) -> Fault:
        """Have no room for records: Produce gets KAFKA_STORAGE_ERROR until the fault is removed.

        What else is stored still is: offsets of groups, topics, and what the test puts there.

        Args:
            topic: only for this one.
            node: only on the broker with this ``node.id``.
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
        """Read nothing, until the fault is removed; answers that are owed still leave.

        Of a connection whose request is being served, one more is read, and kept.

        Args:
            connection: only this one.
            client_id: only the connections of this client.
            node: only on the broker with this ``node.id``.
        """
        which = Which(connection=connection, client_id=client_id, node=node)

        def stop() -> Fault:
            read_again = self._stop_reading(which)
            return self._fault(which, GoOn(), times=None, delay=FOREVER, on_remove=read_again)

        return self._in_loop(stop)

    def reset_connections(
        self,
        *,
        connection: str | None = None,
        client_id: str | None = None,
        node: int | None = None,
    ) -> int:
        """Close connections by a reset (RST).

        Args:
            connection: only this one.
            client_id: only those of this client.
            node: only on the broker with this ``node.id``.

        Returns:
            How many there were.
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
        """Remove every fault; nothing is left to do when the broker has ended.

        Raises:
            Exception: what a function of the test raised; see :attr:`Fault.error`.
        """

        def clear() -> None:
            for fault in list(self._told):
                fault.remove_now()

        with suppress(trio.RunFinishedError):
            self._in_loop(clear)
        self.raise_errors()

    @contextmanager
    def block(self) -> Iterator[None]:
        """Remove at the end of the block what was told in it.

        Raises:
            Exception: as :meth:`clear`.
        """
        before = set(self._told)

        def remove() -> None:
            for fault in set(self._told) - before:
                fault.remove_now()

        try:
            yield
        except BaseException as error:  # boundary: it goes on; told is what may have led to it
            self.explain(error)
            raise
        finally:
            with suppress(trio.RunFinishedError):
                self._in_loop(remove)
        self.raise_errors()

    def raise_errors(self) -> None:
        """Raise what a function of the test raised, if it was not yet; see :attr:`Fault.error`."""
        for fault in self._told:
            fault.raise_error()

    def explain(self, error: BaseException) -> None:
        """Note on an error of the test what its functions raised before."""
        for fault in self._told:
            fault.explain(error)

    @property
    def active(self) -> list[Fault]:
        """The faults that are not over."""
        return [fault for fault in self._told if not fault.is_over]

    # How they come to be.

    def _add(self, apis: Apis, action: Action, meets: Meets) -> Fault:
        keys = api_keys_of(apis)
        self._check(keys, action)
        when = meets.get("when")
        if when is not None and not callable(when):
            raise TypeError(f"when={when!r} is not allowed; allowed: a function of a SeenRequest")
        unknown = meets.keys() - Meets.__annotations__.keys()
        if unknown:
            raise TypeError(
                f"{', '.join(sorted(unknown))}: no argument of a fault;"
                f" allowed: {', '.join(Meets.__annotations__)}"
            )
        given: dict[str, Any] = dict(meets)
        timing = {name: given.pop(name) for name in ("times", "skip", "delay") if name in given}
        which = Which(api_keys=keys, **given)
        return self._in_loop(lambda: self._fault(which, action, **timing))

    def _check(self, keys: frozenset[int], action: Action) -> None:
        served = {
            each.api_key for node in self._inside.nodes for each in node.apis.advertised.ranges
        }
        for key in keys:
            name = api_keys.name_of(key)
            if key in _BEFORE_REQUESTS:
                raise ValueError(f"{name} is a part of the authentication, which no fault meets")
            if key not in served:
                raise ValueError(f"{name} is not served by this broker, so no fault can meet it")
            if isinstance(action, Fail) and not any(error_fields(response_class(key))):
                raise ValueError(f"answers of {name} carry no error; answer() gives other ones")
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
            action,
            times=times,
            skip=skip,
            delay=delay,
            until=until,
            seen=self._seen,
            inside=self._inside,
            in_loop=self._in_loop,
            on_remove=on_remove,
            now=trio.lowlevel.current_clock().current_time,
        )
        self._told[:] = [*(each for each in self._told if not each.is_done), fault]
        return fault

    def _stop_reading(self, which: Which) -> Callable[[], None]:
        """Stop now; the function returned goes on."""
        selectors: list[Selector] = []
        muted: list[tuple[Processor, Channel]] = []
        if which.connection is None and which.client_id is None:
            for node in self._inside.nodes:
                if which.node in (None, node.id):
                    selectors += [each.selector for each in node.processors]
        else:
            muted = [
                (processor, channel)
                for processor, channel in self._channels(which)
                if channel.attachment.request is None  # of another one the next request is kept
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
        """The open connections that are meant."""
        return [
            (processor, channel)
            for node in self._inside.nodes
            if which.node in (None, node.id)
            for processor, channel in node.channels()
            if which.connection in (None, channel.id)
            and which.client_id in (None, self._clients.get(channel.id))
        ]
