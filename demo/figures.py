"""From what was counted at two moments to what is shown. Pure: no clock, no terminal."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

from trionet.broker import BrokerStatistics

#: Rates are taken over this time, so that they do not jump.
WINDOW_SECONDS = 1.0
HISTORY_LENGTH = 60


class Sample(NamedTuple):
    """What was counted until one moment.

    Attributes:
        seconds: since the demo began.
        broker: the broker's statistics.
        producer: the latest report of the producer.
        consumer: the latest report of the consumer.
    """

    seconds: float
    broker: BrokerStatistics
    producer: Mapping[str, Any]
    consumer: Mapping[str, Any]


class Figures(NamedTuple):
    """One moment as it is shown; rates are per second, delays in milliseconds.

    ``history`` holds the bytes that came in between a moment and the next, the newest last.
    """

    seconds: float
    clock: str
    produced: int
    produced_rate: float
    consumed: int
    consumed_rate: float
    lag: int
    delay_p50: float | None
    delay_p99: float | None
    request_rates: dict[str, float]
    bytes_in_rate: float
    bytes_out_rate: float
    connections: int
    idle_ratio: float
    loop_held_max: float
    request_queue: int
    log_bytes: int
    history: tuple[int, ...]

    @property
    def requests_rate(self) -> float:
        return sum(self.request_rates.values())


class Window:
    """The samples of the last second, and the rates that follow from them."""

    def __init__(self, first: Sample) -> None:
        self._samples = deque([first])
        self._history = deque([0] * HISTORY_LENGTH, HISTORY_LENGTH)

    def add(self, sample: Sample) -> Figures:
        """Take the newest sample; what to show now."""
        samples = self._samples
        self._history.append(
            sample.broker.server.bytes_received - samples[-1].broker.server.bytes_received
        )
        samples.append(sample)
        while len(samples) > 2 and sample.seconds - samples[1].seconds >= WINDOW_SECONDS:
            samples.popleft()
        return _figures(samples[0], sample, tuple(self._history))


def _figures(old: Sample, new: Sample, history: tuple[int, ...]) -> Figures:
    seconds = max(new.seconds - old.seconds, 1e-9)
    before, now = old.broker, new.broker

    def rate(name: str, reports: tuple[Mapping[str, Any], Mapping[str, Any]]) -> float:
        return float(reports[1].get(name, 0) - reports[0].get(name, 0)) / seconds

    loop_seconds = max(now.loop.seconds - before.loop.seconds, 1e-9)
    return Figures(
        seconds=new.seconds,
        clock=new.producer.get("clock", ""),
        produced=new.producer.get("produced", 0),
        produced_rate=rate("produced", (old.producer, new.producer)),
        consumed=new.consumer.get("consumed", 0),
        consumed_rate=rate("consumed", (old.consumer, new.consumer)),
        lag=new.consumer.get("lag", 0),
        delay_p50=new.consumer.get("delay_p50_ms"),
        delay_p99=new.consumer.get("delay_p99_ms"),
        request_rates={api: rate(api, (before.calls, now.calls)) for api in now.calls},
        bytes_in_rate=(now.server.bytes_received - before.server.bytes_received) / seconds,
        bytes_out_rate=(now.server.bytes_sent - before.server.bytes_sent) / seconds,
        connections=now.server.connections,
        idle_ratio=min(1, (now.loop.idle_seconds - before.loop.idle_seconds) / loop_seconds),
        loop_held_max=now.loop.lag_max_us / 1000,
        request_queue=now.server.request_queue_size,
        log_bytes=now.log_bytes,
        history=history,
    )
