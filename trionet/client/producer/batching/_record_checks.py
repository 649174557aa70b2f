"""What is wrong with a record that cannot be taken.

Asked when it could not, or before many are sent: to look at every field of each record takes longer
than to take it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

#: (Kafka: Topic.MAX_NAME_LENGTH.)
TOPIC_LENGTH_MAX: Final = 249


def check_topic(topic: object) -> None:
    """No broker can be asked for such a topic; what else is wrong with a name they tell.

    Raises:
        TypeError: it is no text.
        ValueError: it is too long, or not Unicode.
    """
    if not isinstance(topic, str):
        raise TypeError(f"the topic is {_kind(topic)}, not str")
    if len(topic) > TOPIC_LENGTH_MAX:
        raise ValueError(
            f"the topic's name has {len(topic)} characters; allowed: {TOPIC_LENGTH_MAX} at most"
        )
    if not _is_unicode(topic):
        raise ValueError(f"the topic's name, {topic!a}, cannot be encoded as UTF-8")


def check_partition(partition: object) -> None:
    """No wait makes it a partition.

    Raises:
        TypeError: it is no number.
        ValueError: it is negative.
    """
    if partition is None:
        return
    if not isinstance(partition, int):
        raise TypeError(f"the partition is {_kind(partition)}, not int or None")
    if partition < 0:
        raise ValueError(f"partition {partition} is not allowed; allowed: 0 and more, or None")


def check_timestamp(what: str, timestamp: object) -> None:
    """Kafka has no time before 1970 (Kafka: ProducerRecord).

    Args:
        what: what to call it.
        timestamp: in milliseconds.

    Raises:
        TypeError: it is no whole number.
        ValueError: it is negative.
    """
    if not isinstance(timestamp, int):
        raise TypeError(f"{what} is {_kind(timestamp)}, not int: milliseconds since 1970")
    if timestamp < 0:
        raise ValueError(f"{what} is {timestamp}; allowed: 0 and more, in milliseconds since 1970")


def check_record(
    topic: object, partition: object, key: object, value: object, headers: object
) -> None:
    """Find what is wrong with a record, if it is one of these.

    Raises:
        TypeError: a field is of another type than it has to be; says which.
        ValueError: a field has no such value; says which, and what is allowed.
    """
    check_topic(topic)
    check_partition(partition)
    for what, field in (("key", key), ("value", value)):
        if field is not None and not isinstance(field, (bytes, bytearray, memoryview)):
            raise not_bytes(f"the {what}", field)
    check_headers("the headers", headers)


def not_bytes(what: str, field: object) -> TypeError:
    """Something has to be bytes, and is not."""
    hint = "; encode text, with .encode()" if isinstance(field, str) else ""
    return TypeError(f"{what} is {_kind(field)}, not bytes or None{hint}")


def check_header_column(column: Sequence[object], start: int, stop: int) -> None:
    """Look at the headers of some records.

    Raises:
        TypeError: as :func:`check_headers`.
        ValueError: as there.
    """
    for number in range(start, stop):
        headers = column[number]
        if headers and not (isinstance(headers, (tuple, list)) and all(map(_is_header, headers))):
            check_headers(f"headers {number}", headers)


def check_headers(what: str, headers: object) -> None:
    """Find what is wrong with the headers of one record; None stands for no headers.

    Args:
        what: what to call them.
        headers: names and values.

    Raises:
        TypeError: they, or one of them, are of another type than they have to be.
        ValueError: a name is not Unicode.
    """
    if headers is None:
        return
    if isinstance(headers, (str, bytes)) or not isinstance(headers, Sequence):
        raise TypeError(
            f"{what} are {_kind(headers)}, not a sequence of tuples of a name and a value"
        )
    for place, header in enumerate(headers):
        if not _is_header(header):
            raise _wrong(f"{what}, number {place}:", header)


def _is_header(header: object) -> bool:
    if not isinstance(header, tuple) or len(header) != 2:
        return False
    name, value = header
    return (
        isinstance(name, str) and (value is None or isinstance(value, bytes)) and _is_unicode(name)
    )


def _wrong(what: str, header: object) -> Exception:
    if not isinstance(header, tuple):
        return TypeError(f"{what} {_kind(header)} is not a tuple of a name and a value")
    if len(header) != 2:
        return TypeError(f"{what} a tuple of {len(header)} is not one of a name and a value")
    name, value = header
    if not isinstance(name, str):
        return TypeError(f"{what} the name is {_kind(name)}, not str")
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
