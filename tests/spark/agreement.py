"""What the suites of Spark's own Kafka connector assert, line by line, and what of it holds here.

A line is one test of theirs in a few words. A test that shows the same of trionet begins its
docstring with the line's number, or numbers: ``RC4, RC5: ...``; any test below ``tests/spark`` may.
A line that cannot hold says why: most often Spark gives a source that is written in Python no way.
``python3 -m spark.agreement`` in the folder ``tests`` prints them all with their tests.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).resolve().parent

_NUMBER = r"[A-Z]{2}\d+"
_NUMBERS = re.compile(rf"({_NUMBER}(?:, {_NUMBER})*):")


class Line(NamedTuple):
    """One line of the list.

    Attributes:
        number: two letters of its suite, and its place there.
        about: what is asserted.
        reason: why it cannot hold, or what holds in its place; empty if a test must show it.
    """

    number: str
    about: str
    reason: str = ""


_NO_CONTINUOUS = "Spark has no continuous processing for sources and sinks in Python"
_NO_REAL_TIME = "Spark has no real-time mode for sources and sinks in Python"
_NO_CLASSES = "it asserts which classes of the JVM are in a plan"
_NO_CONSUMERS = (
    "there is no pool of consumers and their data: a worker has one client that is shared"
)
_NO_TOKENS = "Spark hands delegation tokens to code in the JVM alone"
_NO_TRANSACTIONS = "this version writes no transactions, and its broker has none"
_NO_PLACES = "a partition of a source in Python cannot say where it would rather be read"

SOURCE_OPTIONS = [
    Line("OP1", "a stream refuses where to end"),
    Line("OP2", "one of assign, subscribe and subscribePattern must be given"),
    Line("OP3", "and only one"),
    Line("OP4", "and it must not be empty"),
    Line("OP5", "minOffsetsPerTrigger must not be above maxOffsetsPerTrigger"),
    Line("OP6", "client settings that Spark decides are refused, whatever their value"),
    Line("OP7", "offsets and their words are read in any case, else the default counts"),
    Line("OP8", "a batch must not begin at the latest, nor a partition of it"),
    Line("OP9", "a batch must not end at the earliest, nor a partition of it"),
    Line("OP10", "names of options have any case, in batches and streams"),
    Line("OP11", "the same in continuous mode", _NO_CONTINUOUS),
    Line("OP12", "minPartitions is a positive integer"),
    Line("OP13", "clients can be made of the options"),
    Line("OP14", "groupIdPrefix is taken"),
    Line("OP15", "kafka.group.id is taken"),
    Line("OP16", "serializers are refused by a sink"),
    Line("OP17", "one time for all is preferred to times, and these to offsets"),
    Line(
        "OP18",
        "the cluster's list of groups has the group that was named",
        "partitions are read without a group; the name labels the client in logs",
    ),
    Line(
        "OP19",
        "an old name of a setting of the pool of consumers is still read",
        _NO_CONSUMERS,
    ),
]

JSON = [
    Line("JS1", "partitions are read"),
    Line("JS2", "offsets of partitions are read"),
    Line("JS3", "also where a query begins and ends"),
    Line("JS4", "there with a word for a whole topic"),
    Line("JS5", "and both mixed, words in any case"),
    Line("JS6", "but not both for one topic"),
    Line("JS7", "anything else is refused, and shown"),
]

SOURCE_OFFSET = [
    Line(
        "SO1",
        "offsets are less, equal, greater or undetermined",
        "Spark compares the offsets of a source in Python by their text",
    ),
    Line("SO2", "offsets come back from their JSON"),
    Line("SO3", "and from the offset log"),
    Line("SO4", "the form of Spark 2.1 is read"),
]

OFFSET_LIMITS = [
    Line("OL1", "a word for a topic is for the partitions it has"),
    Line("OL2", "offsets of all partitions stay as they are"),
    Line("OL3", "a topic without partitions in the query fails"),
]

RANGE_CALCULATOR = [
    Line("RC1", "no minPartitions: as many ranges as partitions"),
    Line("RC2", "no minPartitions: empty ranges are left out"),
    Line("RC3", "N partitions to N ranges"),
    Line("RC4", "1 partition to N ranges"),
    Line("RC5", "N skewed partitions to M ranges"),
    Line("RC6", "empty ranges are left out and the rest is cut (SPARK-30656)"),
    Line("RC7", "N very skewed partitions to M ranges (SPARK-30656)"),
    Line("RC8", "minPartitions below the number of partitions (SPARK-30656)"),
    Line("RC9", "a range that is no multiple of minPartitions"),
    Line("RC10", "empty ranges are left out of what is cut"),
    Line("RC11", "no offset is dropped (SPARK-28489)"),
    Line("RC12", "no small range and 3 large (SPARK-36576)"),
    Line("RC13", "1 small range and 2 large (SPARK-36576)"),
    Line("RC14", "2 small ranges and 1 large (SPARK-36576)"),
    Line("RC15", "maxRecordsPerPartition: 1 partition to N ranges (SPARK-49259)"),
    Line("RC16", "maxRecordsPerPartition: N partitions to M ranges (SPARK-49259)"),
    Line("RC17", "with a low minPartitions (SPARK-49259)"),
    Line("RC18", "with a high minPartitions (SPARK-49259)"),
    Line("RC19", "a whole range is read where it was read before", _NO_PLACES),
    Line("RC20", "places are set when ranges are whole (SPARK-46798)", _NO_PLACES),
    Line("RC21", "places are not set when ranges are cut (SPARK-46798)", _NO_PLACES),
]

OFFSET_READER = [
    Line("OR1", "the isolation level is read, has a default, and is refused if unknown"),
    Line("OR2", "offsets of a batch, cut (SPARK-30656)"),
    Line("OR3", "earliest and latest of a batch, cut (SPARK-30656)"),
    Line("OR4", "offsets for other partitions than are read (SPARK-48383)"),
    Line("OR5", "several partitions of a batch, cut (SPARK-30656)"),
    Line("OR6", "a micro-batch, cut (SPARK-30656)"),
    Line("OR7", "times for fewer or more partitions than are read"),
]

CONSUMER_STRATEGY = [
    Line("CS1", "assign: all that were assigned"),
    Line("CS2", "assign: those that do not exist are left out"),
    Line("CS3", "subscribe: all partitions of the topics"),
    Line("CS4", "subscribePattern: all partitions of the topics that match"),
]

MICRO_BATCH = [
    Line("MB1", "AvailableNow: 15 records, 5 at most a batch, are 3 batches"),
    Line("MB2", "initial offsets survive a restart"),
    Line("MB3", "the largest maxOffsetsPerTrigger does not overflow (SPARK-26718)"),
    Line("MB4", "maxOffsetsPerTrigger: the rows of each batch, also after a restart"),
    Line("MB5", "maxOffsetsPerTrigger is ignored by Trigger.Once"),
    Line("MB6", "minOffsetsPerTrigger: the rows of each batch, and the delay"),
    Line("MB7", "minOffsetsPerTrigger is ignored by Trigger.Once"),
    Line("MB8", "least and most together: the rows of each batch, and the delay"),
    Line("MB9", "both are ignored by Trigger.Once"),
    Line("MB10", "the rows in the progress are those that were read"),
    Line("MB11", "a topic of a pattern is deleted, another made, without failOnDataLoss"),
    Line("MB12", "a topic of a pattern is made anew: its offset was changed from 2 to 1"),
    Line(
        "MB13",
        "initial offsets are written with a byte before them (SPARK-19517)",
        "a source in Python does not know its checkpoint; the first micro-batch is empty, so"
        " that its end in the offset log has them",
    ),
    Line(
        "MB14",
        "initial offsets that Spark 2.1 has written are read (SPARK-19517)",
        "a source in Python does not know its checkpoint",
    ),
    Line(
        "MB15",
        "initial offsets of a later version fail",
        "a source in Python does not know its checkpoint",
    ),
    Line("MB16", "a watermark on the column timestamp"),
    Line("MB17", "a topic is deleted while a job runs, without failOnDataLoss"),
    Line("MB18", "a union of two topics, one of them idle (SPARK-22956)"),
    Line(
        "MB19",
        "a join with itself has one offset in the log",
        "Spark plans a source in Python once for each place in a join, and logs two; a test shows"
        " that they are the same, and that all rows meet",
    ),
    Line("MB20", "read_committed: each micro-batch, also without any record"),
    Line("MB21", "read_uncommitted: each micro-batch"),
    Line("MB22", "what was fetched ahead is not read twice (SPARK-25495)"),
    Line("MB23", "keys and values that are null (SPARK-27494)"),
    Line("MB24", "minPartitions: at least so many tasks, all rows (SPARK-30656)"),
    Line("MB25", "minPartitions: one range, one, and four"),
    Line("MB26", "the old source is used when it is asked for", _NO_CLASSES),
    Line("MB27", "the new source is used by default", _NO_CLASSES),
    Line("MB28", "a checkpoint of Spark 2.4, without headers, goes on"),
]

METRICS = [
    Line("ME1", "offsets behind the latest with a limit"),
    Line("ME2", "offsets behind the latest without a limit: none"),
    Line("ME3", "the numbers of two partitions, and nothing where nothing is known"),
    Line(
        "ME4",
        "they are in the metrics of a source in the progress",
        "a source in Python has no metrics in the progress; trionet.spark.lag computes them of it",
    ),
]

_FROM = ("latest", "earliest", "specific offsets", "specific timestamps", "a global timestamp")
SOURCE_BASE = [
    Line("SB1", "a stream can be stopped"),
    *(
        Line(f"SB{2 + 3 * row + column}", f"{way} from {start}, with and without failOnDataLoss")
        for row, start in enumerate(_FROM)
        for column, way in enumerate(("assign", "subscribe", "subscribePattern"))
    ),
    Line("SB17", "subscribe, timestamps without a match: an error, or the latest"),
    Line("SB18", "subscribe, a global timestamp without a match: an error, or the latest"),
    Line("SB19", "subscribePattern, timestamps without a match: an error, or the latest"),
    Line("SB20", "subscribePattern, a global timestamp without a match: an error, or the latest"),
    Line("SB21", "the columns and their types, headers among them"),
    Line("SB22", "stress: topics and partitions come and go"),
]

RELATION = [
    Line("RE1", "from earliest to latest, said so; the latest is bound late"),
    Line("RE2", "without saying so"),
    Line("RE3", "from and to offsets; -1 is bound late, numbers are not"),
    Line("RE4", "headers, and null where there are none"),
    Line("RE5", "from a time to a time"),
    Line("RE6", "from a time to offsets"),
    Line("RE7", "from offsets to a time"),
    Line("RE8", "from a time"),
    Line("RE9", "to a time"),
    Line("RE10", "from one time for all to another"),
    Line("RE11", "no match for where to begin: no offset matched"),
    Line("RE12", "one time for all is preferred to times, and these to offsets"),
    Line("RE13", "no match for where to end: all"),
    Line("RE14", "a union with itself"),
    Line("RE15", "the earliest is bound late"),
    Line("RE16", "read_committed"),
    Line("RE17", "read_uncommitted"),
    Line("RE18", "minPartitions: at least so many tasks, all rows, bound late (SPARK-30656)"),
    Line("RE19", "which source is used when it is asked for", _NO_CLASSES),
    Line("RE20", "start and end for the same partitions"),
    Line("RE21", "a start above its end, as specified"),
    Line("RE22", "a start above its end, resolved, without latest"),
    Line("RE23", "a start above its end, resolved, with latest"),
]

DATA_LOSS = [
    Line("DL1", "without failOnDataLoss nothing is read twice: micro-batch"),
    Line("DL2", "without failOnDataLoss nothing is read twice: continuous", _NO_CONTINUOUS),
    Line("DL3", "without failOnDataLoss nothing is read twice: batch"),
    Line("DL4", "stress: topics come and go without failOnDataLoss"),
    Line("DL5", "each loss has its condition"),
]

SINK = [
    Line("SI1", "stream: the column topic"),
    Line("SI2", "stream: the option topic"),
    Line("SI3", "stream: the option before the column"),
    Line("SI4", "stream: columns that are missing are named"),
    Line("SI5", "stream: columns of the wrong type are named"),
    Line("SI6", "stream: a topic that does not exist fails the job"),
    Line("SI7", "stream: serializers are refused"),
    Line("SI8", "stream: the rows in the progress are those that were written"),
    Line("SI9", "batch: written with headers, and read"),
    Line("SI10", "batch: the column partition before the partitioner; null is ignored"),
    Line(
        "SI11",
        "batch: a partitioner of one's own",
        "kafka.partitioner.class names a class of the JVM; the column partition does its work",
    ),
    Line("SI12", "batch: a topic that is null fails"),
    Line("SI13", "batch: only append; overwrite and ignore are refused"),
    Line("SI14", "batch: the rows of a plan that is not resolved yet (SPARK-20496)"),
    Line("SI15", "15 MB through a buffer of 16 kB"),
    Line("SI16", "the same in continuous mode", _NO_CONTINUOUS),
]

POOLS = [
    Line("PO1", "consumers and data are used again, and evicted (three suites)", _NO_CONSUMERS),
    Line("PO2", "a task that is tried again gets a new one"),
    Line("PO3", "many readers at once, in threads"),
    Line("PO4", "a producer is shared by configuration, and closed when it was idle"),
    Line("PO5", "secured with delegation tokens, and when they are renewed", _NO_TOKENS),
]

NOT_IN_PYTHON = [
    Line("CO1", "the suites of continuous mode", _NO_CONTINUOUS),
    Line("RT1", "the suites of real-time mode", _NO_REAL_TIME),
]

SUITES = {
    "KafkaSourceSuiteBase, KafkaSourceProviderSuite: options": SOURCE_OPTIONS,
    "JsonUtilsSuite": JSON,
    "KafkaSourceOffsetSuite": SOURCE_OFFSET,
    "KafkaOffsetRangeLimitSuite": OFFSET_LIMITS,
    "KafkaOffsetRangeCalculatorSuite": RANGE_CALCULATOR,
    "KafkaOffsetReaderSuite": OFFSET_READER,
    "ConsumerStrategySuite": CONSUMER_STRATEGY,
    "KafkaMicroBatchSourceSuite": MICRO_BATCH,
    "KafkaMicroBatchV2SourceSuite: metrics": METRICS,
    "KafkaSourceSuiteBase, KafkaSourceStressSuite": SOURCE_BASE,
    "KafkaRelationSuite": RELATION,
    "KafkaDontFailOnDataLossSuite, KafkaExceptionsSuite": DATA_LOSS,
    "KafkaSinkSuite": SINK,
    "The suites of pools and tokens": POOLS,
    "The suites of other modes": NOT_IN_PYTHON,
}

#: Lines that no test shows yet. A line leaves this list with its first test.
OPEN: frozenset[str] = frozenset()


def numbers_of(docstring: str) -> list[str]:
    """The numbers that a docstring begins with."""
    match = _NUMBERS.match(docstring)
    return match[1].split(", ") if match is not None else []


@cache
def names_by_number() -> dict[str, list[str]]:
    """The tests of each number that a docstring below this folder begins with."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for number in numbers_of(ast.get_docstring(node) or ""):
                    name = f"{path.relative_to(TESTS).as_posix()}::{node.name}"
                    found.setdefault(number, []).append(name)
    return found


def report() -> str:
    """All lines, each with its tests or its reason."""
    tests = names_by_number()
    lines: list[str] = []
    for suite, of_suite in SUITES.items():
        lines.append(f"\n{suite}")
        for line in of_suite:
            shown = ", ".join(tests.get(line.number, [])) or line.reason or "open"
            lines.append(f"  {line.number:<5} {line.about}: {shown}")
    return "\n".join(lines)


if __name__ == "__main__":
    print(report())
