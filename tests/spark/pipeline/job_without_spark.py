"""A job in one process without Spark: its own steps but the reading and writing of files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from spark.pipeline.logged import Logged, table
from trionet.spark.pipeline._batches import after_reading
from trionet.spark.pipeline._estimates import estimate
from trionet.spark.pipeline._fold import folded
from trionet.spark.pipeline._partials import CLOSES, INTAKE, REQUESTS
from trionet.spark.pipeline._storage import Intake, JobState, minute_ranges, minutes_of
from trionet.spark.pipeline._watermark import ROW_COLUMNS, IntakeSummary, clocks_ahead

DELAY_US = 30_000_000


@attrs.define
class Job:
    """A job that is started anew for each micro-batch: all that it keeps is its text of state.

    Attributes:
        text: the state.
        open_rows: the rows of sums of each micro-batch that the state names, which files have.
        closed: how many records are in each minute that was closed.
        intake: the counts of all micro-batches.
        ahead: by how many minutes clocks were ahead in the last micro-batch.
    """

    text: str = attrs.field(factory=lambda: JobState().to_json())
    open_rows: dict[int, list[Any]] = attrs.field(factory=dict)
    closed: Counter[int] = attrs.field(factory=Counter)
    intake: Intake = attrs.field(factory=Intake)
    ahead: dict[int, int] = attrs.field(factory=dict)

    @property
    def state(self) -> JobState:
        return JobState.from_json(self.text)

    def read(self, *parts: Sequence[Logged | bytes], read_at: float) -> Intake:
        """Process a micro-batch.

        Args:
            parts: the records of each partition.
            read_at: when it is read, in seconds since the epoch.
        """
        before = self.state
        number = before.batch + 1
        rows = folded_parts(parts, read_at)
        intake, after, self.ahead = self.summarized(before, number, rows)
        self.intake += intake
        self.open_rows[number] = rows
        if after.closed_before > before.closed_before:
            after = self._close(before, after)
        opened = {k: last for k, last in after.open_batches.items() if last >= after.closed_before}
        self.open_rows = {k: self.open_rows[k] for k in opened}
        self.text = attrs.evolve(after, open_batches=opened).to_json()
        return intake

    @staticmethod
    def summarized(
        before: JobState, number: int, rows: Sequence[Any]
    ) -> tuple[Intake, JobState, dict[int, int]]:
        minutes = {node: broker.minute for node, broker in before.brokers.items()}
        intake_rows = [each.select(ROW_COLUMNS) for each in of_kinds(rows, [INTAKE])]
        summarize = IntakeSummary(minutes, before.closed_before)
        summary = [row for each in summarize(intake_rows) for row in each.to_pylist()]
        return *after_reading(before, number, summary, DELAY_US), clocks_ahead(summary)

    def _close(self, before: JobState, after: JobState) -> JobState:
        every = [each for rows in self.open_rows.values() for each in rows]
        over = [
            each.filter(
                pc.and_(
                    pc.greater_equal(each["window"], before.closed_before),
                    pc.less(each["window"], after.closed_before),
                )
            )
            for each in of_kinds(every, [REQUESTS, CLOSES])
        ]
        found: Counter[int] = Counter()
        for batch in estimate([each for each in over if each.num_rows]):
            for window, sums in zip(
                batch["window"].to_pylist(), batch["sums"].to_pylist(), strict=True
            ):
                found[window] += sums[0]
        assert not found.keys() & self.closed.keys(), "a minute is written once"
        self.closed.update(found)
        if not found:
            return after
        minutes = sorted({*minutes_of(before.minutes), *found})
        return attrs.evolve(
            after,
            open_records=after.open_records - sum(found.values()),
            minutes=minute_ranges(minutes, max(found)),
            history=after.batch,
            intake=Intake(),
            ahead={},
        )


def folded_parts(parts: Iterable[Sequence[Logged | bytes]], read_at: float) -> list[Any]:
    """The rows of sums of a micro-batch, one task for each partition."""
    rows: list[Any] = []
    for number, records in enumerate(parts):
        whole = table(records, read_at)
        place = whole.schema.get_field_index("partition")
        numbers = pa.array([number] * len(records), pa.int32())
        rows += folded([whole.set_column(place, "partition", numbers)])
    return rows


def of_kinds(rows: Iterable[Any], kinds: Sequence[int]) -> list[Any]:
    """The rows of some kinds."""
    chosen = pa.array(kinds, pa.int32())
    found = [each.filter(pc.is_in(each["kind"], chosen)) for each in rows]
    return [each for each in found if each.num_rows]
