"""Parses and formats partitions (``orders:0,2``), and parses offsets in files."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from trionet.client._topic_partition import TopicPartition
from trionet.errors import ConfigError

from ._values import INT32_MAX, INT64_MAX, is_natural

#: The maximum size of an offsets file in bytes.
FILE_BYTES_MAX: Final = 64 * 1024 * 1024
_FIELDS: Final = ("topic", "partition", "offset")
_EXPECTED: Final = "expected rows of topic, partition and offset, as CSV or as JSON with these keys"


def parse_topic(text: str) -> tuple[str, list[int] | None]:
    """Parse ``orders:0,2`` into a topic and its selected partitions, or None for all partitions.

    Raises:
        ConfigError: the text is not of this form.
    """
    topic, colon, numbers = text.partition(":")
    if not topic:
        raise ConfigError(f"no topic in {text!r}: expected TOPIC or TOPIC:PARTITION,...")
    return topic, parse_partitions([numbers]) if colon else None


def parse_partitions(texts: Iterable[str]) -> list[int]:
    """Parse comma-separated partition numbers into a sorted list without duplicates.

    Raises:
        ConfigError: a text is not a partition number.
    """
    words = [word.strip() for text in texts for word in text.split(",")]
    for word in words:
        if not is_natural(word, INT32_MAX):
            raise ConfigError(
                f"invalid partition {word!r}: expected numbers from 0 to {INT32_MAX}, separated "
                "by commas"
            )
    return sorted({int(word) for word in words})


def assignment_text(assignment: Iterable[TopicPartition]) -> str:
    """Format an assignment, such as ``orders:0-2,5 payments:1``."""
    return " ".join(
        f"{topic}:{_ranges([key.partition for key in keys])}"
        for topic, keys in groupby(sorted(assignment), key=lambda key: key.topic)
    )


def _ranges(numbers: Sequence[int]) -> str:
    """Format sorted numbers, with runs of consecutive numbers as ranges."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(f"{a}-{b}" if a != b else str(a) for a, b in ranges)


def read_offsets(name: str) -> dict[TopicPartition, int]:
    """Read partition offsets from a file, or from standard input if ``name`` is ``-``.

    Each row consists of topic, partition and offset, separated by commas or whitespace. A header
    may name additional columns, as in the output of ``--format csv``. Alternatively, the file may
    contain a JSON array of objects with these keys, or an object with such an array under
    ``partitions``.

    Raises:
        ConfigError: the file cannot be read or a row is invalid; the message names the row.
    """
    text = _read(name)
    if text.lstrip()[:1] in {"[", "{"}:
        return _of_json(name, text)
    offsets: dict[TopicPartition, int] = {}
    columns: list[int] = [0, 1, 2]
    for number, line in enumerate(text.splitlines(), 1):
        words = next(csv.reader([line])) if "," in line else line.split()
        if not words or line.startswith("#"):
            continue
        if not offsets and set(_FIELDS) <= {word.strip().lower() for word in words}:
            header = [word.strip().lower() for word in words]
            columns = [header.index(field) for field in _FIELDS]
            continue
        _add(offsets, [words[n] for n in columns if n < len(words)], f"{name}:{number}")
    if not offsets:
        raise ConfigError(f"{name} contains no offsets; {_EXPECTED}")
    return offsets


def _read(name: str) -> str:
    try:
        if name == "-":
            if sys.stdin is None:
                raise ConfigError("standard input is closed")
            data = sys.stdin.buffer.read(FILE_BYTES_MAX + 1)
        else:
            with Path(name).open("rb") as file:
                data = file.read(FILE_BYTES_MAX + 1)
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"cannot read {name}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise ConfigError(f"{name} is not valid UTF-8; {_EXPECTED}") from None
    if len(data) > FILE_BYTES_MAX:
        raise ConfigError(f"{name} is larger than {FILE_BYTES_MAX} bytes; {_EXPECTED}")
    return text


def _of_json(name: str, text: str) -> dict[TopicPartition, int]:
    """Parse rows from a JSON array, or from an object's ``partitions`` array, as in Kafka."""
    try:
        document: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{name} is not valid JSON: {error}") from error
    rows = document.get("partitions") if isinstance(document, Mapping) else document
    if not isinstance(rows, list):
        raise ConfigError(f"{name} contains no rows; {_EXPECTED}")
    offsets: dict[TopicPartition, int] = {}
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Mapping):
            raise ConfigError(f"{name}, row {number}: not an object; {_EXPECTED}")
        words = [str(row[field]) for field in _FIELDS if row.get(field) is not None]
        _add(offsets, words, f"{name}, row {number}")
    return offsets


def _add(offsets: dict[TopicPartition, int], words: list[str], where: str) -> None:
    try:
        topic, partition, offset = words
        key = TopicPartition(topic.strip(), int(partition))
        value = int(offset)
    except ValueError:
        raise ConfigError(f"{where}: invalid row {','.join(words)!r}; {_EXPECTED}") from None
    if not 0 <= key.partition <= INT32_MAX or not key.topic:
        raise ConfigError(f"{where}: invalid partition {key}; {_EXPECTED}")
    if not -INT64_MAX <= value <= INT64_MAX:
        raise ConfigError(f"{where}: invalid offset {value}; {_EXPECTED}")
    if key in offsets:
        raise ConfigError(f"{where}: duplicate partition {key}")
    offsets[key] = value
