"""Jobs and checkpoints of Spark's Kafka connector go on under ``trionet``, and back.

The connector itself runs here, from its jars, in processes of their own; the program that they run
is :mod:`spark.migrating_job`, in which only the format changes.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

import trionet
from spark.brokers import SETTINGS
from support.cache import Unavailable
from support.java import NO_JAVA, has_java
from support.spark_jars import connector_jars, pyspark_folder
from support.spark_python import spark_python
from trionet.testing._threaded import ThreadedBroker

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1500)]

_PROGRAM = Path(__file__).with_name("migrating_job.py")
_ROOT = _PROGRAM.parents[2]
_RUN_SECONDS = 600
_PAUSE_SECONDS = 0.05
_AVAILABLE_NOW = {"availableNow": True}
_FOR_EVER = {"processingTime": "0 seconds"}
CONNECTOR, OURS = "kafka", "trionet"


@attrs.frozen
class Jobs:
    """Runs the program against a broker that clients have to log in to."""

    broker: ThreadedBroker
    folder: Path
    jars: str
    environment: dict[str, str]

    def client(self) -> dict[str, str]:
        """Options that both connectors know."""
        security = self.broker.security
        return {
            "kafka.bootstrap.servers": self.broker.bootstrap_servers,
            "kafka.security.protocol": security.protocol,
            "kafka.sasl.mechanism": security.sasl_mechanism or "",
            "kafka.sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required"
                f' username="{security.username}" password="{security.password}";'
            ),
        }

    def stream(
        self, form: str, source: str, trigger: Mapping[str, object], **options: object
    ) -> dict[str, Any]:
        """A query from a topic to the one named after it."""
        return {
            "format": form,
            "source": {**self.client(), "subscribe": source, **_texts(options)},
            "sink": {**self.client(), "topic": f"{source}-out", "kafka.acks": "all"},
            "checkpoint": str(self.checkpoint(source)),
            "trigger": trigger,
        }

    def checkpoint(self, source: str) -> Path:
        """The folder of the query that reads a topic."""
        return self.folder / source

    def run(
        self, streams: Sequence[dict[str, Any]], batches: Sequence[dict[str, Any]] = ()
    ) -> list[list[str]]:
        """A process from its begin to its end; what its batches have read."""
        with self.started(streams, batches) as process:
            out, errors = process.communicate(timeout=_RUN_SECONDS)
            assert 0 == process.returncode, _told(errors)
        return [json.loads(line) for line in out.splitlines() if line.startswith("[")]

    @contextlib.contextmanager
    def started(
        self, streams: Sequence[dict[str, Any]], batches: Sequence[dict[str, Any]] = ()
    ) -> Iterator[subprocess.Popen[str]]:
        """A process, which is killed at the end of the block with all that it has started."""
        arguments = json.dumps({"jars": self.jars, "streams": streams, "batches": batches})
        process = subprocess.Popen(
            [sys.executable, str(_PROGRAM), arguments],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()

    def written(self, source: str) -> list[int]:
        """The numbers in the topic that a query writes, sorted, each as often as it is there."""
        found = self.broker.records(f"{source}-out")
        texts = [(each.value or b"").decode().removeprefix(f"{source}:") for each in found]
        return sorted(map(int, texts))

    def seed(self, topic: str, first: int, last: int) -> None:
        """Numbers as keys and values, by turns into both partitions."""
        self.broker.seed(
            topic,
            [
                {"key": f"{n}", "value": f"{n}", "partition": n % 2, "timestamp": 1_000 + n}
                for n in range(first, last + 1)
            ],
        )

    def offsets_in_log(self, source: str, batch: int) -> str:
        """Where a micro-batch ends, as its checkpoint has it."""
        log = self.checkpoint(source) / "offsets" / str(batch)
        return log.read_text("utf-8").splitlines()[2]

    def begin_of_connector(self, source: str) -> str:
        """Where the connector began, as it keeps it in a checkpoint."""
        content = (self.checkpoint(source) / "sources" / "0" / "0").read_bytes()
        return content.splitlines()[-1].decode()


def _texts(options: dict[str, object]) -> dict[str, str]:
    return {
        name: json.dumps(value) if isinstance(value, dict) else str(value)
        for name, value in options.items()
    }


def _wait(process: subprocess.Popen[str], reached: Callable[[], bool]) -> None:
    """Until a process has come so far; the test's own limit ends what never is."""
    while not reached():
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_PAUSE_SECONDS)
            pytest.fail(f"it has ended: {_told(process.communicate()[1])}")


def _told(errors: str) -> str:
    """What a process has said, less where in Java it was."""
    lines = [line for line in errors.splitlines() if not line.lstrip().startswith(("at ", "..."))]
    return "\n".join(lines[-60:])


def numbers(last: int, first: int = 1) -> list[int]:
    return [*range(first, last + 1)]


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    if not has_java():
        pytest.skip(NO_JAVA)
    try:
        jars, pyspark = connector_jars(), pyspark_folder()
    except Unavailable as reason:
        pytest.skip(str(reason))
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (pyspark, _ROOT))),
        **spark_python(),
        "SPARK_HOME": str(pyspark / "pyspark"),
    }
    with trionet.testing.broker(SETTINGS, sasl="SCRAM-SHA-512") as broker:
        yield Jobs(broker, tmp_path, ",".join(map(str, jars)), environment)


