"""How far a query is, as its checkpoint has it."""

from __future__ import annotations

import json
from pathlib import Path

import attrs

from spark_kills.ledger import Ends


@attrs.frozen
class Checkpoint:
    """The checkpoint of a query that reads one topic.

    Attributes:
        folder: where it is; it may not be there yet.
        topic: which topic.
    """

    folder: Path
    topic: str

    @property
    def done(self) -> int:
        """How many micro-batches are noted as done."""
        return len(_numbers(self.folder / "commits"))

    def cuts(self) -> list[Ends]:
        """Where each micro-batch ends, in order; the last one may be under way."""
        log = self.folder / "offsets"
        return [self._ends(log / str(number)) for number in sorted(_numbers(log))]

    def is_through(self, ends: Ends) -> bool:
        """Whether all before these offsets is done."""
        done = _numbers(self.folder / "commits")
        return bool(done) and self._ends(self.folder / "offsets" / str(max(done))) == ends

    def _ends(self, log: Path) -> Ends:
        offsets = json.loads(log.read_text("utf-8").splitlines()[2])[self.topic]
        return {int(partition): offset for partition, offset in offsets.items()}


def _numbers(log: Path) -> list[int]:
    # Other names are those of checksums, and of what is not written wholly.
    if not log.exists():
        return []
    return [int(each.name) for each in log.iterdir() if each.name.isdecimal()]
