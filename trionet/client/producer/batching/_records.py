"""The records that callers pass: checks of their fields, and the columns of batch calls.

The checks raise errors that name the invalid field. They run only after an append has failed, or
before a batch call, since checking every field of a record takes longer than appending it.
"""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ...._util._raising import raise_from
from ....protocol.records._batch import Bytes
from ....protocol.records._types import Headers
from ..._argument_checks import TOPIC_LENGTH_MAX

T = TypeVar("T")


def check_topic(topic: object) -> None:
    """Reject topic names that cannot be encoded in a request; brokers do all other checks.

    Raises:
        TypeError: the topic is not a str.
        ValueError: the name is too long, or cannot be encoded as UTF-8.
    """
    if not isinstance(topic, str):
        raise TypeError(f"topic must be str, not {_kind(topic)}")
    if len(topic) > TOPIC_LENGTH_MAX:
        raise ValueError(
            f"the topic name has {len(topic)} characters; at most {TOPIC_LENGTH_MAX} are allowed"
        )
    if not _is_unicode(topic):
        raise ValueError(f"the topic name, {topic!a}, cannot be encoded as UTF-8")


def check_partition(partition: object) -> None:
    """Reject partition numbers that can never exist.

    Raises:
        TypeError: the partition is neither an int nor None.
        ValueError: the partition is negative.
    """
    if partition is None:
        return
    if not isinstance(partition, int) or isinstance(partition, bool):
        raise TypeError(f"partition must be int or None, not {_kind(partition)}")
    if partition < 0:
        raise ValueError(f"partition must be 0 or more, or None, not {partition}")


def check_timestamp(what: str, timestamp: object) -> None:
    """Reject timestamps before 1970 (Kafka: ProducerRecord).

    Args:
        what: the subject of the error message.
        timestamp: the timestamp, in milliseconds.

    Raises:
        TypeError: the timestamp is not an int.
        ValueError: the timestamp is negative.
    """
    if not isinstance(timestamp, int) or isinstance(timestamp, bool):
        raise TypeError(
            f"{what} must be int, in milliseconds since the epoch, not {_kind(timestamp)}"
        )
    if timestamp < 0:
        raise ValueError(
            f"{what} must be 0 or more, in milliseconds since the epoch, not {timestamp}"
        )


def check_record(
    topic: object, partition: object, key: object, value: object, headers: object
) -> None:
    """Raise an error that names the invalid field of a record, if any field is invalid.

    Raises:
        TypeError: a field has the wrong type.
        ValueError: a field has a value that is not allowed.
    """
    check_topic(topic)
    check_partition(partition)
    for what, field in (("key", key), ("value", value)):
        if field is not None and not isinstance(field, (bytes, bytearray, memoryview)):
            raise not_bytes(f"the {what}", field)
    check_headers("the headers", headers)


def not_bytes(what: str, field: object) -> TypeError:
    """Return the error for a field that must be bytes but is not."""
    hint = "; encode it with .encode()" if isinstance(field, str) else ""
    return TypeError(f"{what} must be bytes or None, not {_kind(field)}{hint}")


def check_header_column(column: Sequence[object], start: int, stop: int) -> None:
    """Check the headers of a range of records.

    Raises:
        TypeError, ValueError: see :func:`check_headers`.
    """
    for number in range(start, stop):
        headers = column[number]
        if headers and not (isinstance(headers, (tuple, list)) and all(map(_is_header, headers))):
            check_headers(f"headers {number}", headers)


def check_headers(what: str, headers: object) -> None:
    """Check the headers of one record; None means no headers.

    Args:
        what: the subject of the error message.
        headers: the header names and values.

    Raises:
        TypeError: the headers, or a header, have the wrong type.
        ValueError: a header name cannot be encoded as UTF-8.
    """
    if headers is None:
        return
    if isinstance(headers, (str, bytes, bytearray)) or not isinstance(headers, Sequence):
        raise TypeError(f"{what} must be a sequence of (name, value) pairs, not {_kind(headers)}")
    for place, header in enumerate(headers):
        if not _is_header(header):
            raise _wrong(f"{what}, index {place}:", header)


def _is_header(header: object) -> bool:
    if not isinstance(header, (tuple, list)) or len(header) != 2:
        return False
    name, value = header
    return (
        isinstance(name, str)
        and (value is None or isinstance(value, (bytes, bytearray, memoryview)))
        and _is_unicode(name)
    )


