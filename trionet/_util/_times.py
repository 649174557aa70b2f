"""Times as text: parses those that users write, and formats those of records.

All commands accept the same forms. What could mean two things is refused: ``20270101`` may be a
date or a number of seconds.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

TIME_FORMS: Final = (
    "2026-03-01, 2026-03-01T12:30 (UTC unless it has a zone), 90s, 15m, 2h or 7d (ago), now, or "
    "seconds (10 digits) or milliseconds (13 digits) since the epoch"
)

_MILLISECONDS: Final = {
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 7 * 86_400_000,
}
_PIECE: Final = re.compile(r"([0-9]+)(ms|[smhdw])")
DURATION: Final = r"-?(?:[0-9]+(?:ms|[smhdw]))+"
"""The pattern of a duration."""

DAY: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
"""The pattern of a date without a time of day."""

_CLOCK: Final = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?"
_ZONE: Final = r"Z|[+-][0-9]{2}(?::?[0-9]{2})?"
_DATE: Final = rf"{DAY}(?:[T ]{_CLOCK}(?:{_ZONE})?)?"
TIME: Final = rf"now|{_DATE}|[0-9]+|{DURATION}"
"""The pattern of a time. :func:`time_of` accepts no other text, but not every text like it."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
#: The milliseconds in the unit of a number, keyed by its digits: those of 2001 to 2286, as in rpk.
_UNITS: Final = {10: 1000, 13: 1}


def time_of(text: str, now: datetime) -> int:
    """Parse a time and return it in milliseconds since the epoch; times before it become 0.

    Args:
        text: a date, or a date and a time in ISO 8601 with dashes and colons; a duration before now
            (``2h``); ``now``; or, since the epoch, seconds in 10 or milliseconds in 13 digits.
        now: the current time, timezone-aware.

    Raises:
        ValueError: the text is none of these, or ambiguous; the message lists the forms.
    """
    why = ""
    try:
        if text == "now":
            return _since_epoch(now)
        if (ago := parse_duration(text)) is not None:
            return _since_epoch(now - timedelta(milliseconds=ago))
        if re.fullmatch(_DATE, text):
            time = datetime.fromisoformat(text)
            return _since_epoch(time if time.tzinfo else time.replace(tzinfo=UTC))
        if re.fullmatch("[0-9]+", text):
            if len(text) in _UNITS:
                return int(text) * _UNITS[len(text)]
            why = f"a number of {len(text)} digits could be a date or a timestamp of any unit; "
    except (ValueError, OverflowError):
        pass
    raise ValueError(f"invalid time {text!r}: {why}expected {TIME_FORMS}")


def parse_duration(text: str) -> int | None:
    """Return a duration such as ``1h30m`` in milliseconds, or None if the text is none.

    A minus sign is ignored.

    Raises:
        ValueError: a number has thousands of digits.
    """
    if re.fullmatch(DURATION, text) is None:
        return None
    return sum(int(number) * _MILLISECONDS[unit] for number, unit in _PIECE.findall(text))


def time_text(milliseconds: int) -> str:
    """Format a timestamp as ISO 8601, or as a number if it is outside the years 1 to 9999."""
    try:
        time = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:  # before the year 1, or after 9999
        return str(milliseconds)
    return f"{time.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def _since_epoch(time: datetime) -> int:
    # Negative timestamps have special meanings to a broker, such as the end of the log.
    return max(0, (time - _EPOCH) // _MILLISECOND)
