"""The cases: what users of Spark's Kafka connector ask it to do, as data.

What the connector gives for each is in ``connector.toml``, stored by a run of it (see
:mod:`spark.beside.expected`). Here it is the same, except for the cases of ``OURS`` there: each has
what trionet gives instead, and the line of the migration page that says why.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Final

import attrs

Options = Mapping[str, str]


@attrs.frozen
class Read:
    """A batch query of topics that all cases share (see :mod:`spark.beside.topics`)."""

    name: str
    options: Options


@attrs.frozen
class Stream:
    """A stream over a topic of its own, ``t``, with one partition.

    Attributes:
        steps: what happens, in order: ``add N`` records, ``partitions N``, ``cut N`` (delete the
            records before an offset), ``delete``, ``create``, and runs of the query: ``now``
            (Trigger.AvailableNow) and ``once``.
    """

    name: str
    options: Options
    steps: tuple[str, ...]


@attrs.frozen
class Write:
    """Rows that a batch, or a stream, writes to topics of its own, ``t`` and ``u``.

    Attributes:
        columns: the type of each column.
        rows: the rows; ``bytes`` of a binary column are given as text.
    """

    name: str
    options: Options
    columns: Mapping[str, str]
    rows: tuple[tuple[object, ...], ...]
    mode: str | None = "append"
    is_stream: bool = False


@attrs.frozen
class Sql:
    """Statements, of which the last returns what is compared: ``{format}`` and ``{servers}``."""

    name: str
    statements: tuple[str, ...]


Case = Read | Stream | Write | Sql


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _offsets(topic: str, *offsets: int) -> str:
    return _json({topic: {str(number): offset for number, offset in enumerate(offsets)}})


_BEGINNINGS: Final[Mapping[str, Options]] = {
    "the default": {},
    "earliest": {"startingOffsets": "earliest"},
    "offsets": {"startingOffsets": _offsets("numbers", 3, 5, 0)},
    "-2 and offsets": {"startingOffsets": _offsets("numbers", -2, 5, -2)},
    "an offset beyond the end": {"startingOffsets": _offsets("numbers", 500, 5, 0)},
    "the end itself": {"startingOffsets": _offsets("numbers", 10, 20, 0)},
    "a time": {"startingTimestamp": "4000", "startingOffsetsByTimestampStrategy": "latest"},
    "a time that some have not": {"startingTimestamp": "4000"},
    "times": {
        "startingOffsetsByTimestamp": _offsets("numbers", 3000, 15000, 0),
        "startingOffsetsByTimestampStrategy": "latest",
    },
}
_ENDS: Final[Mapping[str, Options]] = {
    "the default": {},
    "latest": {"endingOffsets": "latest"},
    "offsets": {"endingOffsets": _offsets("numbers", 7, 12, 0)},
    "-1 and offsets": {"endingOffsets": _offsets("numbers", -1, 12, -1)},
    "low offsets": {"endingOffsets": _offsets("numbers", 2, 20, 0)},
    "a time": {"endingTimestamp": "8000"},
    "times": {"endingOffsetsByTimestamp": _offsets("numbers", 8000, 99000, 0)},
}
_OF_CUT: Final[Mapping[str, Options]] = {
    "earliest": {},
    "an offset that is there": {"startingOffsets": _offsets("cut", 12)},
    "a deleted offset": {"startingOffsets": _offsets("cut", 4)},
    "beyond the end": {"startingOffsets": _offsets("cut", 40)},
}
_ENDS_OF_CUT: Final[Mapping[str, Options]] = {
    "latest": {},
    "an offset that is there": {"endingOffsets": _offsets("cut", 20)},
    "a deleted offset": {"endingOffsets": _offsets("cut", 8)},
}
_SPLITS: Final[tuple[Options, ...]] = tuple(
    {
        **({"minPartitions": str(least)} if least else {}),
        **({"maxRecordsPerPartition": str(most)} if most else {}),
    }
    for least, most in product((0, 2, 3, 4, 10), (0, 7, 50, 1000))
    if least or most
)
_OF_SKEWED: Final[Mapping[str, Options]] = {
    "open": {},
    "closed": {
        "startingOffsets": _offsets("skewed", 0, 0, 0),
        "endingOffsets": _offsets("skewed", 100, 10, 1),
    },
}


def _bounds() -> Iterator[Read]:
    for (begin, start), (stop, end) in product(_BEGINNINGS.items(), _ENDS.items()):
        yield Read(f"from {begin} to {stop}", {"subscribe": "numbers", **start, **end})


def _losses() -> Iterator[Read]:
    strictness = {"": {}, ", without failOnDataLoss": {"failOnDataLoss": "false"}}
    grid = product(_OF_CUT.items(), _ENDS_OF_CUT.items(), strictness.items())
    for (begin, start), (stop, end), (how, strict) in grid:
        options = {"subscribe": "cut", "kafkaConsumer.pollTimeoutMs": "2000"}
        yield Read(f"cut: from {begin} to {stop}{how}", {**options, **start, **end, **strict})


def _splits() -> Iterator[Read]:
    for split, (ends, bounds) in product(_SPLITS, _OF_SKEWED.items()):
        name = ", ".join(f"{key}={value}" for key, value in split.items())
        yield Read(f"{ends}, {name}", {"subscribe": "skewed", **bounds, **split})


_PATTERNS: Final = (
    "orders",
    "^orders$",
    r"orders\..*",
    r"^orders\.(eu|us)$",
    "^[a-z]+$",
    "(?i)ORDERS",
    r"\Qorders.\E.*",
    r"^\Qorders.eu\E$",
    r"orders\.eu\z",
    r"^\p{Upper}\p{Lower}+$",
    r"^\p{Lu}",
    r"\p{Punct}",
    r"\p{Digit}",
    r"^\P{Alpha}",
    "(?<word>orders)[.]eu",
    "^orders.++$",
    "^(?>orders)$",
    "ord[e-r&&[^f]]rs",
    "[o[p]]rders",
    "a(?i)B",
    r"\p{InGreek}",
    "(?x) orders",
    "(?x) ^ orders [.] (eu | us) $ # of two regions",
    r"^\p{javaUpperCase}\p{javaLowerCase}+$",
    r"^\p{InBasicLatin}\p{script=Latin}+\p{gc=Pd}",
    r"^\N{LATIN SMALL LETTER O}rders$",
    r"orders\cA",
    r"\Gorders",
    r"^\Xrders$",
    r"^orders\b{g}$",
    "orders{,3}",
    "(?#of all regions)orders",
    "(?P<word>orders)",
    "no such topic",
    "[",
    "*",
    "",
)


def _patterns() -> Iterator[Read]:
    for pattern in _PATTERNS:
        yield Read(f"pattern {pattern}", {"subscribePattern": pattern})


_NUMBERS: Final = {"subscribe": "numbers"}
_KAFKA: Final = "org.apache.kafka.common"
_OPTIONS: Final[Mapping[str, Options]] = {
    "no subscription": {},
    "two subscriptions": {"subscribe": "numbers", "subscribePattern": "numbers"},
    "three subscriptions": {"subscribe": "numbers", "subscribePattern": "n", "assign": "{}"},
    "an empty subscribe": {"subscribe": " , "},
    "spaces in subscribe": {"subscribe": " numbers , skewed,"},
    "a topic twice": {"subscribe": "numbers,numbers"},
    "a topic that does not exist": {"subscribe": "nowhere", "fetchOffset.retryIntervalMs": "1"},
    "assign": {"assign": _json({"numbers": [0, 1]})},
    "assign, one partition": {"assign": _json({"skewed": [2]})},
    "assign, no such partition": {"assign": _json({"numbers": [0, 9]})},
    "assign, a partition below 0": {"assign": _json({"numbers": [0, -1]})},
    "assign, 0.0": {"assign": '{"numbers":[0.0,1e0]}'},
    "assign, a fraction": {"assign": '{"numbers":[0.7]}'},
    "assign, null": {"assign": '{"numbers":[null]}'},
    "assign, text after it": {"assign": '{"numbers":[0]} and more'},
    "assign, a topic twice": {"assign": '{"numbers":[0],"numbers":[1]}'},
    "assign is no JSON": {"assign": "numbers"},
    "assign is broken JSON": {"assign": '{"numbers":'},
    "assign has no list": {"assign": '{"numbers":0}'},
    "names in any case": {"SUBSCRIBE": "numbers", "ENDINGOFFSETS": "latest"},
    "words in any case": {**_NUMBERS, "startingOffsets": "EARLIEST", "endingOffsets": "Latest"},
    "startingOffsets latest": {**_NUMBERS, "startingOffsets": "latest"},
    "endingOffsets earliest": {**_NUMBERS, "endingOffsets": "earliest"},
    "a partition from latest": {**_NUMBERS, "startingOffsets": _offsets("numbers", 0, -1, 0)},
    "a partition to earliest": {**_NUMBERS, "endingOffsets": _offsets("numbers", 5, -2, 0)},
    "startingOffsets is no JSON": {**_NUMBERS, "startingOffsets": "soon"},
    "offsets as 1e1 and 5.0": {
        **_NUMBERS,
        "startingOffsets": '{"numbers":{"0":1e0,"1":5.0,"2":0}}',
    },
    "an offset with a fraction": {
        **_NUMBERS,
        "startingOffsets": '{"numbers":{"0":1.5,"1":0,"2":0}}',
    },
    "an offset that is null": {
        **_NUMBERS,
        "startingOffsets": '{"numbers":{"0":null,"1":0,"2":0}}',
    },
    "an offset beyond 64 bits": {
        **_NUMBERS,
        "endingOffsets": '{"numbers":{"0":1e30,"1":0,"2":0}}',
        "kafkaConsumer.pollTimeoutMs": "2000",
    },
    "partitions as +0 and 01": {
        **_NUMBERS,
        "startingOffsets": '{"numbers":{"+0":1,"01":5,"2":0}}',
    },
    "text after the offsets": {
        **_NUMBERS,
        "startingOffsets": _offsets("numbers", 1, 5, 0) + " and more",
    },
    "one word for a topic": {**_NUMBERS, "startingOffsets": '{"numbers":"earliest"}'},
    "times as 1e3": {
        **_NUMBERS,
        "startingOffsetsByTimestamp": '{"numbers":{"0":1e3,"1":5.0,"2":0}}',
        "startingOffsetsByTimestampStrategy": "latest",
    },
    "startingOffsets misses a partition": {
        **_NUMBERS,
        "startingOffsets": _offsets("numbers", 0, 0),
    },
    "startingOffsets has a partition too many": {
        **_NUMBERS,
        "startingOffsets": _offsets("numbers", 0, 0, 0, 0),
    },
    "endingOffsets misses a partition": {**_NUMBERS, "endingOffsets": _offsets("numbers", 5, 5)},
    "offsets of another topic": {**_NUMBERS, "startingOffsets": _offsets("cut", 0)},
    "times of another topic": {**_NUMBERS, "startingOffsetsByTimestamp": _offsets("cut", 0)},
    "startingTimestamp is no number": {**_NUMBERS, "startingTimestamp": "now"},
    "a strategy that is none": {**_NUMBERS, "startingOffsetsByTimestampStrategy": "earliest"},
    "minPartitions 0": {**_NUMBERS, "minPartitions": "0"},
    "minPartitions is no number": {**_NUMBERS, "minPartitions": "many"},
    "maxRecordsPerPartition 0": {**_NUMBERS, "maxRecordsPerPartition": "0"},
    "failOnDataLoss is no boolean": {**_NUMBERS, "failOnDataLoss": "perhaps"},
    "includeHeaders is no boolean": {**_NUMBERS, "includeHeaders": "perhaps"},
    "blanks around minPartitions": {**_NUMBERS, "minPartitions": " 4 "},
    "blanks around maxRecordsPerPartition": {**_NUMBERS, "maxRecordsPerPartition": " 4 "},
    "blanks around startingTimestamp": {
        **_NUMBERS,
        "startingTimestamp": " 4000 ",
        "startingOffsetsByTimestampStrategy": " latest ",
    },
    "blanks around failOnDataLoss": {**_NUMBERS, "failOnDataLoss": " true "},
    "blanks around words and JSON": {
        **_NUMBERS,
        "startingOffsets": " earliest ",
        "endingOffsets": f" {_offsets('numbers', 7, 12, 0)} ",
    },
    "blanks around a setting": {**_NUMBERS, "kafka.fetch.max.bytes": " 1000000 "},
    "a number with a sign": {**_NUMBERS, "minPartitions": "+4"},
    "limits of streams": {**_NUMBERS, "maxOffsetsPerTrigger": "3", "maxTriggerDelay": "1s"},
    "a least above the most": {
        **_NUMBERS,
        "minOffsetsPerTrigger": "5",
        "maxOffsetsPerTrigger": "3",
    },
    "groupIdPrefix": {**_NUMBERS, "groupIdPrefix": "mine"},
    "kafka.group.id": {**_NUMBERS, "kafka.group.id": "mine"},
    "kafka.auto.offset.reset": {**_NUMBERS, "kafka.auto.offset.reset": "earliest"},
    "kafka.key.deserializer": {**_NUMBERS, "kafka.key.deserializer": "x"},
    "kafka.value.deserializer": {**_NUMBERS, "kafka.value.deserializer": "x"},
    "kafka.enable.auto.commit": {**_NUMBERS, "kafka.enable.auto.commit": "true"},
    "kafka.interceptor.classes": {**_NUMBERS, "kafka.interceptor.classes": "x"},
    "no servers": {**_NUMBERS, "kafka.bootstrap.servers": ""},
    "servers that are none": {**_NUMBERS, "kafka.bootstrap.servers": "localhost"},
    "fetchOffset.numRetries 0": {**_NUMBERS, "fetchOffset.numRetries": "0"},
    "an option of a sink": {**_NUMBERS, "topic": "numbers"},
    "an unknown option": {**_NUMBERS, "zzz": "1"},
    "a misspelt option": {**_NUMBERS, "startingOffset": "earliest"},
    "a setting without kafka.": {**_NUMBERS, "isolation.level": "read_committed"},
    "an unknown setting": {**_NUMBERS, "kafka.zzz.url": "http://host"},
    "a setting of producers": {**_NUMBERS, "kafka.acks": "all"},
    "kafka.max.poll.records": {**_NUMBERS, "kafka.max.poll.records": "3"},
    "kafka.max.partition.fetch.bytes": {**_NUMBERS, "kafka.max.partition.fetch.bytes": "64"},
    "kafka.fetch.max.bytes is no number": {**_NUMBERS, "kafka.fetch.max.bytes": "x"},
    "kafka.client.dns.lookup": {
        **_NUMBERS,
        "kafka.client.dns.lookup": "resolve_canonical_bootstrap_servers_only",
    },
    "kafka.config.providers": {
        **_NUMBERS,
        "kafka.config.providers": "env",
        "kafka.config.providers.env.class": f"{_KAFKA}.config.provider.EnvVarConfigProvider",
        "kafka.client.id": "${env:HOME}",
    },
    "negative startingOffsets": {**_NUMBERS, "startingOffsets": _offsets("numbers", -3, 0, 0)},
    "a partition twice": {**_NUMBERS, "startingOffsets": '{"numbers":{"0":0,"0":1,"1":0,"2":0}}'},
    "offsets before times": {
        **_NUMBERS,
        "startingOffsets": _offsets("numbers", 9, 19, 0),
        "startingTimestamp": "0",
        "startingOffsetsByTimestampStrategy": "latest",
    },
}
_CONTENTS: Final[Mapping[str, Options]] = {
    "headers": {"subscribe": "headers", "includeHeaders": "true"},
    "headers that are not asked for": {"subscribe": "headers"},
    "keys and values that are null": {"subscribe": "nulls"},
    "nulls with headers": {"subscribe": "nulls", "includeHeaders": "true"},
    "a topic without records": {"subscribe": "void"},
    "transactions": {"subscribe": "transactions"},
    "read_committed": {
        "subscribe": "transactions",
        "kafka.isolation.level": "read_committed",
    },
    "read_committed, cut": {
        "subscribe": "transactions",
        "kafka.isolation.level": "read_committed",
        "minPartitions": "4",
    },
    "an isolation level that is none": {
        "subscribe": "transactions",
        "kafka.isolation.level": "read_all",
    },
    "several topics": {"subscribe": "skewed,numbers,cut"},
    "compressed records": {"subscribe": "compressed"},
}


def _reads() -> Iterator[Read]:
    yield from _bounds()
    yield from _losses()
    yield from _splits()
    yield from _patterns()
    for name, options in {**_OPTIONS, **_CONTENTS}.items():
        yield Read(name, options)


_FROM_EARLIEST: Final = {"startingOffsets": "earliest"}


def _streams() -> Iterator[Stream]:
    early = _FROM_EARLIEST
    for name, options, *steps in (
        ("from latest", {}, "add 5", "now", "add 3", "now"),
        ("from earliest", early, "add 5", "now", "add 3", "now"),
        ("from an offset", {"startingOffsets": _offsets("t", 2)}, "add 5", "now", "add 3", "now"),
        ("from a time", {"startingTimestamp": "3000"}, "add 5", "now"),
        ("from a time that is not there", {"startingTimestamp": "9000"}, "add 5", "now"),
        (
            "from a time, else latest",
            {"startingTimestamp": "9000", "startingOffsetsByTimestampStrategy": "latest"},
            *("add 5", "now", "add 2", "now"),
        ),
        ("nothing there", early, "now", "add 2", "now"),
        ("a limit", {**early, "maxOffsetsPerTrigger": "2"}, "add 5", "now"),
        ("a limit of one", {**early, "maxOffsetsPerTrigger": "1"}, "add 3", "now"),
        ("a limit of 0", {**early, "maxOffsetsPerTrigger": "0"}, "add 3", "now"),
        ("a limit below 0", {**early, "maxOffsetsPerTrigger": "-1"}, "add 3", "now"),
        ("a least", {**early, "minOffsetsPerTrigger": "9"}, "add 3", "now"),
        ("a limit and once", {**early, "maxOffsetsPerTrigger": "2"}, "add 5", "once"),
        ("once", early, "add 5", "once", "add 2", "once"),
        ("tasks of its own", {**early, "minPartitions": "3"}, "add 6", "now"),
        ("more partitions", early, "add 2", "now", "partitions 2", "add 4", "now"),
        ("deleted before it was read", early, "add 3", "now", "add 6", "cut 6", "now"),
        (
            "deleted, without failOnDataLoss",
            {**early, "failOnDataLoss": "false"},
            *("add 3", "now", "add 6", "cut 6", "now"),
        ),
        ("beyond the end", {"startingOffsets": _offsets("t", 50)}, "add 5", "now"),
        (
            "beyond the end, without failOnDataLoss",
            {"startingOffsets": _offsets("t", 50), "failOnDataLoss": "false"},
            *("add 5", "now", "add 2", "now"),
        ),
        ("recreated, shorter", early, "add 5", "now", "delete", "create", "add 2", "now"),
        (
            "recreated, shorter, without failOnDataLoss",
            {**early, "failOnDataLoss": "false"},
            *("add 5", "now", "delete", "create", "add 2", "now", "add 2", "now"),
        ),
        ("endingOffsets", {**early, "endingOffsets": "latest"}, "add 3", "now"),
        ("endingOffsetsByTimestamp", {"endingOffsetsByTimestamp": "{}"}, "add 3", "now"),
        ("endingTimestamp", {**early, "endingTimestamp": "1000"}, "add 3", "now"),
    ):
        yield Stream(f"stream: {name}", options, tuple(map(str, steps)))


_KV: Final = {"key": "string", "value": "string"}
_TO_T: Final = {"topic": "t"}


def _writes() -> Iterator[Write]:
    yield from _rows()
    for mode in (None, "append", "overwrite", "ignore", "error"):
        yield Write(f"mode {mode}", _TO_T, _KV, (("k", "v"),), mode=mode)
    bad: Mapping[str, Options] = {
        "kafka.key.serializer": {"kafka.key.serializer": "x"},
        "kafka.value.serializer": {"kafka.value.serializer": "x"},
        "an option of a source": {"startingOffsets": "earliest", "failOnDataLoss": "false"},
        "includeHeaders": {"includeHeaders": "true"},
        "an unknown option": {"zzz": "1"},
        "a setting of consumers": {"kafka.group.id": "mine"},
        "kafka.acks 1": {"kafka.acks": "1"},
        "kafka.acks that are none": {"kafka.acks": "some"},
        "kafka.compression.type": {"kafka.compression.type": "gzip"},
        "kafka.partitioner.class": {
            "kafka.partitioner.class": "org.apache.kafka.clients.producer.RoundRobinPartitioner"
        },
        "kafka.transactional.id": {"kafka.transactional.id": "mine"},
        "no servers": {"kafka.bootstrap.servers": ""},
    }
    for name, options in bad.items():
        yield Write(f"write: {name}", {**_TO_T, **options}, _KV, (("k", "v"),))


def _rows() -> Iterator[Write]:
    header = "array<struct<key:string,value:binary>>"
    one = (("k", "v"),)
    table: tuple[tuple[str, Options, Mapping[str, str], tuple[tuple[object, ...], ...]], ...] = (
        ("strings", _TO_T, _KV, (("k", "v"), ("k2", "v2"))),
        ("binary", _TO_T, {"key": "binary", "value": "binary"}, one),
        ("value only", _TO_T, {"value": "string"}, (("v",),)),
        ("null key and value", _TO_T, _KV, ((None, "v"), ("k", None), (None, None))),
        ("no rows", _TO_T, _KV, ()),
        ("no value", _TO_T, {"key": "string"}, (("k",),)),
        ("value is int", _TO_T, {"value": "int"}, ((1,),)),
        ("value is double", _TO_T, {"value": "double"}, ((1.5,),)),
        ("key is bigint", _TO_T, {"key": "bigint", "value": "string"}, ((1, "v"),)),
        ("other columns", _TO_T, {**_KV, "offset": "bigint"}, (("k", "v", 7),)),
        ("names in upper case", _TO_T, {"KEY": "string", "VALUE": "string"}, one),
        ("the column topic", {}, {**_KV, "topic": "string"}, (("k", "v", "t"), ("k", "w", "u"))),
        ("topic option wins", _TO_T, {**_KV, "topic": "string"}, (("k", "v", "u"),)),
        ("no topic", {}, _KV, one),
        ("topic is null", {}, {**_KV, "topic": "string"}, (("k", "v", None),)),
        ("topic is int", {}, {**_KV, "topic": "int"}, (("k", "v", 1),)),
        ("an empty topic option", {"topic": ""}, _KV, one),
        (
            "a missing topic",
            {"topic": "nowhere", "kafka.max.block.ms": "1000"},
            _KV,
            one,
        ),
        ("partition", _TO_T, {**_KV, "partition": "int"}, (("k", "v", 1), ("k", "w", 0))),
        ("partition is null", _TO_T, {**_KV, "partition": "int"}, (("k", "v", None),)),
        ("partition is bigint", _TO_T, {**_KV, "partition": "bigint"}, (("k", "v", 1),)),
        (
            "no such partition",
            {"topic": "t", "kafka.max.block.ms": "1000"},
            {**_KV, "partition": "int"},
            (("k", "v", 9),),
        ),
        (
            "headers",
            _TO_T,
            {**_KV, "headers": header},
            (("k", "v", [("h", "1"), ("h", None)]), ("k", "w", None), ("k", "x", [])),
        ),
        ("headers are strings", _TO_T, {**_KV, "headers": "string"}, (("k", "v", "h"),)),
    )
    for name, options, columns, rows in table:
        yield Write(f"write: {name}", options, columns, rows)
        if name in {"strings", "the column topic", "no topic", "no value", "value is int"}:
            yield Write(f"write stream: {name}", options, columns, rows, is_stream=True)


_TABLE: Final = "CREATE TABLE {table} USING {format} OPTIONS ('kafka.bootstrap.servers'='{servers}'"


def _sql() -> Iterator[Sql]:
    table = _TABLE + ", subscribe='numbers')"
    bounded = _TABLE + f""", subscribe='numbers', endingOffsets='{_offsets("numbers", 2, 3, 0)}')"""
    headers = _TABLE + ", subscribe='headers', includeHeaders=true)"
    # The connector has no tables that are only written to: there {written} is {table}.
    written = _TABLE.replace("{table}", "IF NOT EXISTS {written}")
    read_and_written = _TABLE + ", subscribe='{topic}')", written + ", topic='{topic}')"

    def written_to(topic: str) -> list[str]:
        return [each.replace("{topic}", topic + "-{format}") for each in read_and_written]

    count = "SELECT count(*), sum(offset) FROM {table}"
    rows = "SELECT cast(value as string), partition FROM {table}"
    inserted = (
        "INSERT INTO {written} SELECT * FROM VALUES (binary('k'), binary('v'), string(null), 0,"
        " bigint(0), timestamp(null), 0)"
    )
    strings = "INSERT INTO {written} (key, value) VALUES ('k', 'v')"
    into_some = "INSERT INTO {written} (key, value) VALUES (binary('k'), binary('v'))"
    for name, *statements in (
        ("CREATE TABLE", table, count),
        ("CREATE TABLE with bounds", bounded, count),
        ("CREATE TABLE with headers", headers, "SELECT count(*), count(headers) FROM {table}"),
        ("CREATE TEMPORARY VIEW", table.replace("TABLE", "TEMPORARY VIEW"), count),
        ("DESCRIBE a table", table, "DESCRIBE {table}"),
        ("a table with columns", table.replace(" USING", " (value STRING) USING"), count),
        ("a table without a subscription", _TABLE + ")", count),
        ("a table with properties", table + " TBLPROPERTIES ('quality'='gold')", count),
        ("INSERT INTO a table", *written_to("inserted"), inserted, rows),
        ("INSERT INTO some columns", *written_to("intoSome"), into_some, rows),
        ("INSERT INTO with strings", *written_to("intoStrings"), strings, rows),
    ):
        yield Sql(name, tuple(statements))


READS: Final = tuple(_reads())
STREAMS: Final = tuple(_streams())
WRITES: Final = tuple(_writes())
STATEMENTS: Final = tuple(_sql())
_ALL: Final[tuple[Case, ...]] = (*READS, *STREAMS, *WRITES, *STATEMENTS)
CASES: Final[Mapping[str, Case]] = {each.name: each for each in _ALL}
