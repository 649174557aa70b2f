"""Which minutes are over, and what is remembered from one micro-batch to the next.

A micro-batch knows how late each partition of the topic is: the latest time in what it has read of
it. The watermark is the earliest of these, less the delay, and never goes back. A partition without
records in a micro-batch was at its end, and does not hold it up. So one partition that is read
faster than another, as when much is caught up with, closes nothing that the other still has records
for; Spark's own watermark, which is of the latest record of all, would.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import attrs

from ._fold import MINUTE_US

#: How many minutes what is usual is made of.
TRAILING_MINUTES: Final = 60


@attrs.frozen(kw_only=True)
class Intake:
    """What was read, in records.

    Attributes:
        requests_read: those of requests, late ones among them.
        connections_read: those of closed connections, late ones among them.
        late: of both, those whose minute was over.
        malformed: what is no record of a request log.
        newer: of a version that is not known here.
        ahead: with a time far ahead of when they were read.
    """

    requests_read: int = 0
    connections_read: int = 0
    late: int = 0
    malformed: int = 0
    newer: int = 0
    ahead: int = 0

    @property
    def records(self) -> int:
        """All that was read."""
        usable = self.requests_read + self.connections_read
        return usable + self.malformed + self.newer + self.ahead

    def __add__(self, other: Intake) -> Intake:
        mine, others = attrs.astuple(self), attrs.astuple(other)
        names = [field.name for field in attrs.fields(Intake)]
        return Intake(**{n: a + b for n, a, b in zip(names, mine, others, strict=True)})


@attrs.frozen(kw_only=True)
class Remembered:
    """What is known after a micro-batch.

    Attributes:
        batch: its number.
        watermark_us: in microseconds since the epoch; None before the first record.
        open_batches: the micro-batches with rows of minutes that are not over, and the last
            minute of each.
        open_records: how many records those rows stand for.
        trailing: the last minutes with requests that were told, ascending, and the micro-batch
            that has told each.
        intake: what was read since the last ones were told.
    """

    batch: int = -1
    watermark_us: int | None = None
    open_batches: Mapping[int, int] = attrs.field(factory=dict)
    open_records: int = 0
    trailing: tuple[tuple[int, int], ...] = ()
    intake: Intake = Intake()

    @property
    def closed_before(self) -> int:
        """The first minute that is not over."""
        return 0 if self.watermark_us is None else self.watermark_us // MINUTE_US

    def to_json(self) -> str:
        """As text."""
        return json.dumps(attrs.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Remembered:
        """From text of :meth:`to_json`."""
        read: dict[str, Any] = json.loads(text)
        read["open_batches"] = {int(k): last for k, last in read["open_batches"].items()}
        read["trailing"] = tuple((minute, batch) for minute, batch in read["trailing"])
        read["intake"] = Intake(**read["intake"])
        return cls(**read)


def watermark(before: int | None, latest: Mapping[int, int], delay_us: int) -> int | None:
    """The watermark after a micro-batch.

    Args:
        before: the one before it.
        latest: the latest time that it has read of each partition.
        delay_us: how long to wait for what is late.
    """
    if not latest:
        return before
    reached = min(latest.values()) - delay_us
    return reached if before is None else max(before, reached)
