"""Apache Kafka's command-line tools, started by their Java class."""

from __future__ import annotations

import subprocess

from support.kafka_jars import class_path, java

STORAGE = "kafka.tools.StorageTool"
TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
CONSOLE_PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
PRODUCER_PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
CONSUMER_PERFORMANCE = "org.apache.kafka.tools.ConsumerPerformance"
GET_OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
DELETE_RECORDS = "org.apache.kafka.tools.DeleteRecordsCommand"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"
CONSUMER_GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
FEATURES = "org.apache.kafka.tools.FeatureCommand"
DUMP_LOG = "org.apache.kafka.tools.DumpLogSegments"


def kafka_tool(tool: str, *arguments: str, stdin: bytes = b"") -> bytes:
    """What a tool writes to stdout; raises when it fails, `Unavailable` when there is no Java.

    Args:
        tool: the Java class.
        arguments: as on its command line.
        stdin: what it is given to read.
    """
    quick = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
    command = [java(), *quick, "-cp", class_path(), tool, *arguments]
    done = subprocess.run(command, check=False, input=stdin, capture_output=True, timeout=120)
    if done.returncode != 0:
        said = (done.stdout[-2000:] + done.stderr[-2000:]).decode(errors="replace")
        raise RuntimeError(f"{tool} exited with {done.returncode}: {said}")
    return done.stdout
