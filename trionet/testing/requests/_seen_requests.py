"""The requests that a broker received, for assertions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Final

import attrs

from ..._util._printable import printable
from ...broker.api._call import Call
from ...protocol._wire import Message
from ..internals._broker_internals import NodeInternals
from ._names import KEYS, ApiName, api_key
from ._topic_items import groups_in, is_about_all, topic_partitions

if TYPE_CHECKING:
    from ..faults._fault import Fault

# How many requests are kept, and their total size; the oldest are dropped first.
REQUESTS_KEPT_MAX: Final = 10_000
REQUEST_BYTES_KEPT_MAX: Final = 64 * 1024 * 1024


@attrs.define(kw_only=True, eq=False)
class SeenRequest:
    """A request that a broker received.

    Attributes:
        node: the ``node.id`` of the broker.
        api: Kafka's name of the API.
        version: of the API.
        client_id: None for null.
        connection: the id of the connection.
        message: the decoded request.
        time_ms: when it was received, in ms since the epoch.
        topics: the topics and partitions it is about; the partition is None where it names none.
        groups: the consumer groups it is about.
        errors: the errors in its response, by Kafka's names; None while it has no response.
        faults: the faults that were applied to it; all but the last are delays.
        is_about_all_topics: whether it names no topics and means all, as a Metadata may.
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
    errors: tuple[str, ...] | None = None
    faults: tuple[Fault, ...] = ()
    is_about_all_topics: bool = False

    @property
    def fault(self) -> Fault | None:
        """The last fault that was applied to it; None if there was none."""
        return self.faults[-1] if self.faults else None

    @property
    def api_key(self) -> int:
        """Kafka's number of the API."""
        return KEYS[self.api]

    def as_line(self) -> str:
        """The request and its outcome in one line."""
        at = datetime.fromtimestamp(self.time_ms / 1000, UTC).astimezone()
        about = [topic if part is None else f"{topic}-{part}" for topic, part in self.topics]
        what = ", ".join([*about, *(f"group {group}" for group in self.groups)])
        errors = ("no response",) if self.errors is None else dict.fromkeys(self.errors)
        end = ", ".join(errors) or "ok"
        fault = "".join(f"; fault: {each}" for each in self.faults)
        # Clients choose names, so terminal escapes in them are escaped.
        return printable(
            f"{at:%H:%M:%S}.{self.time_ms % 1000:03d} {self.api} v{self.version} {what or '-'}"
            f" from {self.client_id} on {self.connection}: {end}{fault}"
        )


def seen(node: NodeInternals, message: Message, call: Call) -> SeenRequest:
    """Convert a call."""
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
        is_about_all_topics=is_about_all(message, call.version),
    )


def _session_partitions(node: NodeInternals, message: Message) -> Iterator[tuple[str, int | None]]:
    """The partitions that an incremental fetch is about without naming them (KIP-227)."""
    session = node.state.fetch_sessions.get(message.session_id)  # type: ignore[attr-defined]
    for topic, partition in session.partitions if session is not None else ():
        name = topic if isinstance(topic, str) else node.topic_name(topic)
        if name is not None:
            yield name, partition


class SeenRequests:
    """The requests that the brokers of a test received, in the order of their arrival.

    Attributes:
        forgotten: how many older ones were dropped because there were too many.
        total: how many were received since the broker started.
        beginning: the value of ``total`` at the last :meth:`clear`.
    """

    def __init__(self) -> None:
        self._requests: deque[tuple[SeenRequest, int]] = deque()
        self._bytes = 0
        self.forgotten = 0
        self.total = 0
        self.beginning = 0

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
        """The requests after the first ``total`` ones, the oldest first."""
        count = min(self.total - total, len(self._requests))
        return [request for request, _ in islice(reversed(self._requests), count)][::-1]

    def __iter__(self) -> Iterator[SeenRequest]:
        # A copy in one step: the caller may be in another thread than the broker.
        return (request for request, _ in self._requests.copy())


@attrs.frozen(kw_only=True)
class Which:
    """Selects requests: those that satisfy all given conditions.

    Attributes:
        api_keys: of one of these APIs; empty for any.
        topic: about this topic.
        partition: about this partition of the topic.
        group: about this consumer group.
        client_id: from clients with this id.
        connection: on the connection with this id.
        node: to the broker with this ``node.id``.
        when: for which this returns true.
    """

    api_keys: frozenset[int] = frozenset()
    topic: str | None = None
    partition: int | None = None
    group: str | None = None
    client_id: str | None = None
    connection: str | None = None
    node: int | None = None
    when: Callable[[SeenRequest], bool] | None = None

    def __attrs_post_init__(self) -> None:
        if self.partition is not None and self.topic is None:
            raise ValueError(f"partition={self.partition} needs a topic")

    def matches(self, request: SeenRequest) -> bool:
        """Whether a request satisfies all conditions."""
        return (
            (not self.api_keys or request.api_key in self.api_keys)
            and self.client_id in (None, request.client_id)
            and self.connection in (None, request.connection)
            and self.node in (None, request.node)
            and (self.group is None or self.group in request.groups)
            and (
                self.topic is None
                or request.is_about_all_topics
                or any(self.hits(*each) for each in request.topics)
            )
            and (self.when is None or self.when(request))
        )

    def hits(self, topic: str, partition: int | None) -> bool:
        """Whether a topic, or a partition of it, satisfies the conditions."""
        return self.topic in (None, topic) and (
            self.partition is None or partition is None or self.partition == partition
        )

    def __str__(self) -> str:
        names = {key: name for name, key in KEYS.items()}
        apis = ", ".join(sorted(names[key] for key in self.api_keys)) or "any request"
        conditions = [
            f"{name} {value}"
            for name in ("topic", "partition", "group", "client_id", "connection", "node", "when")
            if (value := getattr(self, name)) is not None
        ]
        return ", ".join([apis, *conditions])


def api_keys_of(apis: ApiName | tuple[ApiName, ...] | list[ApiName] | None) -> frozenset[int]:
    """The keys of some APIs; none for None.

    Raises:
        ValueError: an API does not exist.
    """
    if apis is None:
        return frozenset()
    several = apis if isinstance(apis, (tuple, list)) else (apis,)
    return frozenset(api_key(each) for each in several)
