"""The requests that a broker received, and the faults that were applied to them.

The public classes refer to each other (:attr:`SeenRequest.fault`, :attr:`Fault.requests`), so they
share a module. The actions of faults are in :mod:`trionet.testing.faults`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from typing import Final, Self

import attrs
import trio

from .._util._text import printable
from ..broker.api._call import Call
from ..client._argument_checks import integer
from ..protocol._wire import Message
from ._internals import BrokerInternals, InLoop, NodeInternals
from ._names import (
    KEYS,
    ApiName,
    api_key,
    groups_in,
    is_about_all,
    topic_partitions,
    transactional_ids_in,
)

# pytest leaves the frames of this module out of its reports.
__tracebackhide__ = True

# How many requests are kept, and their total size; the oldest are dropped first.
REQUESTS_KEPT_MAX: Final = 10_000
REQUEST_BYTES_KEPT_MAX: Final = 64 * 1024 * 1024


@attrs.define(kw_only=True, eq=False)
class SeenRequest:
    """A request that a broker received.

    Attributes:
        node: the ``node.id`` of the broker.
        api: Kafka's name for the API.
        version: the API version of the request.
        client_id: the client id; None for null.
        connection: the id of the connection.
        message: the decoded request.
        time_ms: the time at which the request was received, in ms since the epoch.
        topics: the topics and partitions of the request; the partition is None if the request
            names only the topic.
        groups: the consumer groups of the request.
        transactional_ids: the transactional ids of the request.
        errors: Kafka's names for the errors in the response; None while there is no response.
        faults: the faults that were applied to the request; all but the last are delays.
        is_about_all_topics: whether the request is about all topics without naming them, as a
            Metadata request may be.
    """

    node: int
    api: str
    version: int
    client_id: str | None
    connection: str
    message: Message
    time_ms: int
    topics: tuple[tuple[str, int | None], ...] = ()
    groups: tuple[str, ...] = ()
    transactional_ids: tuple[str, ...] = ()
    errors: tuple[str, ...] | None = None
    faults: tuple[Fault, ...] = ()
    is_about_all_topics: bool = False

    @property
    def fault(self) -> Fault | None:
        """The last fault that was applied to the request; None if there was none."""
        return self.faults[-1] if self.faults else None

    @property
    def api_key(self) -> int:
        """The API key."""
        return KEYS[self.api]

    def as_line(self) -> str:
        """Format the request and its outcome as one line."""
        at = datetime.fromtimestamp(self.time_ms / 1000, UTC).astimezone()
        about = [topic if part is None else f"{topic}-{part}" for topic, part in self.topics]
        about += [f"group {group}" for group in self.groups]
        about += [f"transactional id {id}" for id in self.transactional_ids]
        what = ", ".join(about)
        errors = ("no response",) if self.errors is None else dict.fromkeys(self.errors)
        end = ", ".join(errors) or "ok"
        fault = "".join(f"; fault: {each}" for each in self.faults)
        # Clients choose names, so terminal escapes in them are escaped.
        return printable(
            f"{at:%H:%M:%S}.{self.time_ms % 1000:03d} {self.api} v{self.version} {what or '-'}"
            f" from {self.client_id} on {self.connection}: {end}{fault}"
        )


def seen(node: NodeInternals, message: Message, call: Call) -> SeenRequest:
    """Return the :class:`SeenRequest` for a call."""
    about = list(topic_partitions(message, node.topic_name))
    if call.codec.name == "Fetch":
        about += _session_partitions(node, message)
    return SeenRequest(
        node=node.id,
        api=call.codec.name,
        version=call.version,
        client_id=call.client_id,
        connection=call.request.connection_id,
        message=message,
        time_ms=node.state.now_ms(),
        topics=tuple(dict.fromkeys(about)),
        groups=tuple(groups_in(message)),
        transactional_ids=tuple(transactional_ids_in(message)),
        is_about_all_topics=is_about_all(message, call.version),
    )


def _session_partitions(node: NodeInternals, message: Message) -> Iterator[tuple[str, int | None]]:
    """Yield the partitions of a fetch session, which an incremental fetch omits (KIP-227)."""
    session = node.state.fetch_sessions.get(message.session_id)  # type: ignore[attr-defined]
    for topic, partition in session.partitions if session is not None else ():
        name = topic if isinstance(topic, str) else node.topic_name(topic)
        if name is not None:
            yield name, partition


class SeenRequests:
    """The requests that the brokers of a test received, in order of arrival.

    Attributes:
        forgotten: the number of old requests dropped because of the limits.
        total: the number of requests received since the broker started.
        beginning: the value of ``total`` at the last :meth:`clear`.
    """

    def __init__(self) -> None:
        self._requests: deque[tuple[SeenRequest, int]] = deque()
        self._bytes = 0
        self.forgotten: int = 0
        self.total: int = 0
        self.beginning: int = 0

    def add(self, request: SeenRequest, size: int) -> None:
        """Add a request of ``size`` bytes."""
        self._requests.append((request, size))
        self._bytes += size
        self.total += 1
        while len(self._requests) > REQUESTS_KEPT_MAX or (
            self._bytes > REQUEST_BYTES_KEPT_MAX and len(self._requests) > 1
        ):
            self._bytes -= self._requests.popleft()[1]
            self.forgotten += 1

    def clear(self) -> None:
        """Drop all requests."""
        self.beginning = self.total
        self._requests.clear()
        self._bytes = 0

    def since(self, total: int) -> list[SeenRequest]:
        """Return the retained requests after the first ``total`` requests, oldest first."""
        count = min(self.total - total, len(self._requests))
        return [request for request, _ in islice(reversed(self._requests), count)][::-1]

    def __iter__(self) -> Iterator[SeenRequest]:
        # A copy in one step: the caller may be in another thread than the broker.
        return (request for request, _ in self._requests.copy())


@attrs.frozen(kw_only=True)
class Which:
    """A filter that selects the requests that satisfy all given conditions.

    Attributes:
        api_keys: the API keys; empty for any API.
        topic: the topic that the request must be about. As for the other conditions, None means
            any.
        partition: the partition of the topic.
        group: the consumer group that the request must be about.
        transactional_id: the transactional id that the request must be about.
        client_id: the client id of the request.
        connection: the id of the connection.
        node: the ``node.id`` of the broker.
        when: a function that returns whether the request matches.
    """

    api_keys: frozenset[int] = frozenset()
    topic: str | None = None
    partition: int | None = None
    group: str | None = None
    transactional_id: str | None = None
    client_id: str | None = None
    connection: str | None = None
    node: int | None = None
    when: Callable[[SeenRequest], bool] | None = None

    def __attrs_post_init__(self) -> None:
        for name, number in (("partition", self.partition), ("node", self.node)):
            if number is not None:
                integer(name, number)
        if self.partition is not None and self.topic is None:
            raise ValueError(f"partition={self.partition} requires a topic")

    def matches(self, request: SeenRequest) -> bool:
        """Return whether a request satisfies all conditions."""
        return (
            (not self.api_keys or request.api_key in self.api_keys)
            and self.client_id in (None, request.client_id)
            and self.connection in (None, request.connection)
            and self.node in (None, request.node)
            and (self.group is None or self.group in request.groups)
            and (
                self.transactional_id is None or self.transactional_id in request.transactional_ids
            )
            and (
                self.topic is None
                or request.is_about_all_topics
                or any(self.hits(*each) for each in request.topics)
            )
            and (self.when is None or self.when(request))
        )

    def hits(self, topic: str, partition: int | None) -> bool:
        """Return whether a topic, or one of its partitions, satisfies the conditions."""
        return self.topic in (None, topic) and (
            self.partition is None or partition is None or self.partition == partition
        )

    def __str__(self) -> str:
        names = {key: name for name, key in KEYS.items()}
        apis = ", ".join(sorted(names[key] for key in self.api_keys)) or "any request"
        conditions = [
            f"{name} {value}"
            for name, value in attrs.asdict(self, recurse=False).items()
            if name != "api_keys" and value is not None
        ]
        return ", ".join([apis, *conditions])


@attrs.define(eq=False, repr=False)
class Fault:
    """A fault added by :class:`~trionet.testing.Faults`.

    A fault can be used from any thread, and as a context manager that removes the fault on exit.

    Attributes:
        which: selects the requests that the fault matches.
        hits: the number of requests to which the fault was applied.
        error: the error raised by a function of the test: ``when``, or a function that creates a
            response. The request is then handled normally, and the fault ends. The error is raised
            again when the fault is removed, or at the latest when the broker stops.
    """

    which: Which
    _action: str
    _times: int | None
    _until: float
    _seen: SeenRequests
    _internals: BrokerInternals
    _in_loop: InLoop
    _on_remove: Callable[[], None] | None
    _now: Callable[[], float]
    hits: int = 0
    error: Exception | None = None
    is_removed: bool = False
    _is_reported: bool = False

    @property
    def action(self) -> str:
        """What is done to the requests, in words."""
        return self._action

    @property
    def times(self) -> int | None:
        """The number of requests to apply the fault to; None for all until it is removed."""
        return self._times

    @property
    def is_over(self) -> bool:
        """Whether the fault has been removed, has failed, expired or been used up."""
        return (
            self.is_removed
            or self.error is not None
            or (self._times is not None and self.hits >= self._times)
            or self._until <= self._now()
        )

    @property
    def is_done(self) -> bool:
        """Whether the fault is over and its error, if any, has been reported."""
        return self.is_over and (self.error is None or self._is_reported)

    @property
    def requests(self) -> list[SeenRequest]:
        """The retained requests to which the fault was applied."""
        return [request for request in self._seen if self in request.faults]

    def remove(self) -> None:
        """Remove the fault, and proceed with the requests that it is holding or delaying.

        After the broker has stopped, only the error is raised.

        Raises:
            Exception: :attr:`error`, unless it has already been raised or reported.
        """
        with suppress(trio.RunFinishedError):
            self._in_loop(self.remove_now)
        self.raise_error()

    def raise_error(self) -> None:
        """Raise :attr:`error`, unless it is None or has already been reported."""
        if self.error is not None and not self._is_reported:
            self._is_reported = True
            raise self.error

    def explain(self, error: BaseException) -> None:
        """Add a note about :attr:`error` to an error raised later in the test."""
        if self.error is not None and not self._is_reported:
            self._is_reported = True
            error.add_note(f"The fault {self} failed earlier: {self.error!r}")

    def remove_now(self) -> None:
        """Remove the fault; for callers in the broker's loop."""
        if not self.is_removed and self._on_remove is not None:
            self._on_remove()
        self.is_removed = True
        self._internals.cluster.purgatory.complete_all(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, *_: object) -> None:
        if error is not None:
            self.explain(error)
        self.remove()

    def __str__(self) -> str:
        return f"{self.which}: {self._action}"

    def __repr__(self) -> str:
        times = "" if self._times is None else f" of {self._times}"
        return f"<Fault {self}; {self.hits}{times} hits>"


def api_keys_of(apis: ApiName | tuple[ApiName, ...] | list[ApiName] | None) -> frozenset[int]:
    """Return the keys of one or several APIs; an empty set for None.

    Raises:
        ValueError: an API is unknown.
    """
    if apis is None:
        return frozenset()
    several = apis if isinstance(apis, (tuple, list)) else (apis,)
    return frozenset(api_key(each) for each in several)
