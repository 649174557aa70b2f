"""Folds request-log records into rows of sums, thousands of records at a time.

Unusable values of a log are counted, and do not fail the job.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from trionet.errors import WireFormatError
from trionet.protocol import error_codes
from trionet.protocol.request_log import CLOSED, SAMPLE_ALL, VERSION, decode, encode
from trionet.protocol.request_log_columns import decode_columns

from ._partials import (
    CLOSES,
    ERRORS,
    INTAKE,
    PHASES,
    REQUESTS,
    TALKERS,
    TIMES,
    Groups,
    Numbers,
    cell_numbers,
    counted,
    merged,
    rows,
    taken,
)
from .histogram import BUCKETS_MAX, bucket

_SECOND_US: Final = 1_000_000
#: Records further in the future come from a broker with a wrong clock. They would advance the
#: watermark and close all earlier minutes, so they are only counted.
AHEAD_SECONDS_MAX: Final = 3600

#: The APIs whose remote time is a wait that the client asks for: for records (Fetch, ShareFetch),
#: for the other members of a group (JoinGroup), or for its leader (SyncGroup). The remote time of
#: other APIs, such as Produce, is spent on their work.
LONG_POLLS: Final = (1, 11, 14, 78)
#: Errors that are a step of the protocol: the client learns what to do next, and nothing has
#: failed. The APIs of each for which that holds; all, if none are listed.
EXPECTED_ERRORS: Final[Mapping[int, Sequence[int]]] = {
    error_codes.MEMBER_ID_REQUIRED: (11,),  # the first JoinGroup gets its member id (KIP-394)
    # Members hear from these that they must join again.
    error_codes.REBALANCE_IN_PROGRESS: (8, 11, 12, 14, 28),
    # A client offers its highest version first, and learns the broker's (KIP-511).
    error_codes.UNSUPPORTED_VERSION: (18,),
    # Fetch sessions are a cache: after an eviction the client begins another (KIP-227, KIP-932).
    error_codes.FETCH_SESSION_ID_NOT_FOUND: (),
    error_codes.INVALID_FETCH_SESSION_EPOCH: (),
    error_codes.SHARE_SESSION_NOT_FOUND: (),
    error_codes.INVALID_SHARE_SESSION_EPOCH: (),
    # The markers of the previous transaction are being written: the client asks again.
    error_codes.CONCURRENT_TRANSACTIONS: (),
    # The member has not heard its new epoch yet, and asks again with it (KIP-848).
    error_codes.STALE_MEMBER_EPOCH: (),
    error_codes.ELECTION_NOT_NEEDED: (),  # the preferred replica leads already
}


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
        requests, ahead = _in_time(requests, "completed_at", read_at_us, 1)
        connections, also_ahead = _in_time(connections, "closed_at", read_at_us, SAMPLE_ALL)
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


def _in_time(records: Any, column: str, read_at_us: int, sample_min: int) -> tuple[Any, int]:
    """Return the valid records up to the time limit, and the number of valid records beyond it.

    Args:
        records: the records.
        column: the column of times.
        read_at_us: when the values were read, in microseconds since the epoch.
        sample_min: the lowest sampling rate, in millionths: connections are never sampled.
    """
    time = microseconds(records, column)
    sample: NDArray[np.uint32] = records["sample_ppm"].to_numpy()
    possible = (time >= 0) & (sample >= sample_min) & (sample <= SAMPLE_ALL)
    ahead = possible & (time > read_at_us + AHEAD_SECONDS_MAX * _SECOND_US)
    good = possible & ~ahead
    return (records if good.all() else records.filter(pa.array(good))), int(ahead.sum())


def microseconds(records: Any, column: str) -> NDArray[np.int64]:
    """Return a column of timestamps as microseconds since the epoch."""
    times: NDArray[np.int64] = records[column].cast(pa.int64()).to_numpy()
    return times


MINUTE_US: Final = 60_000_000
#: A task with more rows of sums than this merges the rows, and emits them if merging does not help.
#: This bounds the memory of a task.
ROWS_MAX: Final = 50_000
#: Larger numbers of a connection are capped at this value, so that sums fit into 64 bits: 9 years
#: in microseconds, or 281 TB.
CONNECTION_NUMBER_MAX: Final = 1 << 48


def folded(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the records of one task, folded into merged rows of sums.

    Args:
        batches: Arrow batches with the columns ``value``, ``partition`` and ``read_at``.
    """
    kept: list[Any] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        kept += fold(batch)
        if sum(each.num_rows for each in kept) > ROWS_MAX:
            kept = merged(kept)
            if sum(each.num_rows for each in kept) > ROWS_MAX // 2:
                yield from kept
                kept = []
    yield from merged(kept)


