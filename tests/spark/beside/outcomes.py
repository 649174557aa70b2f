"""What came of a case, as a line of text that is the same wherever it ran."""

from __future__ import annotations

import datetime
import json
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from trionet.errors import ApiError
from trionet.spark._offset_limits import DataLossError, OffsetsMismatchError

Row = Mapping[str, Any]

#: The kind of each error of the connector, and of ours.
KINDS: Final[Mapping[str, str]] = {
    "AnalysisException": "mistake",
    "AssertionError": "mistake",
    "ConfigException": "mistake",
    "IllegalArgumentException": "mistake",
    "InvalidGroupIdException": "mistake",
    "InvalidTopicException": "mistake",
    "JsonMappingException": "mistake",
    "KafkaException": "mistake",
    "MatchError": "mistake",
    "NoSuchElementException": "mistake",
    "NumberFormatException": "mistake",
    "ParseException": "mistake",
    "PatternSyntaxException": "mistake",
    "ConfigError": "mistake",
    "SinkColumnsError": "mistake",
    # The connector has one class for offsets that do not match, for those that are lost, and for a
    # row without a topic, but none of its own for a time without a match.
    "IllegalStateException": "state",
    "KafkaIllegalArgumentException": "state",
    "KafkaIllegalStateException": "state",
    "OffsetOutOfRangeException": "state",
    "OffsetsMismatchError": "state",
    "DataLossError": "state",
    "OffsetsMismatchError[KAFKA_NO_OFFSET_FOR_TIMESTAMP]": "mistake",
    # Topics and partitions that do not exist, of which a producer learns by waiting.
    "ApiError": "missing",
    "MetadataTimeoutError": "missing",
    "TimeoutException": "missing",
    "UnknownTopicOrPartitionException": "missing",
    "NullTopicError": "state",
}


def read(rows: Sequence[Row], tasks: int) -> str:
    """The rows of a batch: the offsets of each partition, the tasks, and a sum over all columns.

    Without rows the tasks do not count: Spark has one for a source in Python that has planned none.
    """
    if not rows:
        return "nothing"
    return f"{offsets(rows)} in {tasks} tasks, {digest(rows)}"


def offsets(rows: Iterable[Row], topic: str = "") -> str:
    """The offsets of rows, such as ``t-0: 0-4 6, t-1: 0``; ``topic`` is shown as t."""
    names = sorted((each["topic"], each["partition"], each["offset"]) for each in rows)
    return ", ".join(
        f"{'t' if name == topic else name}-{partition}: {_ranges([each[2] for each in group])}"
        for (name, partition), group in groupby(names, key=lambda each: each[:2])
    )


def _ranges(numbers: Sequence[int]) -> str:
    """Numbers with their neighbours joined; one that is there twice stands there twice."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][-1] + 1:
            found[-1][1:] = [number]
        else:
            found.append([number])
    return " ".join("-".join(map(str, each)) for each in found)


def digest(rows: Iterable[Row]) -> str:
    """A sum over all columns of all rows, in whatever order they come."""
    lines = sorted(json.dumps(_plain(each), sort_keys=True) for each in rows)
    return f"{zlib.crc32(chr(10).join(lines).encode()):08x}"


def _plain(value: object) -> object:
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, datetime.datetime):
        return round(value.timestamp() * 1000)
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def written(records: Mapping[str, Sequence[Any]]) -> str:
    """The records of each topic, with their partitions."""
    lines: list[str] = []
    for topic, found in records.items():
        for each in found:
            headers = "".join(f" {name}={_text(value)}" for name, value in each.headers)
            key, value = _text(each.key), _text(each.value)
            # Without a key, the load decides.
            partition = "?" if each.key is None else each.partition
            lines.append(f"{topic}-{partition} {key}={value}{headers}")
    return ", ".join(sorted(lines)) or "nothing"


def _text(value: bytes | None) -> str:
    return "null" if value is None else value.decode()


def error_of(error: BaseException) -> str:
    """An error of ours, by its class and condition."""
    if isinstance(error, DataLossError):
        return f"DataLossError[{error.condition.removeprefix('KAFKA_DATA_LOSS.')}]"
    if isinstance(error, OffsetsMismatchError):
        return f"OffsetsMismatchError[{error.condition}]"
    if isinstance(error, ApiError):
        return "ApiError"
    return type(error).__name__


_JAVA: Final = re.compile(
    r"(?:^|Caused by: |: )(?:[a-z_]\w*\.)+([A-Z]\w*(?:Exception|Error))\b", re.MULTILINE
)
_OURS: Final = re.compile(
    r"^trionet\.[\w.]*\b([A-Z]\w*Error): (?:\[(KAFKA_DATA_LOSS\.)?([A-Z_]+)\])?", re.MULTILINE
)
#: These only say that something else has failed.
_WRAPPERS: Final = frozenset(
    {
        "CompletionException",
        "ExecutionException",
        "Py4JJavaError",
        "PythonException",
        "PythonStreamingSourceRunnerException",
        "SparkException",
        "StreamingQueryException",
        "UndeclaredThrowableException",
    }
)


def error_of_spark(text: str) -> str:
    """The innermost error that Spark tells: ours as :func:`error_of` has it, else its class."""
    if ours := _OURS.findall(text):
        name, is_loss, condition = ours[-1]
        if is_loss:
            return f"DataLossError[{condition}]"
        return f"{name}[{condition}]" if condition else name
    names = [name for name in _JAVA.findall(text) if name not in _WRAPPERS]
    return names[-1] if names else text.strip().splitlines()[0][:60]


def are_equal(theirs: str, ours: str) -> bool:
    """Whether two outcomes are the same to a user: the same rows, or errors of one kind."""
    if theirs.startswith("error: ") and ours.startswith("error: "):
        return _kind(theirs) == _kind(ours)
    return theirs == ours


def _kind(outcome: str) -> str:
    name = outcome.removeprefix("error: ")
    class_name = name.partition("[")[0]
    return KINDS.get(name) or KINDS.get(class_name, class_name)
