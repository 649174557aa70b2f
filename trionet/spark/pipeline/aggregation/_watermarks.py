"""The watermark, and the state that the job keeps from one micro-batch to the next.

Each micro-batch determines the latest time that it has read from each of the topic's partitions.
The watermark is the minimum of these times, less the delay, and never decreases. A partition with
no records in a micro-batch has been read completely, and does not hold back the watermark. So when
the job reads one partition faster than another, for example while catching up, no minute is closed
for which the slower partition still has records. Spark's own watermark, which is based on the
latest record of all partitions, would close such a minute.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import attrs

from ._fold import MINUTE_US

#: The number of preceding minutes with which the values of a minute are compared.
TRAILING_MINUTES: Final = 60


@attrs.frozen(kw_only=True)
class Intake:
    """Counts of the records read.

    Attributes:
        requests_read: the number of request records, including late records.
        connections_read: the number of records of closed connections, including late records.
        late: the number of records of both kinds whose minute was already closed.
        malformed: the number of values that are not records of a request log.
        newer: the number of records in a newer, unknown version of the format.
        ahead: the number of records with a time too far in the future.
    """

    requests_read: int = 0
    connections_read: int = 0
    late: int = 0
    malformed: int = 0
    newer: int = 0
    ahead: int = 0

    @property
    def records(self) -> int:
        """The total number of records read."""
        usable = self.requests_read + self.connections_read
        return usable + self.malformed + self.newer + self.ahead

    def __add__(self, other: Intake) -> Intake:
        mine, others = attrs.astuple(self), attrs.astuple(other)
        names = [field.name for field in attrs.fields(Intake)]
        return Intake(**{n: a + b for n, a, b in zip(names, mine, others, strict=True)})


@attrs.frozen(kw_only=True)
class JobState:
    """The state of the job after a micro-batch.

    Attributes:
        batch: the number of the micro-batch.
        watermark_us: the watermark, in microseconds since the epoch; None before the first record.
        open_batches: the micro-batches that have rows of open minutes, and the last minute of
            each.
        open_records: the number of log records in the rows of open minutes.
        trailing: the most recently closed minutes with requests, ascending, each with the
            micro-batch that closed it.
        intake: the counts of the records read since minutes were last closed.
    """

    batch: int = -1
    watermark_us: int | None = None
    open_batches: Mapping[int, int] = attrs.field(factory=dict)
    open_records: int = 0
    trailing: tuple[tuple[int, int], ...] = ()
    intake: Intake = Intake()

    @property
    def closed_before(self) -> int:
        """The first minute that is still open."""
        return 0 if self.watermark_us is None else self.watermark_us // MINUTE_US

    def to_json(self) -> str:
        """Serialize to JSON."""
        return json.dumps(attrs.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> JobState:
        """Parse the output of :meth:`to_json`."""
        read: dict[str, Any] = json.loads(text)
        read["open_batches"] = {int(k): last for k, last in read["open_batches"].items()}
        read["trailing"] = tuple((minute, batch) for minute, batch in read["trailing"])
        read["intake"] = Intake(**read["intake"])
        return cls(**read)


def watermark(before: int | None, latest: Mapping[int, int], delay_us: int) -> int | None:
    """Return the watermark after a micro-batch.

    Args:
        before: the watermark before the micro-batch.
        latest: the latest time read from each partition, in microseconds since the epoch.
        delay_us: how long minutes stay open for late records.
    """
    if not latest:
        return before
    reached = min(latest.values()) - delay_us
    return reached if before is None else max(before, reached)
