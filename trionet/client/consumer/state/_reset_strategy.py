"""Where a partition is read from if it has no valid position (Kafka: AutoOffsetResetStrategy)."""

from __future__ import annotations

import re
from typing import Final

import attrs

from ....errors import ConfigError

#: Special timestamps in ListOffsets requests.
EARLIEST_TIMESTAMP: Final = -2
LATEST_TIMESTAMP: Final = -1

_ALLOWED: Final = "earliest, latest, none, by_duration:<an ISO 8601 duration such as PT1H>"
_BY_DURATION: Final = "by_duration:"
# Days and smaller, as java.time.Duration reads them.
_DURATION: Final = re.compile(
    r"P(?:(?P<days>\d+)D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d{1,9})?)S)?)?",
    re.IGNORECASE,
)


@attrs.frozen
class ResetStrategy:
    """A reset strategy (Kafka: AutoOffsetResetStrategy, KIP-1106).

    Attributes:
        name: ``earliest``, ``latest``, ``none`` or ``by_duration``.
        duration_ms: for ``by_duration``, the maximum age of the records to read, in milliseconds.
    """

    name: str
    duration_ms: int = 0

    @classmethod
    def parse(cls, text: str) -> ResetStrategy:
        """Parse a value of ``auto.offset.reset``.

        Raises:
            ConfigError: the value is malformed.
        """
        plain = text.strip()
        if plain.lower() in {"earliest", "latest", "none"}:
            return cls(plain.lower())
        if plain.lower().startswith(_BY_DURATION):
            found = _DURATION.fullmatch(plain[len(_BY_DURATION) :])
            if found is not None and any(found.groups()):
                return cls("by_duration", _milliseconds(found))
        raise ConfigError(f"auto.offset.reset = {text!r}; allowed: {_ALLOWED}")

    def timestamp(self, now_ms: int) -> int:
        """Return the timestamp to look up with ListOffsets.

        Args:
            now_ms: the wall-clock time, in milliseconds since the epoch.

        Raises:
            ValueError: the strategy is ``none``.
        """
        if self.name == "none":
            raise ValueError("auto.offset.reset is none: there is no offset to look up")
        if self.name == "by_duration":
            return max(0, now_ms - self.duration_ms)
        return EARLIEST_TIMESTAMP if self.name == "earliest" else LATEST_TIMESTAMP


def _milliseconds(found: re.Match[str]) -> int:
    days, hours, minutes = (int(found[each] or 0) for each in ("days", "hours", "minutes"))
    whole, _, fraction = (found["seconds"] or "0").partition(".")
    seconds = ((days * 24 + hours) * 60 + minutes) * 60 + int(whole)
    return seconds * 1000 + int(fraction.ljust(3, "0")[:3] or 0)


EARLIEST: Final = ResetStrategy("earliest")
LATEST: Final = ResetStrategy("latest")
NONE: Final = ResetStrategy("none")