def test_a_checkpoint_goes_on_under_the_other_connector_and_back(jobs: Jobs) -> None:
    """Whoever began: each record is written once, by a query with limits, and by one with state."""
    begins = {"plain": CONNECTOR, "ours": OURS, "state": CONNECTOR}
    for topic in begins:
        jobs.broker.create_topic(topic, 2)
        jobs.broker.create_topic(f"{topic}-out", 2)
    usual = {"maxOffsetsPerTrigger": 12, "minPartitions": 4, "failOnDataLoss": "true"}
    other = {CONNECTOR: OURS, OURS: CONNECTOR}
    for phase in range(3):
        for topic in begins:
            # What has a state sees half of it again, and keeps it out.
            first = phase * 20 + 1
            jobs.seed(topic, max(first - 10, 1) if topic == "state" else first, phase * 20 + 20)
        jobs.run(
            [
                jobs.stream(
                    form if phase != 1 else other[form],
                    topic,
                    _AVAILABLE_NOW,
                    startingOffsets={topic: {"0": 1, "1": -2}},
                    **usual,
                )
                | {"distinct": topic == "state"}
                for topic, form in begins.items()
            ]
        )
        for topic in begins:
            # Partition 0 begins with 2, which startingOffsets pass over.
            assert [1, *numbers(phase * 20 + 20, 3)] == jobs.written(topic), (topic, phase)


def test_the_connector_goes_on_after_our_first_micro_batch(jobs: Jobs) -> None:
    """Its end names its start, too, under a name that is no topic's."""
    for topic in ("one", "one-out"):
        jobs.broker.create_topic(topic, 2)
    jobs.seed("one", 1, 10)
    options = {"startingOffsets": "earliest", "failOnDataLoss": "true"}
    jobs.run([jobs.stream(OURS, "one", _AVAILABLE_NOW, **options)])
    assert "startingOffsets=" in jobs.offsets_in_log("one", 0)
    assert not (jobs.checkpoint("one") / "offsets" / "1").exists()
    jobs.seed("one", 11, 20)

    jobs.run([jobs.stream(CONNECTOR, "one", _AVAILABLE_NOW, **options)])

    assert numbers(20) == jobs.written("one")


def test_a_first_run_that_stopped_within_its_first_micro_batch_goes_on(jobs: Jobs) -> None:
    """The connector keeps its begin in a file of its own, which is needed for `latest` only."""
    starts: dict[str, object] = {
        "earliest": "earliest",
        "numbered": {"numbered": {"0": 1, "1": 2}},
        "latest": "latest",
        "idle": "latest",
    }
    for topic in starts:
        jobs.broker.create_topic(topic, 2)  # and none to write to: the first micro-batch waits
        jobs.seed(topic, 1, 10)

    streams = [
        jobs.stream(CONNECTOR, topic, _FOR_EVER, startingOffsets=start)
        for topic, start in starts.items()
    ]
    with jobs.started(streams) as process:
        begins = [jobs.checkpoint(each) / "sources/0/0" for each in starts]
        _wait(process, lambda: all(each.exists() for each in begins))
        jobs.seed("latest", 11, 20)
        ends = [jobs.checkpoint(each) / "offsets/0" for each in starts if each != "idle"]
        _wait(process, lambda: all(each.exists() for each in ends))
    assert not any(each.name == "0" for each in jobs.folder.glob("*/commits/*"))
    for topic in starts:
        jobs.broker.create_topic(f"{topic}-out", 2)
        jobs.seed(topic, 21, 30)
    goes_on = {
        topic: jobs.begin_of_connector(topic) if start == "latest" else start
        for topic, start in starts.items()
    }
    jobs.run(
        [
            jobs.stream(OURS, topic, _AVAILABLE_NOW, startingOffsets=start)
            for topic, start in goes_on.items()
        ]
    )

    assert [*numbers(10), *numbers(30, 21)] == jobs.written("earliest")
    assert [*numbers(10, 4), *numbers(30, 21)] == jobs.written("numbered")
    assert numbers(30, 11) == jobs.written("latest")
    assert numbers(30, 21) == jobs.written("idle")


def test_a_table_of_a_connectors_offsets_is_the_same(jobs: Jobs) -> None:
    """Offsets that its checkpoint has are `startingOffsets`; and rows are written as they were."""
    jobs.broker.create_topic("orders", 2)
    for topic in ("orders-out", "copy-kafka", "copy-trionet"):
        jobs.broker.create_topic(topic, 2)
    jobs.seed("orders", 1, 10)
    jobs.run([jobs.stream(CONNECTOR, "orders", _AVAILABLE_NOW, startingOffsets="earliest")])
    jobs.seed("orders", 11, 40)
    source = {
        **jobs.client(),
        "subscribe": "orders",
        "startingOffsets": jobs.offsets_in_log("orders", 0),
        "endingOffsets": json.dumps({"orders": {"0": 18, "1": -1}}),
        "minPartitions": "5",
    }

    theirs, ours = jobs.run(
        [],
        [
            {
                "format": form,
                "source": source,
                "sink": {**jobs.client(), "topic": f"copy-{form}"},
            }
            for form in (CONNECTOR, OURS)
        ],
    )

    assert theirs == ours
    assert 28 == len(ours)
    copies = [
        sorted((each.partition, each.key, each.value) for each in jobs.broker.records(topic))
        for topic in ("copy-kafka", "copy-trionet")
    ]
    assert copies[0] == copies[1]