def _wrong(what: str, header: object) -> Exception:
    if not isinstance(header, (tuple, list)):
        return TypeError(f"{what} expected a (name, value) pair, not {_kind(header)}")
    if len(header) != 2:
        return TypeError(f"{what} expected a (name, value) pair, not {len(header)} items")
    name, value = header
    if not isinstance(name, str):
        return TypeError(f"{what} the name must be str, not {_kind(name)}")
    if not _is_unicode(name):
        return ValueError(f"{what} the name, {name!a}, cannot be encoded as UTF-8")
    return not_bytes(f"{what} the value", value)


def _is_unicode(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _kind(field: object) -> str:
    return type(field).__name__


class RecordColumns:
    """Many records, with one sequence per field.

    Args:
        values: the values; None for null.
        keys: the keys, with None for null; None if no record has a key.
        timestamps: the timestamp of each record, in milliseconds; a single number applies to all
            records.
        headers: the header names and values; None if no record has headers.

    Raises:
        ValueError: the columns differ in length.
        TypeError: a column is not a sequence.
    """

    __slots__ = ("headers", "keys", "timestamps", "values")

    def __init__(
        self,
        values: Sequence[Bytes | None],
        keys: Sequence[Bytes | None] | None,
        timestamps: int | Sequence[int],
        headers: Sequence[Headers] | None,
    ) -> None:
        self.values: list[Bytes | None] = _listed("values", values)
        self.keys: list[Bytes | None] | None = None if keys is None else _listed("keys", keys)
        self.timestamps: int | list[int] = (
            timestamps if isinstance(timestamps, int) else _listed("timestamps", timestamps)
        )
        self.headers: list[Headers] | None = (
            None if headers is None else _listed("headers", headers)
        )
        for name, column in (
            ("keys", self.keys),
            ("timestamps", self.timestamps),
            ("headers", self.headers),
        ):
            if isinstance(column, list) and len(column) != len(self.values):
                raise ValueError(
                    f"{name} has {len(column)} entries, but values has {len(self.values)};"
                    " all columns must have the same length"
                )

    def __len__(self) -> int:
        return len(self.values)

    def row(self, number: int) -> tuple[int, Bytes | None, Bytes | None, Headers]:
        """Return the timestamp, key, value and headers of one record."""
        timestamps = self.timestamps
        return (
            timestamps if isinstance(timestamps, int) else timestamps[number],
            None if self.keys is None else self.keys[number],
            self.values[number],
            () if self.headers is None else self.headers[number],
        )

    def check(self, start: int, stop: int) -> int:
        """Check a range of records before any record is sent.

        Returns:
            The length of the longest key plus the length of the longest value, in bytes.

        Raises:
            TypeError: a key or a value is neither bytes nor None, a timestamp is not an int, or
                headers are not names and values; the message names the record.
            ValueError: a timestamp is negative, or a header name cannot be encoded as UTF-8; the
                message names the record.
        """
        if isinstance(self.timestamps, int):
            check_timestamp("timestamps", self.timestamps)
        else:
            _check_timestamps(self.timestamps, start, stop)
        if self.headers is not None:
            check_header_column(self.headers, start, stop)
        longest = _longest("value", self.values, start, stop)
        if self.keys is not None:
            longest += _longest("key", self.keys, start, stop)
        return longest


def _listed(name: str, column: Sequence[T]) -> list[T]:
    if isinstance(column, list):
        return column
    try:
        return list(column)
    except TypeError as cause:
        kind = type(column).__name__
        error = TypeError(f"{name} must be a sequence with one entry per record, not {kind}")
        raise_from(error, cause)


def _check_timestamps(column: Sequence[object], start: int, stop: int) -> None:
    number = start
    while number < stop:
        each = column[number]
        if isinstance(each, bool) or not isinstance(each, int) or each < 0:
            check_timestamp(f"timestamp {number}", each)
        number += 1


def _longest(what: str, column: list[Bytes | None], start: int, stop: int) -> int:
    longest = 0
    number = start
    while number < stop:
        each: object = column[number]
        if each is not None:
            if isinstance(each, (bytes, bytearray)):
                length = len(each)
            elif isinstance(each, memoryview):
                length = each.nbytes
            else:
                raise not_bytes(f"{what} {number}", each)
            if length > longest:  # noqa: PLR1730  # a call of max() for each takes longer
                longest = length
        number += 1
    return longest
