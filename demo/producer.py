"""Replays the flights into the topic, at the speed that is asked for. A process of its own.

``python -m demo.producer BOOTSTRAP TOPIC SPEED``, where a speed of 0 is "as fast as possible".
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator

import trio

import trionet
from demo.dataset import Flight, data_file, flights
from demo.reporting import REPORT_SECONDS, hear, report
from demo.tally import Tally
from demo.timetable import Timetable
from demo.windows import from_factor

CLIENT_ID = "flights-replay"


class Replay:
    """Sends flights and keeps count of what was sent, acknowledged and refused."""

    def __init__(self, producer: trionet.Producer, topic: str) -> None:
        self._producer = producer
        self._topic = topic
        self._tally = Tally()
        self._acknowledged = 0
        self._errors: Counter[str] = Counter()
        self._clock = ""

    async def run(self, source: Iterator[Flight], speed: float, stop: trio.Event) -> None:
        """Send every flight when it is due, until all are sent or the demo says stop.

        The first report comes when the first flight is in the log: until then the client may take
        a moment to find its broker, which is not the beginning that anyone wants to see.
        """
        first = next(source)
        await self._send([first])
        self.report()
        began = trio.current_time()
        timetable = Timetable(first, source, speed)
        while (due := timetable.due) is not None:
            with trio.move_on_at(began + due):
                await stop.wait()
            if stop.is_set():
                return
            await self._send(timetable.take(trio.current_time() - began))

    async def keep_reporting(self) -> None:
        """Say how far it is, until cancelled."""
        while True:
            await trio.sleep(REPORT_SECONDS)
            self.report()

    def report(self) -> None:
        report(produced=self._acknowledged, clock=self._clock)

    def report_totals(self) -> None:
        """The last report."""
        report(
            produced=self._acknowledged,
            clock=self._clock,
            totals=self._tally.totals(),
            errors=dict(self._errors),
        )

    async def _send(self, together: list[Flight]) -> None:
        keys = [flight.carrier for flight in together]
        values = [flight.value for flight in together]
        for key, value in zip(keys, values, strict=True):
            self._tally.add(key, value)
        refused = 0
        try:
            await self._producer.send_batch(
                self._topic, values, keys=[key.encode() for key in keys]
            )
        except trionet.SendBatchError as error:
            refused = len(error.failures)
            self._errors.update(str(each) for _, each in error.failures)
        self._acknowledged += len(together) - refused
        self._clock = together[-1].clock


async def main(bootstrap_servers: str, topic: str, speed: str) -> None:
    stop = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(hear, stop)
        async with trionet.open_producer(
            # All that is due is sent at once: nothing comes that it could wait for.
            bootstrap_servers,
            client_id=CLIENT_ID,
            compression_type="lz4",
            linger_ms=0,
        ) as producer:
            replay = Replay(producer, topic)
            nursery.start_soon(replay.keep_reporting)
            await replay.run(flights(data_file()), from_factor(speed), stop)
        nursery.cancel_scope.cancel(reason="all is sent")
    replay.report_totals()


if __name__ == "__main__":
    address, flights_topic, factor = sys.argv[1:]
    trio.run(main, address, flights_topic, factor)
