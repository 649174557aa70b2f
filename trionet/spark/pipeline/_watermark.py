"""The watermark: how far the log has been read, by the clocks of the brokers that write it.

Each broker has a clock of its own, whose time is that of its latest record. While a micro-batch has
records of a broker in several partitions, the earliest of their latest times counts, so that when
the job reads one partition faster than another, for example while catching up, no minute is closed
for which the slower partition still has records. The watermark is the earliest time of all brokers,
less the delay, and never decreases. So one clock that is ahead closes no minute of the others.

A broker takes part from its first record on, also in micro-batches without any of its records,
except that

* a broker that is silent takes part only until the log has later records of the others in
  ``SILENT_MINUTES_MAX`` minutes. What counts is the order of the log, and how many minutes have
  records: a clock that jumps by an hour has records in one more minute, as any other;
* a broker whose time is more than ``CLOCK_SECONDS_MAX`` before that of reading, if the time of
  another one is not, takes part only while its time is no further from the latest one than clocks
  may differ. Otherwise it has stopped, or its clock is wrong. If the times of all are, the job is
  catching up: there a clock that is ahead reaches the time of reading first, and the records that
  the others still have are no later than they were.

The watermark is never after the time of reading, by the clock of the machine that runs the job, so
that while only one broker whose clock is ahead has records, also before any other is known, the
minutes that are still to come stay open: for the others, and for itself once its clock is right. A
broker is known until it has been silent for ``KNOWN_MINUTES`` minutes.

All functions are pure. They need no memory for each record or minute, and what is remembered from
one micro-batch to the next is a few numbers of each broker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa

from ._fold import AHEAD_SECONDS_MAX, MINUTE_US
from ._partials import INTAKE, MAXIMA, NO_BROKER, SUMS, Groups, Numbers, matrix

#: A silent broker takes part until the others have had records in so many later minutes.
SILENT_MINUTES_MAX: Final = 5
KNOWN_MINUTES: Final = 24 * 60
#: A clock that is further than this from the one of reading is wrong.
CLOCK_SECONDS_MAX: Final = AHEAD_SECONDS_MAX
#: Two times that are further apart are those of a clock that is wrong: the earlier one may also be
#: that of a broker that is silent.
APART_SECONDS_MAX: Final = CLOCK_SECONDS_MAX + 60 * SILENT_MINUTES_MAX
#: A clock that is so far ahead is reported.
AHEAD_MINUTES_MIN: Final = 2
#: Forged records may have any node id: only so many brokers are distinguished, those with the most
#: records, and clocks are compared only of so many in a partition.
BROKERS_MAX: Final = 100
COMPARED_MAX: Final = 20

#: The columns with which a micro-batch's rows of ``INTAKE`` are summarized.
ROW_COLUMNS: Final = ("partition", "node_id", "window", "sums", "maxima")
#: The columns of the summary, for Spark.
COLUMNS: Final = ", ".join(
    f"{name} bigint"
    for name in (
        *("node_id", "time_us", "read_at_us", "minute", "minutes", "silent", "ahead_minutes"),
        *(*SUMS[INTAKE], "late"),
    )
)
_NAMES: Final = [each.split()[0] for each in COLUMNS.split(", ")]

_SECOND_US: Final = 1_000_000


@attrs.frozen
class BrokerTime:
    """The time of a known broker.

    Attributes:
        time_us: its time, in microseconds since the epoch.
        minute: the latest minute in which it has had records.
        silent: the number of minutes in which only others have had records since its last one.
    """

    time_us: int
    minute: int
    silent: int = 0


@attrs.frozen
class IntakeSummary:
    """Summarizes what a micro-batch has read of each broker; one task has all rows.

    Attributes:
        minutes: the latest minute of each known broker, by its node id.
        closed_before: the first minute that was open before the micro-batch.
    """

    minutes: Mapping[int, int]
    closed_before: int

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield a row for each broker, with these columns besides the sums of ``INTAKE``:

        * ``time_us``: its time; -1 if no records are in any minute;
        * ``read_at_us``: when the micro-batch was read;
        * ``minute``: its latest minute; -1 as above;
        * ``minutes``: in how many minutes it has records that are later than those known;
        * ``silent``: in how many minutes others have records after its last one in the log;
        * ``ahead_minutes``: how far its clock is ahead of all others, by the order of the log, or
          of the time of reading if records have been left out for it;
        * ``late``: how many records are in minutes that are closed.

        Args:
            batches: Arrow batches with the rows of ``INTAKE`` and the columns ``ROW_COLUMNS``.
        """
        filled = [each for each in batches if each.num_rows]
        if not filled:
            return
        [rows] = pa.Table.from_batches(filled).combine_chunks().to_batches()
        node, partition = rows["node_id"].to_numpy(), rows["partition"].to_numpy()
        records = matrix(rows["sums"], len(SUMS[INTAKE]))
        node = _distinguished(node, records.sum(axis=1))
        window = rows["window"].to_numpy()
        groups = Groups.by([partition, node, window])
        columns = _Minutes(
            partition[groups.first],
            node[groups.first],
            window[groups.first],
            groups.sums(records),
            groups.maxima(matrix(rows["maxima"], len(MAXIMA[INTAKE]))),
        )
        found = [self._of_broker(each, columns) for each in np.unique(columns.node).tolist()]
        yield pa.RecordBatch.from_pylist(found, pa.schema([(name, pa.int64()) for name in _NAMES]))

    def _of_broker(self, node: int, rows: _Minutes) -> dict[str, int]:
        own = rows.node == node
        in_minute = own & (rows.window >= 0)
        known = self.minutes.get(node, -1)
        late = rows.sums[in_minute & (rows.window < self.closed_before)]
        partitions = [
            rows.taken(rows.partition == each) for each in np.unique(rows.partition[in_minute])
        ]
        ahead = rows.maxima[own, _AHEAD].max() // MINUTE_US
        if partitions and node != NO_BROKER:
            ahead = max(ahead, *(_ahead_minutes(node, each) for each in partitions))
        return {
            "node_id": node,
            "time_us": min(
                (each.of(node).maxima[:, _TIME].max() for each in partitions), default=-1
            ),
            "read_at_us": rows.maxima[own, _READ_AT].max(),
            "minute": rows.window[own].max(),
            "minutes": len(np.unique(rows.window[in_minute & (rows.window > known)])),
            "silent": min((_silent(node, each) for each in partitions), default=0),
            "ahead_minutes": ahead,
            **dict(zip(SUMS[INTAKE], rows.sums[own].sum(axis=0).tolist(), strict=True)),
            "late": late.sum(),
        }


