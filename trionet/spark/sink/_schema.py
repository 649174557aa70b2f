"""The columns that a sink accepts (the connector: KafkaWriter.validateQuery)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...errors import TrionetError

HEADERS_TYPE: Final = "array<struct<key:string,value:binary>>"
#: The types that each column may have; other columns are ignored.
COLUMN_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "topic": ("string",),
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "headers": (HEADERS_TYPE,),
    "partition": ("int",),
}

_OF_BYTES: Final = "for example with to_json(struct(*)) or cast(... as string)"
#: How a column gets one of its types.
_CONVERSIONS: Final[Mapping[str, str]] = {
    "topic": "for example with cast(... as string)",
    "key": _OF_BYTES,
    "value": _OF_BYTES,
    "headers": "for example with array(struct('name' as key, binary('text') as value))",
    "partition": "for example with cast(... as int)",
}


class SinkColumnsError(TrionetError):
    """Raised when the sink cannot write a DataFrame, for example because a column is missing."""


def check_columns(types: Mapping[str, str], topic: str | None) -> None:
    """Check the columns of a DataFrame before any of its rows are written.

    Args:
        types: the type of each column, as Spark's ``simpleString``.
        topic: the value of the ``topic`` option.

    Raises:
        SinkColumnsError: a column is missing or has the wrong type.
    """
    if topic is None and "topic" not in types:
        raise SinkColumnsError(
            "topic option required when no 'topic' attribute is present; set the topic option, or"
            " add a topic column"
        )
    if "value" not in types:
        raise SinkColumnsError(
            f"required attribute 'value' not found; add a value column, {_CONVERSIONS['value']};"
            f" the columns are {', '.join(types)}"
        )
    for name, allowed in COLUMN_TYPES.items():
        if name in types and types[name] not in allowed and not (name == "topic" and topic):
            raise SinkColumnsError(
                f"{name} attribute unsupported type {types[name]}. {name} must be a(n)"
                f" {' or '.join(allowed)}; convert it, {_CONVERSIONS[name]}"
            )
