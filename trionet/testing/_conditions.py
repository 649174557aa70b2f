"""The conditions that tests wait for."""

from __future__ import annotations

from .._util._text import counted
from ..broker.log import Log
from ..client._argument_checks import integer
from ._internals import BrokerInternals
from ._names import group_state, transaction_state
from ._operations import Condition, GroupView, TransactionView, group_view, transaction_view
from ._records import Record, records_in
from ._seen_requests import SeenRequest, SeenRequests, Which, api_keys_of
from .faults._faults import Apis

# pytest leaves the frames of this module out of its reports.
__tracebackhide__ = True


def logs_of(inside: BrokerInternals, topic: str, partition: int | None) -> list[Log]:
    """Return the logs of a topic, or of one partition.

    Raises:
        LookupError: the topic or partition does not exist.
        TypeError: the partition is neither an int nor None.
    """
    if partition is not None:
        integer("partition", partition)
    state = inside.nodes[0].state
    known = state.topics.get(topic)
    if known is None:
        names = ", ".join(sorted(each.name for each in state.topics)) or "none"
        raise LookupError(f"topic {topic} does not exist; topics: {names}")
    if partition is not None and not 0 <= partition < known.partitions:
        there = counted(known.partitions, "partition")
        raise LookupError(f"partition {partition} does not exist; topic {topic} has {there}")
    indexes = range(known.partitions) if partition is None else [partition]
    logs = (state.get_log(topic, index) for index in indexes)
    return [log for log in logs if log is not None]


class Conditions:
    """Builds the conditions for the waits of :class:`~trionet.testing.BrokerControl`.

    Args:
        inside: the broker.
        seen: the requests that it has received.
    """

    def __init__(self, inside: BrokerInternals, seen: SeenRequests) -> None:
        self._internals = inside
        self._seen = seen

    def enough_records(
        self, topic: str, count: int, partition: int | None
    ) -> Condition[list[Record]]:
        if not isinstance(topic, str):
            raise TypeError(f"topic must be str, not {type(topic).__name__}: {topic!r}")
        last: list[tuple[Log, int]] = []

        def logs() -> list[Log]:
            known = self._internals.cluster.topics.get(topic)
            return logs_of(self._internals, topic, partition) if known is not None else []

        def records() -> list[Record]:
            return [record for log in logs() for record in records_in(log)]

        def poll() -> list[Record] | None:
            nonlocal last
            # Decoding is slow: records are decoded only if there may be enough, and only once.
            if count > sum(log.high_watermark - log.start_offset for log in logs()):
                return None
            current = [(log, log.high_watermark) for log in logs()]
            if current and current == last:
                return None
            last = current
            found = records()
            return found if len(found) >= count else None

        return Condition(
            f"{counted(count, 'record')} in {topic}", poll, lambda: f"found {len(records())}"
        )

    def enough_requests(
        self, apis: Apis, count: int, topic: str | None
    ) -> Condition[list[SeenRequest]]:
        which = Which(api_keys=api_keys_of(apis), topic=topic)
        found: list[SeenRequest] = []
        beginning = position = self._seen.beginning

        def poll() -> list[SeenRequest] | None:
            nonlocal beginning, position
            seen = self._seen
            if beginning != seen.beginning:  # requests were forgotten meanwhile
                beginning = seen.beginning
                found.clear()
            found.extend(each for each in seen.since(position) if which.matches(each))
            position = seen.total
            return found if len(found) >= count else None

        return Condition(
            f"{counted(count, 'request')} of {apis or 'any API'}",
            poll,
            lambda: f"received {len(found)}",
        )

    def group_in_state(self, id: str, state: str, members: int | None) -> Condition[GroupView]:
        wanted = group_state(state)

        def poll() -> GroupView | None:
            found = group_view(self._internals, id)
            is_there = found.state == wanted and members in (None, len(found.members))
            return found if is_there else None

        with_members = "" if members is None else f" with {counted(members, 'member')}"
        return Condition(
            f"group {id} in state {state}{with_members}",
            poll,
            lambda: f"current state: {group_view(self._internals, id)}",
        )

    def committed(self, id: str, topic: str, partition: int, offset: int) -> Condition[GroupView]:
        def poll() -> GroupView | None:
            found = group_view(self._internals, id)
            return found if found.offsets.get((topic, partition), -1) >= offset else None

        return Condition(
            f"offset {offset} of {topic}-{partition} committed by group {id}",
            poll,
            lambda: f"committed offsets: {group_view(self._internals, id).offsets}",
        )

    def transaction_in_state(self, id: str, state: str) -> Condition[TransactionView]:
        wanted = transaction_state(state)

        def poll() -> TransactionView | None:
            found = transaction_view(self._internals, id)
            return found if found.state == wanted else None

        return Condition(
            f"transactional id {id} in state {state}",
            poll,
            lambda: f"current state: {transaction_view(self._internals, id)}",
        )
