"""What producers know of the records that they have sent to a compacted topic."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

import attrs


class Fate(Enum):
    """What became of a record."""

    UNKNOWN = "unknown"
    WRITTEN = "written"
    ABORTED = "aborted"


@attrs.define
class Attempt:
    """A record that was sent.

    Attributes:
        number: greater than those of all records before it.
        key: its key.
        is_tombstone: whether it has no value.
        fate: what its producer knows.
    """

    number: int
    key: bytes
    is_tombstone: bool
    fate: Fate = Fate.UNKNOWN


@attrs.frozen
class Seen:
    """A record that a consumer has read."""

    offset: int
    key: bytes
    number: int
    is_tombstone: bool


class Ledger:
    """All records that were sent. Each key has one producer, so that its records have an order."""

    def __init__(self) -> None:
        self._attempts: list[Attempt] = []
        self._of_key: dict[bytes, list[Attempt]] = {}

    def note(self, key: bytes, is_tombstone: bool) -> Attempt:
        """Note a record before it is sent."""
        attempt = Attempt(len(self._attempts), key, is_tombstone)
        self._attempts.append(attempt)
        self._of_key.setdefault(key, []).append(attempt)
        return attempt

    @property
    def written(self) -> int:
        """How many records were acknowledged."""
        return sum(each.fate is Fate.WRITTEN for each in self._attempts)

    def mistakes(self, seen: Iterable[Seen]) -> list[str]:
        """Compare with what a consumer of committed records has read, from the beginning."""
        found: list[str] = []
        latest: dict[bytes, Seen] = {}
        offset = -1
        for each in seen:
            if each.offset <= offset:
                found.append(f"offset {each.offset} comes after {offset}")
            offset = each.offset
            before = latest.get(each.key)
            if before is not None and before.number >= each.number:
                found.append(f"{each} comes after {before}")
            latest[each.key] = each
            attempt = self._attempts[each.number]
            if (attempt.key, attempt.is_tombstone) != (each.key, each.is_tombstone):
                found.append(f"{each} was sent as {attempt}")
            if attempt.fate is Fate.ABORTED:
                found.append(f"{each} was aborted")
        for key, attempts in self._of_key.items():
            found += self._mistakes_of(key, attempts, latest.get(key))
        return found

    def _mistakes_of(self, key: bytes, attempts: list[Attempt], last: Seen | None) -> list[str]:
        """The last record must be the last one that was acknowledged, or one sent after it."""
        possible: list[Attempt] = []
        for attempt in attempts:
            if attempt.fate is Fate.WRITTEN:
                possible = [attempt]
            elif attempt.fate is Fate.UNKNOWN:
                possible.append(attempt)
        if last is None:
            is_right = all(each.fate is not Fate.WRITTEN for each in possible) or any(
                each.is_tombstone for each in possible
            )
        else:
            is_right = any(each.number == last.number for each in possible)
        return [] if is_right else [f"{key!r}: the last record is {last}, not one of {possible}"]
