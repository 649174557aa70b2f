"""Decodes the values of a request log; counts unusable values instead of failing the job."""

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
#: Records further in the future come from a broker with a wrong clock. They would advance the
#: watermark and close all earlier minutes, so they are only counted.
AHEAD_SECONDS_MAX: Final = 3600


@attrs.frozen
class LogValues:
    """The decoded values of a request log.

    Attributes:
        requests: the request records, with the columns ``request_log_columns.REQUESTS``.
        connections: the records of closed connections, with the columns
            ``request_log_columns.CONNECTIONS``.
        malformed: the number of values that are not records of a request log.
        newer: the number of values in a newer, unknown version of the format.
        ahead: the number of records with a time too far in the future.
    """

    requests: Any
    connections: Any
    malformed: int
    newer: int
    ahead: int

    @classmethod
    def read(cls, values: Any, read_at_us: int) -> LogValues:
        """Decode the values of a request log.

        Args:
            values: a ``pyarrow.BinaryArray``; nulls count as malformed.
            read_at_us: when the values were read, in microseconds since the epoch.
        """
        total = len(values)
        present = values.drop_null() if values.null_count else values
        # Every version of the format starts with the version byte, also future ones.
        known, newer = _of_known_version(present)
        try:
            requests, connections = decode_columns(known)
        except WireFormatError:
            known = pa.array([each for each in known.to_pylist() if _is_valid(each)], pa.binary())
            requests, connections = decode_columns(known)
        requests, ahead = _in_time(requests, "completed_at", read_at_us)
        connections, also_ahead = _in_time(connections, "closed_at", read_at_us)
        ahead += also_ahead
        usable = len(requests) + len(connections)
        return cls(requests, connections, total - newer - ahead - usable, newer, ahead)


def _of_known_version(values: Any) -> tuple[Any, int]:
    """Return the values of known versions, and the number of values of newer versions."""
    first = pc.binary_slice(values, 0, 1)
    # An empty value sorts before every version; it is malformed, not newer.
    is_newer = pc.greater(first, pa.scalar(bytes([VERSION]), values.type))
    newer = pc.sum(is_newer).as_py() or 0
    return (values.filter(pc.invert(is_newer)) if newer else values), newer


def _is_valid(value: bytes) -> bool:
    try:
        return encode(decode(value)) == value  # differs for text that is not valid UTF-8
    except WireFormatError:
        return False


def _in_time(records: Any, column: str, read_at_us: int) -> tuple[Any, int]:
    """Return the valid records up to the time limit, and the number of valid records beyond it."""
    time = microseconds(records, column)
    sample: NDArray[np.uint32] = records["sample_ppm"].to_numpy()
    possible = (time >= 0) & (sample > 0) & (sample <= SAMPLE_ALL)
    ahead = possible & (time > read_at_us + AHEAD_SECONDS_MAX * _SECOND_US)
    good = possible & ~ahead
    return (records if good.all() else records.filter(pa.array(good))), int(ahead.sum())


def microseconds(records: Any, column: str) -> NDArray[np.int64]:
    """Return a column of timestamps as microseconds since the epoch."""
    times: NDArray[np.int64] = records[column].cast(pa.int64()).to_numpy()
    return times
