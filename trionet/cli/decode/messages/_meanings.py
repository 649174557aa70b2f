"""Looks up what numbers mean, such as error codes and timestamps, by field name."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from trionet.protocol import api_keys, error_codes

from ._tree import Meant, Tree

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

#: The timestamp types, keyed by bit 3 of the attributes of batches and messages.
TIMESTAMP_TYPES: Final = {0: "CREATE_TIME", 1: "LOG_APPEND_TIME"}

#: The timestamp fields whose name does not contain ``timestamp``.
_TIMES: Final = {"log_append_time_ms", "transaction_start_time_ms"}

#: The special timestamps of Kafka's ListOffsetsRequest (KIP-734, KIP-405, KIP-1005, KIP-1023).
_SPECIAL_TIMESTAMPS: Final = {
    -1: "LATEST",
    -2: "EARLIEST",
    -3: "MAX_TIMESTAMP",
    -4: "EARLIEST_LOCAL",
    -5: "LATEST_TIERED",
    -6: "EARLIEST_PENDING_UPLOAD",
}

#: The names of numbers, keyed by struct and field, or only by field for any struct.
_NAMES: Final[dict[str, dict[int, str]]] = {
    "isolation_level": {0: "READ_UNCOMMITTED", 1: "READ_COMMITTED"},
    "ListOffsetsPartition.timestamp": _SPECIAL_TIMESTAMPS,
    "FindCoordinatorRequest.key_type": {0: "GROUP", 1: "TRANSACTION", 2: "SHARE"},
    "DescribeConfigsResource.resource_type": {
        2: "TOPIC",
        4: "BROKER",
        8: "BROKER_LOGGER",
        16: "CLIENT_METRICS",
        32: "GROUP",
    },
}
_NAMES["DescribeConfigsResult.resource_type"] = _NAMES["DescribeConfigsResource.resource_type"]
_NAMES["AlterConfigsResource.resource_type"] = _NAMES["DescribeConfigsResource.resource_type"]


def meaning(struct: str, field: str, value: int) -> Tree:
    """Return a number with its meaning, or the unchanged number if it has none."""
    if field == "error_code" or field.endswith("_error_code"):
        return Meant(value, error_codes.name_of(value))
    if field == "api_key":
        return Meant(value, api_keys.name_of(value))
    names = _NAMES.get(f"{struct}.{field}") or _NAMES.get(field, {})
    if value in names:
        return Meant(value, names[value])
    if "timestamp" in field or field in _TIMES:
        return moment(value)
    return value


def moment(milliseconds: int) -> Tree:
    """Return a timestamp with its date, or unchanged if negative (NO_TIMESTAMP) or too large."""
    if milliseconds < 0:
        return milliseconds
    try:
        when = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return milliseconds
    return Meant(milliseconds, f"{when:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03d}Z", "time")
