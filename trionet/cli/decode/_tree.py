"""Trees of decoded values: plain Python values, numbers with a meaning, and bytes.

The values come from untrusted input and are not safe to print on a terminal. The module ``_output``
escapes them.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple, TypeAlias

from trionet.protocol import api_keys, error_codes


class Meant(NamedTuple):
    """A number with a meaning.

    Attributes:
        value: the encoded number.
        meaning: the meaning, such as ``NOT_LEADER_OR_FOLLOWER``.
        kind: the kind of the meaning: ``name`` or ``time``.
    """

    value: int
    meaning: str
    kind: str = "name"


class Blob(NamedTuple):
    """Bytes without a known structure."""

    data: bytes


#: The value of a field, where a dict is a struct with the fields in order.
Tree: TypeAlias = "bool | int | float | str | Meant | Blob | list[Tree] | dict[str, Tree] | None"


#: The name of the field that describes the problem of a batch or message.
PROBLEM: Final = "problem"


class Problem(NamedTuple):
    """A problem in an entry.

    Attributes:
        text: a description of the problem and, if there is one, the remedy.
        offset: the position of the problem in the input.
    """

    text: str
    offset: int


def first_problem(tree: Tree) -> str:
    """Return the first problem in a tree with its path, or an empty string if there is none."""
    path = _path_to_problem(tree)
    return path.removeprefix(".")


def _path_to_problem(tree: Tree) -> str:
    match tree:
        case dict():
            if isinstance(text := tree.get(PROBLEM), str):
                return f": {text}"
            items = [(f".{name}", value) for name, value in tree.items()]
        case list():
            items = [(f"[{index}]", item) for index, item in enumerate(tree)]
        case _:
            return ""
    for step, value in items:
        if isinstance(value, (dict, list)) and (path := _path_to_problem(value)):
            return f"{step}{path}"
    return ""


class Entry(NamedTuple):
    """A frame or a record batch, as far as it could be decoded.

    Attributes:
        number: the index among the entries of all inputs, from 1.
        source: the name of the input.
        offset: the position of the entry in the input, including the size prefix.
        size: the size in bytes, including the size prefix.
        kind: ``request``, ``response``, ``batch``, ``message`` (of Jafka), or ``unknown``.
        about: the API, version, and other properties that are not fields.
        header: the fields of the header; None if absent or undecodable.
        body: the fields of the message; None if no field could be decoded.
        problem: the problem; None if there is none.
    """

    number: int
    source: str
    offset: int
    size: int
    kind: str
    about: dict[str, Tree]
    header: dict[str, Tree] | None
    body: dict[str, Tree] | None
    problem: Problem | None


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
