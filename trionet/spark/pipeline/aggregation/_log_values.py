"""The values of a request log that can be used, and how many cannot: none of them ends the job."""

from __future__ import annotations

from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from trionet.errors import WireFormatError
from trionet.protocol.request_log import SAMPLE_ALL, VERSION, decode, encode
from trionet.protocol.request_log_columns import decode_columns

_SECOND_US: Final = 1_000_000
#: What is further ahead of the time of reading has a wrong clock, and would close all minutes
#: before it: it is counted apart.
AHEAD_SECONDS_MAX: Final = 3600


@attrs.frozen
class LogValues:
    """What values of a log say.

    Attributes:
        requests: with the columns of ``request_log_columns.REQUESTS``.
        connections: with those of ``CONNECTIONS``.
        malformed: how many values are no record of a request log.
        newer: how many are of a version that is not known here.
        ahead: how many have a time far ahead of when they were read.
    """

    requests: Any
    connections: Any
    malformed: int
    newer: int
    ahead: int

    @classmethod
    def read(cls, values: Any, read_at_us: int) -> LogValues:
        """Read values.

        Args:
            values: a ``pyarrow.BinaryArray``; null is malformed.
            read_at_us: when they were read, in microseconds since the epoch.
        """
        total = len(values)
        present = values.drop_null() if values.null_count else values
        # The version is the first byte of all versions there will be.
        known, newer = _of_known_version(present)
        try:
            requests, connections = decode_columns(known)
        except WireFormatError:
            known = pa.array([each for each in known.to_pylist() if _is_well(each)], pa.binary())
            requests, connections = decode_columns(known)
        requests, ahead = _in_time(requests, "completed_at", read_at_us)
        connections, also_ahead = _in_time(connections, "closed_at", read_at_us)
        ahead += also_ahead
        usable = len(requests) + len(connections)
        return cls(requests, connections, total - newer - ahead - usable, newer, ahead)


def _of_known_version(values: Any) -> tuple[Any, int]:
    """The values without those of later versions, and how many those are."""
    first = pc.binary_slice(values, 0, 1)
    # Nothing is a version before the first one, and malformed.
    is_newer = pc.greater(first, pa.scalar(bytes([VERSION]), values.type))
    newer = pc.sum(is_newer).as_py() or 0
    return (values.filter(pc.invert(is_newer)) if newer else values), newer


def _is_well(value: bytes) -> bool:
    try:
        return encode(decode(value)) == value  # decoded, text that is no UTF-8 is another one
    except WireFormatError:
        return False


def _in_time(records: Any, column: str, read_at_us: int) -> tuple[Any, int]:
    """Records with a time and a sample that can be, and how many are too far ahead."""
    time = microseconds(records, column)
    sample: NDArray[np.uint32] = records["sample_ppm"].to_numpy()
    possible = (time >= 0) & (sample > 0) & (sample <= SAMPLE_ALL)
    ahead = possible & (time > read_at_us + AHEAD_SECONDS_MAX * _SECOND_US)
    good = possible & ~ahead
    return (records if good.all() else records.filter(pa.array(good))), int(ahead.sum())


def microseconds(records: Any, column: str) -> NDArray[np.int64]:
    """A column of times, as microseconds since the epoch."""
    times: NDArray[np.int64] = records[column].cast(pa.int64()).to_numpy()
    return times
