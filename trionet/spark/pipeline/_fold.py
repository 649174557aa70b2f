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
    NO_BROKER,
    NO_OFFSET,
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
#: Records further in the future come from a broker with a wrong clock. Their minutes would be open
#: until then, so they are only counted.
AHEAD_SECONDS_MAX: Final = 3600
#: Older records come from a wrong clock, too, unless the topic keeps its records for longer than by
#: default: a week, in segments of a week. They are only counted.
AGE_SECONDS_MAX: Final = 30 * 24 * 3600

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
        out_of_time: a row for each record whose time is too far in the future or in the past: the
            node id, and the time in microseconds after that of reading, negative if before.
        places: the index in the values of each decoded one, which the column ``row`` counts.
    """

    requests: Any
    connections: Any
    malformed: int
    newer: int
    out_of_time: Numbers
    places: Numbers

    @classmethod
    def read(
        cls, values: Any, read_at_us: int, age_max_us: int = AGE_SECONDS_MAX * _SECOND_US
    ) -> LogValues:
        """Decode the values of a request log.

        Args:
            values: a ``pyarrow.BinaryArray``; nulls count as malformed.
            read_at_us: when the values were read, in microseconds since the epoch.
            age_max_us: how long before that the time of a record may be, in microseconds.
        """
        total = len(values)
        present, places = values, np.arange(total)
        if values.null_count:
            present, places = values.drop_null(), np.flatnonzero(values.is_valid())
        # Every version of the format starts with the version byte, also future ones.
        is_newer = _is_newer(present)
        newer = int(is_newer.sum())
        if newer:
            present, places = present.filter(pa.array(~is_newer)), places[~is_newer]
        try:
            requests, connections = decode_columns(present)
        except WireFormatError:
            is_valid = np.array([_is_valid(each) for each in present.to_pylist()], bool)
            present, places = present.filter(pa.array(is_valid)), places[is_valid]
            requests, connections = decode_columns(present)
        limits = (read_at_us, age_max_us)
        requests, others = _in_time(requests, "completed_at", limits, 1)
        connections, more = _in_time(connections, "closed_at", limits, SAMPLE_ALL)
        out_of_time = np.concatenate([others, more])
        records = len(requests) + len(connections) + len(out_of_time)
        malformed = total - newer - records
        return cls(requests, connections, malformed, newer, out_of_time, places)


def _is_newer(values: Any) -> NDArray[np.bool_]:
    """Return which values are of newer versions."""
    first = pc.binary_slice(values, 0, 1)
    # An empty value sorts before every version; it is malformed, not newer.
    found = pc.greater(first, pa.scalar(bytes([VERSION]), values.type))
    is_newer: NDArray[np.bool_] = found.to_numpy(zero_copy_only=False)
    return is_newer


def _is_valid(value: bytes) -> bool:
    try:
        return encode(decode(value)) == value  # differs for text that is not valid UTF-8
    except WireFormatError:
        return False


def _in_time(
    records: Any, column: str, limits: tuple[int, int], sample_min: int
) -> tuple[Any, Numbers]:
    """Return the valid records within the limits of time, and :attr:`LogValues.out_of_time`.

    Args:
        records: the records.
        column: the column of times.
        limits: when the values were read, in microseconds since the epoch, and the maximum age.
        sample_min: the lowest sampling rate, in millionths: connections are never sampled.
    """
    read_at_us, age_max_us = limits
    time = microseconds(records, column)
    sample: NDArray[np.uint32] = records["sample_ppm"].to_numpy()
    possible = (time >= 0) & (sample >= sample_min) & (sample <= SAMPLE_ALL)
    after = np.where(possible, time - read_at_us, 0)
    good = possible & (after <= AHEAD_SECONDS_MAX * _SECOND_US) & (after >= -age_max_us)
    if good.all():
        return records, np.zeros((0, 2), np.int64)
    is_out = possible & ~good
    out_of_time = np.stack([_nodes(records)[is_out], after[is_out]], axis=1)
    return records.filter(pa.array(good)), out_of_time


def _nodes(records: Any) -> Numbers:
    nodes: Numbers = records["node_id"].to_numpy().astype(np.int64)
    return nodes


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


def folded(batches: Iterable[Any], age_max_us: int = AGE_SECONDS_MAX * _SECOND_US) -> Iterator[Any]:
    """Yield the records of one task, folded into merged rows of sums.

    Args:
        batches: Arrow batches with the columns ``value``, ``partition``, ``offset`` and
            ``read_at``.
        age_max_us: how old a record may be when it is read, in microseconds.
    """
    kept: list[Any] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        kept += fold(batch, age_max_us)
        if sum(each.num_rows for each in kept) > ROWS_MAX:
            kept = merged(kept)
            if sum(each.num_rows for each in kept) > ROWS_MAX // 2:
                yield from kept
                kept = []
    yield from merged(kept)


def fold(batch: Any, age_max_us: int) -> Iterator[Any]:
    """Yield the rows of sums of one batch, with one row per kind, partition and key."""
    partitions = batch["partition"].to_numpy()
    read_at_us = int(batch["read_at"].cast(pa.int64())[0].as_py())
    for partition in np.unique(partitions):
        of_it = partitions == partition
        part = batch if of_it.all() else batch.filter(pa.array(of_it))
        log = LogValues.read(part["value"], read_at_us, age_max_us)
        yield from _intake(int(partition), log, part["offset"].to_numpy(), read_at_us)
        if len(log.requests):
            yield from _of_requests(log.requests)
        if len(log.connections):
            yield _closes(log.connections)


def _intake(partition: int, log: LogValues, offsets: Numbers, read_at_us: int) -> Iterator[Any]:
    """Yield the rows of ``INTAKE``: those of records by their minutes, and those of the others.

    Args:
        partition: the partition of all values.
        log: the values.
        offsets: their offsets.
        read_at_us: when they were read, in microseconds since the epoch.
    """
    if len(log.requests) + len(log.connections):
        yield _intake_of_minutes(partition, log, offsets, read_at_us)
    node, after = log.out_of_time.T
    zeros = np.zeros(len(node), np.int64)
    sums = np.column_stack([*[zeros] * 4, after > 0, after < 0])
    maxima = np.column_stack([zeros - 1, zeros + read_at_us, after, *[zeros + NO_OFFSET] * 2])
    # This row is there also if all values are records, without any number.
    sums = np.append(sums, [[0, 0, log.malformed, log.newer, 0, 0]], axis=0)
    maxima = np.append(maxima, [[-1, read_at_us, 0, NO_OFFSET, NO_OFFSET]], axis=0)
    node = np.append(node, NO_BROKER)
    groups = Groups.by([node])
    keys = _intake_keys(partition, node[groups.first], np.full(len(groups), -1))
    yield rows(INTAKE, keys, groups.sums(sums), groups.maxima(maxima))


def _intake_of_minutes(partition: int, log: LogValues, offsets: Numbers, read_at_us: int) -> Any:
    parts = ((log.requests, "completed_at"), (log.connections, "closed_at"))
    node = np.concatenate([_nodes(records) for records, _ in parts])
    time = np.concatenate([microseconds(*part) for part in parts])
    row = np.concatenate([records["row"].to_numpy() for records, _ in parts])
    offset = offsets[log.places[row]]
    is_request = np.arange(len(node)) < len(log.requests)
    window = time // MINUTE_US
    groups = Groups.by([node, window])
    read = groups.sums(np.column_stack([is_request, ~is_request]))
    latest = groups.maxima(np.column_stack([time, offset, -offset]))
    zeros = np.zeros(len(groups), np.int64)
    keys = _intake_keys(partition, node[groups.first], window[groups.first])
    sums = np.column_stack([read, *[zeros] * 4])
    maxima = np.column_stack([latest[:, 0], zeros + read_at_us, zeros, latest[:, 1:]])
    return rows(INTAKE, keys, sums, maxima)


def _intake_keys(partition: int, node: Numbers, window: Numbers) -> dict[str, Numbers]:
    return {"partition": np.full(len(node), partition), "node_id": node, "window": window}


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
