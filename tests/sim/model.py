"""What a partition has to hold: what was acknowledged, what was read, what was promised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import Enum, auto

from support.ledger import Violation


def short(value: bytes) -> str:
    """A value without its padding."""
    return value.split(b" ")[0].decode(errors="replace")


class End(Enum):
    """How the life of a broker ended."""

    STOP = auto()
    KILL = auto()
    POWER = auto()


class Partition:
    """One partition as its clients may know it.

    Args:
        name: topic and number, for messages.
        is_durable: what is acknowledged there survives even a power cut.

    Attributes:
        acknowledged: by offset.
        somewhere: what is there as its producer was told, but not where.
        repeatable: what may be there several times, and in any order.
        end: after the last record that is known to be there.
        start: where the log begins at least, as who deleted records was told.
        may_start_at: where it may begin, as somebody has asked for.
        cuts: how many power cuts may have taken what was acknowledged.
        was_reopened: of each producer only what it sent last is known for sure: a snapshot has no
            more (Kafka: ProducerStateManager), so a repetition of what went before is refused.
    """

    def __init__(self, name: str, *, is_durable: bool) -> None:
        self.name = name
        self.is_durable = is_durable
        self.acknowledged: dict[int, bytes] = {}
        self.read: dict[int, bytes] = {}
        self.sent: set[bytes] = set()
        self.somewhere: set[bytes] = set()
        self.repeatable: set[bytes] = set()
        self.start = 0
        self.may_start_at = 0
        self.cuts = 0
        self.was_reopened = False

    def acknowledge(self, offset: int, values: Iterable[bytes], since: int) -> None:
        """A producer was told that its records are there.

        Args:
            offset: of the first one; -1 where its leader only knows that it has them.
            values: of them.
            since: :attr:`cuts` when it sent them; what was answered before a power cut may be late.
        """
        if since != self.cuts:
            return
        if offset < 0:
            self.somewhere.update(values)
            return
        for number, value in enumerate(values, offset):
            before = self.acknowledged.setdefault(number, value)
            if before != value:
                raise Violation(
                    f"{self.name}: offset {number} was given to {short(before)} and {short(value)}"
                )
            self._compare(number, value)

    def refused(self, value: bytes) -> None:
        """A producer was told that its record was not written, for certain."""
        self.sent.discard(value)
        if value in self.read.values():
            raise Violation(f"{self.name}: {short(value)} is there, and was refused for certain")

    @property
    def end(self) -> int:
        return max((*self.acknowledged, *self.read), default=self.start - 1) + 1

    def saw(
        self, position: int, records: list[tuple[int, bytes]], high_watermark: float, since: int
    ) -> None:
        """A fetch at ``position``, sent at :attr:`cuts` ``since``, got a response with these."""
        if since != self.cuts:
            return
        expected = position
        for offset, value in records:
            if offset < position:
                continue  # the batch begins before it
            if offset != expected:
                raise Violation(f"{self.name}: offset {offset} follows {expected - 1}")
            if offset >= high_watermark:
                raise Violation(f"{self.name}: {offset} is not below {high_watermark}")
            if value not in self.sent:
                raise Violation(f"{self.name}: nobody sent {short(value)}, at {offset}")
            self._compare(offset, value)
            self.read[offset] = value
            expected += 1

    def _compare(self, offset: int, value: bytes) -> None:
        for known in (self.acknowledged, self.read):
            if known.get(offset, value) != value:
                held, now = short(known[offset]), short(value)
                raise Violation(f"{self.name}: offset {offset} held {held}, and now {now}")

    def reopened(self, how: End, start: int, end: int) -> None:
        """A new life of the broker begins; its log holds ``start`` to ``end``."""
        if start < self.start:
            raise Violation(f"{self.name}: deleted records are back from {start} on")
        may_lose = how is End.POWER and not self.is_durable
        if may_lose:
            # Also the first of its files, whose names may be missing as anything unsynced may.
            self.may_start_at = max(self.may_start_at, start)
        if start > self.may_start_at:
            raise Violation(
                f"{self.name}: begins at {start}, at most {self.may_start_at} was asked"
            )
        self.was_reopened = True
        lost = [offset for offset in self.acknowledged if offset >= end]
        if lost and not may_lose:
            raise Violation(
                f"{self.name}: ends at {end} after {how.name}; {len(lost)} acknowledged records"
                f" from {min(lost)} on are lost"
            )
        if how is not End.POWER and any(offset >= end for offset in self.read):
            raise Violation(f"{self.name}: records that were read are lost from {end} on")
        self.cuts += may_lose
        if may_lose:
            self.somewhere.clear()
        for known in (self.acknowledged, self.read):
            for offset in [each for each in known if each >= end]:
                del known[offset]

    def check_whole(self, start: int, records: list[tuple[int, bytes]], end: int) -> None:
        """Everything that is there, at the end."""
        offsets = [offset for offset, _ in records]
        if offsets != list(range(start, end)):
            raise Violation(f"{self.name}: {start} to {end} has other offsets: {offsets}")
        values = dict(records)
        for offset, value in self.acknowledged.items():
            if offset >= start and values.get(offset) != value:
                raise Violation(f"{self.name}: acknowledged {short(value)} at {offset} is lost")
        if start == 0:  # else they may have been deleted
            for value in self.somewhere.difference(values.values()):
                raise Violation(f"{self.name}: acknowledged {short(value)} is nowhere")
        once = [value for value in values.values() if value not in self.repeatable]
        if len(set(once)) < len(once):
            twice = [value for value, count in Counter(once).items() if count > 1]
            raise Violation(f"{self.name}: there twice: {list(map(short, twice))}")
        last: dict[bytes, int] = {}
        for value in once:
            producer, _, number = value.split(b" ")[0].rpartition(b"-")
            if int(number) < last.get(producer, -1):
                raise Violation(f"{self.name}: {short(value)} comes behind {last[producer]}")
            last[producer] = int(number)
