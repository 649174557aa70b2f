"""``python3 demo``: a year of flights through the broker, and a check that none was lost.

The broker runs here, inside a trio program; producer and consumer are processes of their own that
speak to it with a foreign client (librdkafka). At the end what was consumed is compared with what
was produced, record by record.

Exit status: 0 if they are the same, 1 if not or if something failed, 2 for wrong arguments, 130
after a second Ctrl-C.
"""

from __future__ import annotations

import argparse
import logging
import math
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import NamedTuple

import trio

import trionet
from demo.child import Child, ChildFailed, open_child
from demo.dataset import FLIGHTS, data_file
from demo.figures import Figures, Sample, Window
from demo.lines import summary
from demo.screen import Screen, open_screen
from demo.tally import differences
from trionet.broker import BrokerStatistics

TOPIC = "flights"
PARTITIONS = 6
#: One of its days in a second of ours.
DEFAULT_SPEED = 86_400.0
#: How long the two processes may take for their last records, once they are asked to stop.
END_SECONDS_MAX = 30.0


class Result(NamedTuple):
    """How it ended."""

    figures: Figures
    broker: BrokerStatistics
    errors: list[str]
    keys: int


class Story:
    """The running demo: the broker, the two processes, and what is known of them."""

    def __init__(
        self, broker: trionet.Broker, producer: Child, consumer: Child, screen: Screen
    ) -> None:
        self._broker = broker
        self._producer = producer
        self._consumer = consumer
        self._screen = screen
        self._began = trio.current_time()
        self._window = Window(self._sample())

    async def run(self, seconds: float, interrupted: trio.Event) -> Result:
        """Show what happens until the time is over, the flights are, or the user ends it."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._show)
            with trio.move_on_after(seconds):
                async with trio.open_nursery() as waiting:
                    for event in (interrupted.wait, self._producer.finished):
                        waiting.start_soon(_cancel_after, event, waiting.cancel_scope)
            with trio.move_on_after(END_SECONDS_MAX):
                await self._producer.stop()
                await self._consumer.stop()
            nursery.cancel_scope.cancel(reason="the demo is over")
        return self._result()

    async def _show(self) -> None:
        while True:
            await trio.sleep(self._screen.seconds_between)
            await self._screen.show(self._window.add(self._sample()))

    def _sample(self) -> Sample:
        return Sample(
            trio.current_time() - self._began,
            self._broker.statistics(),
            self._producer.latest,
            self._consumer.latest,
        )

    def _result(self) -> Result:
        sample = self._sample()
        errors = [
            f"The {child.name} did not finish within {END_SECONDS_MAX:.0f} s."
            for child in (self._producer, self._consumer)
            if not child.is_finished
        ]
        produced = sample.producer.get("totals", {})
        if not errors:
            refused = sample.producer["errors"].items()
            errors = [f"Not produced: {count} records: {error}" for error, count in refused]
            errors += differences(produced, sample.consumer["totals"])
        return Result(self._window.add(sample), sample.broker, errors, len(produced))


async def play(speed: float, seconds: float) -> Result:
    """Run the whole demo.

    Args:
        speed: how much faster than in 2013; infinite for as fast as possible.
        seconds: how long; infinite for the whole year.

    Raises:
        ChildFailed: a process ended early (in a group).
        KeyboardInterrupt: the user did not want to wait for the end.
    """
    interrupted = trio.Event()
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_watch_signals, signals, interrupted)
            async with trionet.open_broker() as broker:
                result = await _play(broker, speed, seconds, interrupted)
            nursery.cancel_scope.cancel(reason="the demo is over")
    return result


async def _play(
    broker: trionet.Broker, speed: float, seconds: float, interrupted: trio.Event
) -> Result:
    address = broker.bootstrap_servers
    factor = "0" if math.isinf(speed) else str(speed)
    async with open_child("producer", address, TOPIC, str(PARTITIONS), factor) as producer:
        await producer.first_report()  # the topic is there now
        async with open_child("consumer", address, TOPIC) as consumer:
            screen = open_screen(title(address, speed))
            try:
                return await Story(broker, producer, consumer, screen).run(seconds, interrupted)
            finally:
                screen.close()


async def _watch_signals(signals: AsyncIterator[int], interrupted: trio.Event) -> None:
    async for _ in signals:
        if interrupted.is_set():
            raise KeyboardInterrupt
        interrupted.set()


async def _cancel_after(event: Callable[[], Awaitable[None]], scope: trio.CancelScope) -> None:
    await event()
    scope.cancel(reason="the story has ended")


def title(address: str, speed: float) -> str:
    pace = "as fast as possible" if math.isinf(speed) else f"at {speed:,.12g} times their speed"
    return f"trionet broker at {address}: {FLIGHTS:,} flights of 2013, {pace}"


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python3 demo",
        description="Replays the flights of 2013 into a trionet broker, consumes them back with "
        "another process, and checks every record. Ctrl-C ends it.",
        epilog="Another story: `python3 demo netstrings` serves another protocol than Kafka's.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--speed",
        type=_speed,
        default=DEFAULT_SPEED,
        metavar="FACTOR",
        help="how much faster than in 2013, or max for as fast as possible "
        f"(default: {DEFAULT_SPEED:.0f}, a day in a second)",
    )
    parser.add_argument(
        "--for",
        type=_seconds,
        default=math.inf,
        dest="seconds",
        metavar="SECONDS",
        help="end after so long (default: when the year is over)",
    )
    return parser.parse_args(arguments)


def _speed(text: str) -> float:
    return math.inf if text == "max" else _above_0(text, "a number above 0, or max")


def _seconds(text: str) -> float:
    return _above_0(text, "a number above 0")


def _above_0(text: str, wanted: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}")
    return value


def main() -> int:
    arguments = parse()
    if sys.platform == "win32":
        print("demo: it needs Linux or macOS", file=sys.stderr)
        return 1
    # A warning about one connection is worth a line in a log; here it would tear the picture.
    logging.getLogger("trionet").setLevel(logging.ERROR)
    try:
        data_file()
    except FileNotFoundError as missing:
        print(f"demo: {missing}; `python3 demo` installs it", file=sys.stderr)
        return 1
    status = 0
    try:
        result = trio.run(play, arguments.speed, arguments.seconds)
    except* ChildFailed as group:
        for failure in leaves(group):
            print(f"demo: {failure}", file=sys.stderr)
        status = 1
    except* KeyboardInterrupt:
        status = 130
    except* BrokenPipeError:
        # Whoever read our output has had enough of it, as `head` has.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    else:
        print("\n".join(summary(*result)))
        status = 1 if result.errors else 0
    return status


def leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    """The errors of a group and of the groups in it."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from leaves(error)
        else:
            yield error


if __name__ == "__main__":
    sys.exit(main())