_TIME, _READ_AT, _AHEAD, _LAST, _MINUS_FIRST = range(len(MAXIMA[INTAKE]))


@attrs.frozen
class _Minutes:
    """Rows of ``INTAKE`` as columns, one row for each partition, broker and minute."""

    partition: Numbers
    node: Numbers
    window: Numbers
    sums: Numbers
    maxima: Numbers

    def taken(self, chosen: Any) -> _Minutes:
        columns = (self.partition, self.node, self.window, self.sums, self.maxima)
        return _Minutes(*(each[chosen] for each in columns))

    def of(self, node: int) -> _Minutes:
        """The rows of one broker that are in a minute."""
        return self.taken((self.node == node) & (self.window >= 0))


def _distinguished(node: Numbers, records: Numbers) -> Numbers:
    """Return the node ids, of the ``BROKERS_MAX`` with the most records; -1 for the others."""
    groups = Groups.by([node])
    if len(groups) <= BROKERS_MAX:
        return node.astype(np.int64)
    count = groups.sums(records[:, None])[:, 0]
    kept = np.argsort(-count, kind="stable")[:BROKERS_MAX]
    return np.where(np.isin(groups.of_row, kept), node, NO_BROKER)


def _silent(node: int, rows: _Minutes) -> int:
    """Return in how many minutes a partition has records of others after a broker's last one."""
    last = rows.of(node).maxima[:, _LAST].max()
    is_after = (rows.node != node) & (rows.window >= 0) & (-rows.maxima[:, _MINUS_FIRST] > last)
    return len(np.unique(rows.window[is_after]))


