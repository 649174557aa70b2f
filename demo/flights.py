"""``python3 demo``: a year of flights through the broker, and a check that none was lost.

The broker runs here, inside a trio program; producer and consumer are processes of their own that
speak to it with a foreign client (librdkafka). At the end what was consumed is compared with what
was produced, record by record.

Where there are Java and PySpark, Spark computes the delays by carrier and route meanwhile, from
topic to topic; the demo reads its results with trionet's own client.

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
from functools import partial
from typing import NamedTuple

import trio

import trionet
from demo.analysis import Analysis, no_spark, open_analysis
from demo.child import Child, ChildFailed, open_child
from demo.dataset import FLIGHTS, data_file
from demo.figures import Figures, Sample, Window
from demo.lines import summary
from demo.screen import Screen, open_screen
from demo.tally import differences
from demo.windows import as_factor
from trionet.broker import BrokerStatistics

TOPIC = "flights"
PARTITIONS = 6
#: One of its days in a second of ours.
DEFAULT_SPEED = 86_400.0
#: How long the two processes may take for their last records, once they are asked to stop.
END_SECONDS_MAX = 30.0
#: How long Spark may take for what is left when the year is over; at the highest speed it has
#: hardly started then.
SPARK_SECONDS_MAX = 300.0


class Result(NamedTuple):
    """How it ended."""

    figures: Figures
    broker: BrokerStatistics
    errors: list[str]
    keys: int
    analysis: Analysis


class Story:
    """The running demo: the broker, the two processes, and what is known of them."""

    def __init__(
        self,
        broker: trionet.Broker,
        producer: Child,
        consumer: Child,
        analysis: Analysis,
        screen: Screen,
    ) -> None:
        self._broker = broker
        self._producer = producer
        self._consumer = consumer
        self._analysis = analysis
        self._screen = screen
        self._began = trio.current_time()
        self._window = Window(self._sample())

    async def run(self, seconds: float, interrupted: trio.Event) -> Result:
        """Show what happens until the time is over, the flights are, or the user ends it."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._show)
            with trio.move_on_after(seconds):
                async with trio.open_nursery() as waiting:
                    for event in (interrupted.wait, self._all_is_done):
                        waiting.start_soon(_cancel_after, event, waiting.cancel_scope)
            # Spark is not waited for: who ends it before the year is over wants the end.
            with trio.move_on_after(END_SECONDS_MAX):
                await self._producer.stop()
                await self._consumer.stop()
            nursery.cancel_scope.cancel(reason="the demo is over")
        return self._result()

    async def _all_is_done(self) -> None:
        """Wait for the end of the year, and until everybody has taken all of it."""
        await self._producer.finished()
        with trio.move_on_after(END_SECONDS_MAX):
            await self._consumer.stop()
        with trio.move_on_after(SPARK_SECONDS_MAX):
            await self._analysis.finish()

    async def _show(self) -> None:
        while True:
            await trio.sleep(self._screen.seconds_between)
            await self._screen.show(self._window.add(self._sample()), self._analysis)

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
        figures = self._window.add(sample)
        return Result(figures, sample.broker, errors, len(produced), self._analysis)


async def play(speed: float, seconds: float, *, has_spark: bool) -> Result:
    """Run the whole demo.

    Args:
        speed: how much faster than in 2013; infinite for as fast as possible.
        seconds: how long; infinite for the whole year.
        has_spark: whether Spark computes delays meanwhile, if it can.

    Raises:
        ChildFailed: a process ended early (in a group).
        KeyboardInterrupt: the user did not want to wait for the end.
    """
    interrupted = trio.Event()
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_watch_signals, signals, interrupted)
            async with trionet.open_broker() as broker:
                result = await _play(broker, speed, seconds, interrupted, has_spark=has_spark)
            nursery.cancel_scope.cancel(reason="the demo is over")
    return result


async def _play(
    broker: trionet.Broker,
    speed: float,
    seconds: float,
    interrupted: trio.Event,
    *,
    has_spark: bool,
) -> Result:
    address = broker.bootstrap_servers
    async with open_child(
        "producer", address, TOPIC, str(PARTITIONS), as_factor(speed)
    ) as producer:
        await producer.first_report()  # the topic is there now
        async with (
            open_child("consumer", address, TOPIC) as consumer,
            open_analysis(address, TOPIC, speed, is_wanted=has_spark) as analysis,
        ):
            screen = open_screen(title(address, speed))
            try:
                story = Story(broker, producer, consumer, analysis, screen)
                return await story.run(seconds, interrupted)
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
    parser.add_argument(
        "--spark",
        action=argparse.BooleanOptionalAction,
        help="compute delays with Spark meanwhile; --spark installs PySpark, too, if it is not"
        " there (default: if Java and PySpark are there)",
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
    if arguments.spark and (obstacle := no_spark()):
        print(f"demo: {obstacle}", file=sys.stderr)
        return 1
    status = 0
    has_spark = arguments.spark is not False
    try:
        result = trio.run(partial(play, has_spark=has_spark), arguments.speed, arguments.seconds)
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
        status = tell(result)
    return status


def tell(result: Result) -> int:
    """Print how it ended; the exit status."""
    figures, broker, errors, keys, analysis = result
    print("\n".join([*analysis.summary(), *summary(figures, broker, errors, keys)]))
    if analysis.has_failed:
        print(f"demo: {analysis.obstacle}", file=sys.stderr)
    return 1 if errors or analysis.has_failed else 0


def leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    """The errors of a group and of the groups in it."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from leaves(error)
        else:
            yield error


if __name__ == "__main__":
    sys.exit(main())
