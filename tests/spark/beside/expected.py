"""What each case gives: the connector's outcome as stored, and what is other here, and why."""

from __future__ import annotations

import json
import textwrap
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from spark.beside import outcomes
from spark.beside.cases import CASES

CONNECTOR: Final = "kafka"
STORED: Final = Path(__file__).with_name("connector.toml")
_COLUMNS: Final = 100


class Other(NamedTuple):
    """What trionet gives where it is not what the connector gives.

    Attributes:
        outcome: what it gives.
        reason: a key of :data:`REASONS`.
    """

    outcome: str
    reason: str


#: The differences from the connector, and why, as the migration page says it.
REASONS: Final[Mapping[str, str]] = {
    r"`subscribePattern` with `\G`, `\X`, `\b{g}`, or classes of scripts and blocks that ASCII has"
    r" no characters of, such as `\p{InGreek}`": "an error that names the construct",
    "an option that resembles a known one, or is a setting without `kafka.`": (
        "an error, where the connector ignores it and reads or writes something else than was meant"
    ),
    "`startingOffsets` and other JSON that names a topic or a partition twice": (
        "an error, where the connector takes the last"
    ),
    "JSON with a fraction such as `1.5`, with `null` in place of a number, with a number beyond 64"
    " bits, or with text after it": (
        "an error, where the connector reads 1, 0 or another number, and passes over the text"
    ),
    'one word for all partitions of a topic, as `{"topicA":"earliest"}`': (
        "works here; the connector refuses it"
    ),
    "blanks around a number, a boolean or `startingOffsetsByTimestampStrategy`": (
        "are passed over; the connector refuses them in its own options"
    ),
    "a limit below 0": "an error at the start, where the connector reports a loss of data",
    "`kafka.client.dns.lookup` other than `use_all_dns_ips`, `kafka.config.providers`,"
    " `kafka.partitioner.class`": "an error that says what to do in its place",
    "`kafka.transactional.id`": (
        "an error at the start, where the tasks of the connector fail; it belongs to"
        " `delivery.guarantee=exactly-once` here"
    ),
    "a batch that is written without a save mode, or with `error`": (
        'Spark refuses it for a source in Python; `mode("append")` works in both'
    ),
    "`INSERT INTO` a table of the catalog": (
        "works here; Spark refuses it for a table of the connector"
    ),
}

(
    _SYNTAX,
    _MISSPELT,
    _TWICE,
    _NUMBERS,
    _WORD,
    _BLANKS,
    _LIMIT,
    _JVM,
    _TRANSACTIONAL,
    _MODE,
    _INSERT,
) = REASONS
_ERROR: Final = "error: ConfigError"
OURS: Final[Mapping[str, Other]] = {
    r"pattern \p{InGreek}": Other(_ERROR, _SYNTAX),
    r"pattern \Gorders": Other(_ERROR, _SYNTAX),
    r"pattern ^\Xrders$": Other(_ERROR, _SYNTAX),
    r"pattern ^orders\b{g}$": Other(_ERROR, _SYNTAX),
    "a misspelt option": Other(_ERROR, _MISSPELT),
    "a setting without kafka.": Other(_ERROR, _MISSPELT),
    "a partition twice": Other(_ERROR, _TWICE),
    "assign, a topic twice": Other(_ERROR, _TWICE),
    "assign, a fraction": Other(_ERROR, _NUMBERS),
    "assign, null": Other(_ERROR, _NUMBERS),
    "assign, text after it": Other(_ERROR, _NUMBERS),
    "an offset with a fraction": Other(_ERROR, _NUMBERS),
    "an offset that is null": Other(_ERROR, _NUMBERS),
    "an offset beyond 64 bits": Other(_ERROR, _NUMBERS),
    "text after the offsets": Other(_ERROR, _NUMBERS),
    "one word for a topic": Other("numbers-0: 0-9, numbers-1: 0-19 in 3 tasks, 2ab2ff64", _WORD),
    "blanks around minPartitions": Other(
        "numbers-0: 0-9, numbers-1: 0-19 in 4 tasks, 2ab2ff64", _BLANKS
    ),
    "blanks around maxRecordsPerPartition": Other(
        "numbers-0: 0-9, numbers-1: 0-19 in 3 tasks, 2ab2ff64", _BLANKS
    ),
    "blanks around startingTimestamp": Other(
        "numbers-0: 4-9, numbers-1: 4-19 in 3 tasks, 27a8f197", _BLANKS
    ),
    "blanks around failOnDataLoss": Other(
        "numbers-0: 0-9, numbers-1: 0-19 in 3 tasks, 2ab2ff64", _BLANKS
    ),
    "stream: a limit below 0": Other(_ERROR, _LIMIT),
    "kafka.client.dns.lookup": Other(_ERROR, _JVM),
    "kafka.config.providers": Other(_ERROR, _JVM),
    "write: kafka.partitioner.class": Other(_ERROR, _JVM),
    "write: kafka.transactional.id": Other(_ERROR, _TRANSACTIONAL),
    "mode None": Other("error: AnalysisException", _MODE),
    "mode error": Other("error: AnalysisException", _MODE),
    "INSERT INTO a table": Other("v 0", _INSERT),
    "INSERT INTO some columns": Other("v 0", _INSERT),
    "INSERT INTO with strings": Other("v 0", _INSERT),
}


def stored() -> dict[str, str]:
    """The connector's outcomes, as a run of it has given them."""
    return tomllib.loads(STORED.read_text("utf-8"))


def store(found: Mapping[str, str]) -> None:
    """Store the connector's outcomes, beside those that are stored and were not found anew."""
    before = stored() if STORED.exists() else {}
    lines = [
        "# What Spark's Kafka connector 4.2.0 gives for each case of cases.py; written by",
        "# `python3 tests beside --store`.",
    ]
    merged = {**before, **found}
    lines += [_line(name, merged[name]) for name in CASES if name in merged]
    STORED.write_text("\n".join(lines) + "\n", "utf-8")


def _line(name: str, outcome: str) -> str:
    """A case and its outcome, on several lines if that is long."""
    line = f"{json.dumps(name)} = {json.dumps(outcome, ensure_ascii=False)}"
    if len(line) <= _COLUMNS:
        return line
    parts = textwrap.wrap(outcome, _COLUMNS - 10, break_on_hyphens=False)
    return f'{json.dumps(name)} = """\\\n' + " \\\n".join(f"    {part}" for part in parts) + '"""'


def ours(name: str, theirs: str) -> str:
    """The outcome that trionet must give, or one that is equal to it."""
    return OURS[name].outcome if name in OURS else theirs


def differences(theirs: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """The cases that are not as they should be, each with what was found."""
    expected = stored()
    wrong = [
        f"{name}: the connector gives {outcome!r}, not {expected.get(name)!r} as stored"
        for name, outcome in theirs.items()
        if outcome != expected.get(name)
    ]
    wrong += [
        f"{name}: trionet gives {outcome!r}, not {ours(name, expected[name])!r}"
        for name, outcome in found.items()
        if not outcomes.are_equal(ours(name, expected[name]), outcome)
    ]
    return wrong