def _ahead_minutes(node: int, rows: _Minutes) -> int:
    """Return how many minutes a broker's clock is ahead of each other one in a partition.

    It is ahead of another one by what it is in each of that one's minutes: at the end of the minute
    in the log, the broker has had records of a later minute.
    """
    others = np.unique(rows.node[(rows.node != node) & (rows.window >= 0)]).tolist()
    if len(others) >= COMPARED_MAX:
        return 0
    own = rows.of(node)
    order = np.argsort(-own.maxima[:, _MINUS_FIRST])
    begins = -own.maxima[order, _MINUS_FIRST]
    reached = np.maximum.accumulate(own.window[order])
    leads = []
    for other in others:
        its = rows.of(other)
        begun = np.searchsorted(begins, its.maxima[:, _LAST])
        lead = (reached[begun - 1] - its.window)[begun > 0]
        leads.append(int(lead.min()) if len(lead) else 0)
    return max(0, min(leads, default=0))


def brokers_after(
    before: Mapping[int, BrokerTime], summary: Sequence[Mapping[str, int]]
) -> dict[int, BrokerTime]:
    """Return the brokers that are known after a micro-batch.

    Args:
        before: those that were known before it.
        summary: the rows of :class:`IntakeSummary`.
    """
    heard = {row["node_id"]: row for row in summary if row["time_us"] >= 0}
    heard.pop(NO_BROKER, None)
    passed = max((row["minutes"] for row in heard.values()), default=0)
    found = {
        node: attrs.evolve(broker, silent=broker.silent + passed)
        for node, broker in before.items()
        if node not in heard
    }
    for node, row in heard.items():
        known = before.get(node, BrokerTime(-1, -1))
        # Its clock may have been set back, so that the latest of its times is no time of its log.
        found[node] = BrokerTime(row["time_us"], max(known.minute, row["minute"]), row["silent"])
    latest = sorted(found.items(), key=lambda each: each[1].silent)[:BROKERS_MAX]
    return {node: broker for node, broker in latest if broker.silent <= KNOWN_MINUTES}


def watermark(
    before: int | None, brokers: Mapping[int, BrokerTime], read_at_us: int, delay_us: int
) -> int | None:
    """Return the watermark after a micro-batch, in microseconds since the epoch.

    Args:
        before: the watermark before the micro-batch; None if there was none.
        brokers: the known brokers.
        read_at_us: when the micro-batch was read, in microseconds since the epoch.
        delay_us: how long minutes stay open for late records.
    """
    times = [each.time_us for each in brokers.values() if each.silent <= SILENT_MINUTES_MAX]
    if not times:
        return before
    latest = max(times)
    if latest >= read_at_us - CLOCK_SECONDS_MAX * _SECOND_US:
        first = min(latest, read_at_us) - APART_SECONDS_MAX * _SECOND_US
        times = [each for each in times if each >= first]
    reached = min(*times, read_at_us) - delay_us
    return reached if before is None else max(before, reached)


def clocks_ahead(summary: Iterable[Mapping[str, int]]) -> dict[int, int]:
    """Return the brokers whose clocks are ahead, by their node ids, and by how many minutes.

    A clock that agrees with that of reading is right, whatever the others are. One that is ahead of
    the others by the order of the log is ahead of them also when the job is catching up.

    Args:
        summary: the rows of :class:`IntakeSummary`.
    """
    found = {}
    for row in summary:
        minutes = row["ahead_minutes"]
        if row["time_us"] >= 0:
            by_reading = (row["time_us"] - row["read_at_us"]) // MINUTE_US
            if -CLOCK_SECONDS_MAX // 60 <= by_reading < AHEAD_MINUTES_MIN:
                continue
            minutes = max(minutes, by_reading)
        if row["node_id"] != NO_BROKER and minutes >= AHEAD_MINUTES_MIN:
            found[row["node_id"]] = minutes
    return found


def furthest(before: Mapping[int, int], now: Mapping[int, int]) -> dict[int, int]:
    """Return the most minutes that each clock has been ahead, of the clocks furthest ahead."""
    most = {node: max(before.get(node, 0), now.get(node, 0)) for node in {*before, *now}}
    kept = sorted(most.items(), key=lambda each: (-each[1], each[0]))[:BROKERS_MAX]
    return dict(kept)
