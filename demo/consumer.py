"""Reads the topic back from its beginning and checks every record. A process of its own.

``python -m demo.consumer BOOTSTRAP TOPIC``. It assigns all partitions to itself, at explicit
offsets. Told to stop, it reads on to the end of every partition first.
"""

from __future__ import annotations

import sys
import time
from typing import cast

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from demo.reporting import Reporter
from demo.tally import Tally

WAIT_SECONDS = 0.1
CALL_SECONDS_MAX = 10


class Check:
    """Consumes a topic; knows how far behind the log it is, in records and in milliseconds."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self._reporter = Reporter()
        self._tally = Tally()
        self._delays_ms: list[float] = []
        self._settings: dict[str, str | bool] = {
            "bootstrap.servers": bootstrap_servers,
            # The client wants a name, although nothing is committed and no group is joined.
            "group.id": "flights-check",
            "enable.auto.commit": False,
        }
        self._consumer = Consumer(self._settings)
        partitions = self._consumer.list_topics(topic, CALL_SECONDS_MAX).topics[topic].partitions
        self._partitions = [TopicPartition(topic, partition, 0) for partition in partitions]
        #: By partition: the offset of the next record.
        self._positions = dict.fromkeys(partitions, 0)

    def run(self) -> None:
        """Consume until the demo says stop, and from there to the end of the log."""
        self._consumer.assign(self._partitions)
        ends: dict[int, int] | None = None
        while ends is None or any(self._positions[p] < end for p, end in ends.items()):
            message = self._consumer.poll(WAIT_SECONDS)
            if message is not None:
                self._take(message)
            if ends is None and self._reporter.must_stop:
                ends = self._ends()
            if self._reporter.is_due:
                self._report()
        self._reporter.report(consumed=self._tally.count, lag=0, totals=self._tally.totals())
        self._consumer.close()

    def _take(self, message: Message) -> None:
        error = message.error()
        if error is not None:
            raise KafkaException(error)
        # The client's types say "maybe" of what every one of these records has.
        key, value = cast("bytes", message.key()), cast("bytes", message.value())
        partition, offset = cast("int", message.partition()), cast("int", message.offset())
        self._tally.add(key.decode(), value)
        self._positions[partition] = offset + 1
        self._delays_ms.append(time.time() * 1000 - message.timestamp()[1])

    def _ends(self) -> dict[int, int]:
        """By partition: the offset behind its last record, by the broker's own word.

        Over another connection: on the consumer's the question would wait behind a fetch that
        waits for data, since a broker answers the requests of a connection one by one.
        """
        ask = Consumer(self._settings).get_watermark_offsets
        return {p.partition: ask(p, CALL_SECONDS_MAX)[1] for p in self._partitions}

    def _lag(self) -> int:
        """How many records are in the log, as of the last fetch, that were not consumed yet."""
        behind = 0
        for partition in self._partitions:
            _, end = self._consumer.get_watermark_offsets(partition, cached=True)
            behind += max(0, end - self._positions[partition.partition])
        return behind

    def _report(self) -> None:
        delays, self._delays_ms = sorted(self._delays_ms), []
        self._reporter.report(
            consumed=self._tally.count,
            lag=self._lag(),
            delay_p50_ms=delays[len(delays) // 2] if delays else None,
            delay_p99_ms=delays[len(delays) * 99 // 100] if delays else None,
        )


if __name__ == "__main__":
    Check(*sys.argv[1:]).run()
