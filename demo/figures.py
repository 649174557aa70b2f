"""From what was counted at two moments to what is shown. Pure: no clock, no terminal."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from trionet.broker import BrokerStatistics

#: Rates are taken over this time, so that they do not jump.
WINDOW_SECONDS = 1.0
#: So many moments are remembered.
HISTORY_LENGTH = 240
#: What is remembered of them.
REMEMBERED = ("produced_rate", "consumed_rate", "lag", "commit_lag", "delay_p99")


class Sample(NamedTuple):
    """What was counted until one moment.

    Attributes:
        seconds: since the demo began.
        broker: the broker's statistics.
        producer: the latest report of the producer.
        consumers: the latest report of the consumers.
    """

    seconds: float
    broker: BrokerStatistics
    producer: Mapping[str, Any]
    consumers: Mapping[str, Any]


class Figures(NamedTuple):
    """One moment as it is shown; rates are per second, delays in milliseconds.

    Attributes:
        produced: how many records are in the log.
        consumed: how many of them the consumers have taken; that is the group's position.
        committed: how many of them would not be read again if all consumers were to start anew.
        members: the partitions of each consumer in the group.
        generation: how often the group has divided the partitions.
        histories: by name of :data:`REMEMBERED`, the newest last; None where nothing was known.
        times: the seconds of their moments.
    """

    seconds: float
    clock: str
    produced: int
    produced_rate: float
    consumed: int
    consumed_rate: float
    committed: int
    delay_p50: float | None
    delay_p99: float | None
    members: Mapping[str, Sequence[int]]
    generation: int
    request_rates: dict[str, float]
    bytes_in_rate: float
    bytes_out_rate: float
    connections: int
    idle_ratio: float
    request_queue: int
    histories: Mapping[str, Sequence[float | None]]
    times: Sequence[float]

    @property
    def lag(self) -> int:
        """How many records are between the position of the group and the end of the log."""
        return self.produced - self.consumed

    @property
    def commit_lag(self) -> int:
        """How many records are between what is committed and the end of the log."""
        return self.produced - self.committed

    @property
    def requests_rate(self) -> float:
        return sum(self.request_rates.values())

    def is_divided(self, partitions: int) -> bool:
        """Whether each of so many partitions is read by one of the members."""
        return sorted(chain.from_iterable(self.members.values())) == list(range(partitions))


class Window:
    """The samples of the last second, and the rates that follow from them."""

    def __init__(self, first: Sample) -> None:
        self._samples = deque([first])
        self._histories: dict[str, deque[float | None]] = {
            name: deque(maxlen=HISTORY_LENGTH) for name in REMEMBERED
        }
        self._times: deque[float] = deque(maxlen=HISTORY_LENGTH)

    def add(self, sample: Sample) -> Figures:
        """Take the newest sample; what to show now."""
        samples = self._samples
        samples.append(sample)
        while len(samples) > 2 and sample.seconds - samples[1].seconds >= WINDOW_SECONDS:
            samples.popleft()
        figures = _figures(samples[0], sample)
        for name, values in self._histories.items():
            values.append(getattr(figures, name))
        self._times.append(sample.seconds)
        histories = {name: tuple(values) for name, values in self._histories.items()}
        return figures._replace(histories=histories, times=tuple(self._times))


def _figures(old: Sample, new: Sample) -> Figures:
    seconds = max(new.seconds - old.seconds, 1e-9)
    before, now = old.broker, new.broker

    def rate(name: str, reports: tuple[Mapping[str, Any], Mapping[str, Any]]) -> float:
        return float(reports[1].get(name, 0) - reports[0].get(name, 0)) / seconds

    produced = [_produced(sample) for sample in (old, new)]

    loop_seconds = max(now.loop.seconds - before.loop.seconds, 1e-9)
    return Figures(
        seconds=new.seconds,
        clock=new.producer.get("clock", ""),
        produced=produced[1],
        produced_rate=(produced[1] - produced[0]) / seconds,
        consumed=new.consumers.get("consumed", 0),
        consumed_rate=rate("consumed", (old.consumers, new.consumers)),
        committed=new.consumers.get("committed", 0),
        delay_p50=new.consumers.get("delay_p50_ms"),
        delay_p99=new.consumers.get("delay_p99_ms"),
        members=new.consumers.get("members", {}),
        generation=new.consumers.get("generation", 0),
        request_rates={api: rate(api, (before.calls, now.calls)) for api in now.calls},
        bytes_in_rate=(now.server.bytes_received - before.server.bytes_received) / seconds,
        bytes_out_rate=(now.server.bytes_sent - before.server.bytes_sent) / seconds,
        connections=now.server.connections,
        idle_ratio=min(1, (now.loop.idle_seconds - before.loop.idle_seconds) / loop_seconds),
        request_queue=now.server.request_queue_size,
        histories={},
        times=(),
    )


def _produced(sample: Sample) -> int:
    """How many records are in the log.

    The consumers' word comes first: what they have consumed is of the same moment, while a report
    of the producer may be older than that.
    """
    found: int = sample.consumers.get("end", sample.producer.get("produced", 0))
    return found
