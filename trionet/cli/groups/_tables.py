"""Formats groups as tables and as JSON documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any, Final

from trionet.client._topic_partition import TopicPartition

from ..terminal._output import Table, facts
from ._lag import FIELDS, TopicLag, committed_lag, topic_lags
from ._snapshot import Group


def summaries(groups: Iterable[Group]) -> Table:
    """Return a table with one row per group."""
    rows = [tuple(_summary(group).values()) for group in groups]
    return Table(_SUMMARY, rows)


def members(groups: Iterable[Group]) -> Table:
    """Return a table with one row per member."""
    fields = ("group", "member", "instance", "client_id", "host", "partitions", "assignment")
    rows = [
        (
            group.about.id,
            each.id,
            each.instance_id,
            each.client_id,
            each.client_host,
            len(each.assignment),
            assignment_text(each.assignment),
        )
        for group in groups
        for each in group.about.members
    ]
    return Table(fields, rows)


def topics(groups: Iterable[Group]) -> Table:
    """Return a table with one row per topic of each group."""
    rows = [(group.about.id, *each) for group in groups for each in topic_lags(group.partitions)]
    return Table(("group", *TopicLag._fields), rows)


def partitions(groups: Iterable[Group]) -> Table:
    """Return a table with one row per partition of each group."""
    rows = [(group.about.id, *each) for group in groups for each in group.partitions]
    return Table(("group", *FIELDS), rows)


#: The functions that make the tables, keyed by the value of ``--only``.
TABLES: Final[Mapping[str, Callable[[Iterable[Group]], Table]]] = MappingProxyType(
    {"summary": summaries, "members": members, "topics": topics, "partitions": partitions}
)


def group_tables(group: Group) -> list[Table]:
    """Return all tables of a group, for the text form."""
    by_topic = topics([group])
    shown = [members([group]), by_topic if len(by_topic.rows) > 1 else None, partitions([group])]
    return [
        facts(_summary(group)),
        *(_without_group(table) for table in shown if table is not None and table.rows),
    ]


def document(group: Group) -> dict[str, Any]:
    """Return a group as a JSON document."""
    assignments = [
        [{"topic": key.topic, "partition": key.partition} for key in sorted(each.assignment)]
        for each in group.about.members
    ]
    rows = [
        {**row, "assignment": assignment}
        for row, assignment in zip(
            _without_group(members([group])).documents(), assignments, strict=True
        )
    ]
    return {
        **_summary(group),
        "members": rows,
        "topics": [each._asdict() for each in topic_lags(group.partitions)],
        "partitions": [each._asdict() for each in group.partitions],
    }


def assignment_text(assignment: Iterable[TopicPartition]) -> str:
    """Format an assignment, such as ``orders:0-2,5 payments:1``."""
    return " ".join(
        f"{topic}:{_ranges([key.partition for key in keys])}"
        for topic, keys in groupby(sorted(assignment), key=lambda key: key.topic)
    )


def _ranges(numbers: Sequence[int]) -> str:
    """Format sorted numbers, with runs of consecutive numbers as ranges."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(f"{a}-{b}" if a != b else str(a) for a, b in ranges)


_SUMMARY: Final = ("group", "type", "state", "coordinator", "assignor", "members", "lag")


def _summary(group: Group) -> dict[str, Any]:
    about = group.about
    values = (
        about.id,
        about.type,
        about.state,
        str(about.coordinator),
        about.assignor or None,
        len(about.members),
        committed_lag(group.partitions),
    )
    return dict(zip(_SUMMARY, values, strict=True))


def _without_group(table: Table) -> Table:
    return table._replace(fields=table.fields[1:], rows=[row[1:] for row in table.rows])
