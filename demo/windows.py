"""How long the windows of the delays are, so that the replay closes about one a second. Pure."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

from demo.dataset import FIRST_DAY

_DAY = 86_400
#: What a window may last, in seconds of 2013.
LENGTHS = (600, 3_600, 6 * 3_600, _DAY, 7 * _DAY, 28 * _DAY)
#: New York's clocks in winter. In summer they are an hour ahead, which no window follows.
EASTERN = timezone(timedelta(hours=-5))
#: The first window begins with the year, by these clocks.
_FIRST = int(datetime(FIRST_DAY.year, FIRST_DAY.month, FIRST_DAY.day, tzinfo=EASTERN).timestamp())


class Windows(NamedTuple):
    """Windows that follow one another without a gap; all in seconds.

    Attributes:
        length: of one window.
        offset: how long after a multiple of its length since the epoch each begins.
        delay: how long a window stays open for flights that come late.
    """

    length: int
    offset: int
    delay: int

    @property
    def name(self) -> str:
        """The length in words, as in ``7 days``."""
        for seconds, unit in ((_DAY, "day"), (3_600, "hour"), (60, "minute")):
            if self.length % seconds == 0:
                count = self.length // seconds
                return f"{count} {unit}{'s' if count > 1 else ''}"
        return f"{self.length} seconds"


def windows_for(speed: float) -> Windows:
    """The windows for a replay that is so much faster than 2013 was; infinite for the fastest.

    Partitions may be read a second apart from each other, and at the highest speed as far apart as
    what is sent at once, 1,000 flights or a day. A window waits as long as it is: for the slower
    speeds that is a second or more, for the highest 28 days.
    """
    length = next((each for each in LENGTHS if each >= speed), LENGTHS[-1])
    return Windows(length, _FIRST % length, length)


def as_factor(speed: float) -> str:
    """A speed for the command line of a child, where the fastest is 0."""
    return "0" if math.isinf(speed) else str(speed)


def from_factor(text: str) -> float:
    """What :func:`as_factor` was given."""
    return float(text) or math.inf
