"""Replays the flights into the topic, at the speed that is asked for. A process of its own.

``python -m demo.producer BOOTSTRAP TOPIC PARTITIONS SPEED``, where a speed of 0 is "as fast as
possible".
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from demo.dataset import Flight, data_file, flights
from demo.reporting import Reporter
from demo.tally import Tally

# Flights that become due within this time are sent together.
TICK_SECONDS = 0.01
FLUSH_SECONDS_MAX = 20


class Replay:
    """Sends flights and keeps count of what was sent, acknowledged and refused."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self._topic = topic
        self._reporter = Reporter()
        self._tally = Tally()
        self._acknowledged = 0
        self._errors: Counter[str] = Counter()
        self._latest: Flight | None = None
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "enable.idempotence": True,
                "compression.type": "lz4",
                "queue.buffering.max.messages": 20_000,
            }
        )

    def run(self, source: Iterator[Flight], speed: float) -> None:
        """Send every flight when it is due, until all are sent or the demo says stop.

        The first report comes when the first flight is in the log: until then the client may take
        a second to find its broker, which is not the beginning that anyone wants to see.
        """
        first = next(source)
        self._send(first)
        self._producer.flush(FLUSH_SECONDS_MAX)
        self._report()
        began = time.monotonic()
        for flight in source:
            if speed:
                self._wait_until(began + (flight.scheduled - first.scheduled) / speed)
            if self._reporter.must_stop:
                break
            self._send(flight)
            if self._reporter.is_due:
                self._report()
        self._producer.flush(FLUSH_SECONDS_MAX)
        self._reporter.report(
            produced=self._acknowledged,
            clock=self._clock,
            totals=self._tally.totals(),
            errors=dict(self._errors),
        )

    def _wait_until(self, due: float) -> None:
        while (seconds := due - time.monotonic()) > TICK_SECONDS / 2:
            self._reporter.wait(max(seconds, TICK_SECONDS))
            if self._reporter.must_stop:
                return
            self._producer.poll(0)
            if self._reporter.is_due:
                self._report()

    def _send(self, flight: Flight) -> None:
        key, value = flight.carrier, flight.value
        while True:
            try:
                self._producer.produce(self._topic, value, key, on_delivery=self._delivered)
            except BufferError:  # the client's queue is full: the broker sets the pace
                self._producer.poll(0.05)
            else:
                break
        self._tally.add(key, value)
        self._latest = flight
        self._producer.poll(0)

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is None:
            self._acknowledged += 1
        else:
            self._errors[str(error)] += 1

    @property
    def _clock(self) -> str:
        return self._latest.clock if self._latest else ""

    def _report(self) -> None:
        self._reporter.report(produced=self._acknowledged, clock=self._clock)


def main(bootstrap_servers: str, topic: str, partitions: str, speed: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    for creation in admin.create_topics([NewTopic(topic, int(partitions))]).values():
        creation.result()
    Replay(bootstrap_servers, topic).run(flights(data_file()), float(speed))


if __name__ == "__main__":
    main(*sys.argv[1:])