def fold(batch: Any) -> Iterator[Any]:
    """Yield the rows of sums of one batch, with one row per kind, partition and key."""
    partitions = batch["partition"].to_numpy()
    read_at = batch["read_at"].cast(pa.int64()).to_numpy()
    for partition in np.unique(partitions):
        of_it = partitions == partition
        values = batch["value"]
        log = LogValues.read(
            values if of_it.all() else values.filter(pa.array(of_it)), int(read_at[0])
        )
        yield _intake(int(partition), log)
        if len(log.requests):
            yield from _of_requests(log.requests)
        if len(log.connections):
            yield _closes(log.connections)


def _intake(partition: int, log: LogValues) -> Any:
    times = [
        microseconds(log.requests, "completed_at"),
        microseconds(log.connections, "closed_at"),
    ]
    latest = max((int(each.max()) for each in times if len(each)), default=-1)
    read = [len(log.requests), len(log.connections), log.malformed, log.newer, log.ahead]
    keys = {"partition": np.array([partition]), "window": np.array([-1])}
    return rows(INTAKE, keys, np.array([read]), np.array([[latest]]))


def _of_requests(requests: Any) -> Iterator[Any]:
    def column(name: str) -> Numbers:
        return requests[name].to_numpy().astype(np.int64)  # type: ignore[no-any-return]

    window = microseconds(requests, "completed_at") // MINUTE_US
    times = _times({phase: column(f"{phase}_us") for phase in PHASES}, column("api_key"))
    sizes = np.stack([column("request_bytes"), column("response_bytes")], axis=1)
    end, error_code = column("end"), column("error_code")
    ones, zeros = np.ones(len(window), np.int64), np.zeros(len(window), np.int64)
    is_error = (error_code != 0) | (end >= CLOSED)
    has_failed = is_error & ~_is_expected(column("api_key"), end, error_code)
    throttle = times[:, TIMES.index("throttle")]
    keys: dict[str, Any] = {
        "window": window,
        "api_key": column("api_key"),
        "client_id": requests["client_id"],
        "listener": requests["listener"],
        "sample_ppm": column("sample_ppm"),
    }
    groups = Groups.by(list(keys.values()))
    sums = np.column_stack([ones, zeros, sizes, is_error, throttle > 0, times, has_failed])
    cells = bucket(times) + np.arange(len(TIMES)) * BUCKETS_MAX
    found, counts = counted(cell_numbers(groups.of_row[:, None], cells).reshape(-1))
    yield rows(
        REQUESTS, taken(keys, groups.first), groups.sums(sums), groups.maxima(times), found, counts
    )

    of_clients = {name: each for name, each in keys.items() if name != "api_key"}
    of_clients["principal"] = requests["principal"]
    groups = Groups.by(list(of_clients.values()))
    both = sizes.sum(axis=1)
    total = times[:, TIMES.index("total")]
    sums = np.column_stack([ones, zeros, both, total, throttle > 0, throttle])
    yield rows(
        TALKERS, taken(of_clients, groups.first), groups.sums(sums), groups.maxima(sums[:, 5:])
    )

    if is_error.any():
        at = np.flatnonzero(is_error)
        of_errors = {**taken(keys, at), "end": end[at], "error_code": error_code[at]}
        groups = Groups.by(list(of_errors.values()))
        sums = np.column_stack([ones, zeros])[at]
        yield rows(
            ERRORS,
            taken(of_errors, groups.first),
            groups.sums(sums),
            np.zeros((len(groups), 0), np.int64),
        )


def _times(phases: dict[str, Numbers], api_key: Numbers) -> Numbers:
    """Return the times of each request, in the order of ``TIMES``."""
    waiting = np.where(np.isin(api_key, LONG_POLLS), phases["remote"], 0)
    broker = np.maximum(phases["total"] - waiting, 0)
    return np.stack([*phases.values(), broker], axis=1)


def _is_expected(api_key: Numbers, end: Numbers, error_code: Numbers) -> NDArray[np.bool_]:
    found = np.zeros(len(end), bool)
    for code, apis in EXPECTED_ERRORS.items():
        of_api = np.isin(api_key, apis) if apis else np.True_
        found |= (error_code == code) & of_api
    return found & (end < CLOSED)


def _closes(connections: Any) -> Any:
    def column(name: str) -> Numbers:
        numbers = connections[name].to_numpy().astype(np.uint64)
        kept: Numbers = np.minimum(numbers, np.uint64(CONNECTION_NUMBER_MAX)).astype(np.int64)
        return kept

    keys = {
        "window": microseconds(connections, "closed_at") // MINUTE_US,
        "listener": connections["listener"],
        "client_id": connections["client_id"],
        "reason": connections["reason"],
        "sample_ppm": column("sample_ppm"),
    }
    groups = Groups.by(list(keys.values()))
    ones = np.ones(len(connections), np.int64)
    names = ("requests", "bytes_received", "bytes_sent", "open_us")
    sums = np.column_stack([ones, 0 * ones, *map(column, names)])
    return rows(CLOSES, taken(keys, groups.first), groups.sums(sums), groups.maxima(sums[:, 5:]))
