"""``python3 demo``: a year of flights through the broker, and a check that none was lost.

The broker runs here, inside a trio program, and on a terminal the dashboard on top of it. The
producer and the consumers, whose group divides the partitions anew whenever one of them comes or
goes, are processes of their own, so that the broker's loop has only the broker's work. At the end
what was consumed is compared with what was produced, record by record.

Where there are Java and PySpark, Spark computes the delays by carrier and route meanwhile, from
topic to topic; with ``--telemetry`` a second Spark makes minutes of the broker's own request log,
which the dashboard shows.

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
from demo.front import Front, front_for, write
from demo.lines import summary
from demo.tally import differences
from demo.telemetry import LOG, RESULTS, Telemetry, open_telemetry
from demo.windows import as_factor
from trionet.broker import BrokerStatistics
from trionet.client.admin import NewTopic

TOPIC = "flights"
PARTITIONS = 6
#: One of its days in a second of ours.
DEFAULT_SPEED = 86_400.0
#: How often a consumer joins or leaves.
DEFAULT_CHANGE_SECONDS = 8.0
#: How often the figures are looked at.
LOOK_SECONDS = 0.25
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
    telemetry: Telemetry


class Story:
    """The running demo: the broker, the two processes, and what is known of them.

    Attributes:
        title: which flights, and how fast.
        figures: of now; None before there are any.
        partitions: how many the topic has.
        analysis: the delays by Spark.
        telemetry: minutes of the broker's request log by Spark.
    """

    def __init__(
        self,
        title: str,
        broker: trionet.Broker,
        producer: Child,
        consumers: Child,
        analysis: Analysis,
        telemetry: Telemetry,
    ) -> None:
        self.title = title
        self.figures: Figures | None = None
        self.partitions = PARTITIONS
        self.analysis = analysis
        self.telemetry = telemetry
        self._broker = broker
        self._producer = producer
        self._consumers = consumers
        self._began = trio.current_time()
        self._window = Window(self._sample())

    async def run(self, front: Front, seconds: float, interrupted: trio.Event) -> Result:
        """Show what happens until the time is over, the flights are, or the user ends it."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._look)
            nursery.start_soon(self._show, front, interrupted)
            async with trio.open_nursery() as waiting:
                for is_over in (interrupted.wait, partial(self._all_is_done, seconds)):
                    waiting.start_soon(_cancel_after, is_over, waiting.cancel_scope)
            # Spark is not waited for: a user who stops the demo early wants it to stop.
            with trio.move_on_after(END_SECONDS_MAX):
                await self._producer.stop()
                await self._consumers.stop()
            nursery.cancel_scope.cancel(reason="the demo is over")
        return self._result()

    async def _show(self, front: Front, interrupted: trio.Event) -> None:
        await front.run(self)
        interrupted.set()  # the user has left

    async def begun(self) -> None:
        """Wait until the first flight is in the log."""
        await self._producer.first_report()

    async def _all_is_done(self, seconds: float) -> None:
        """Wait until the time is over, or all flights of the year have been processed."""
        await self.begun()
        with trio.move_on_after(seconds):
            await self._producer.finished()
            with trio.move_on_after(END_SECONDS_MAX):
                await self._consumers.stop()
            with trio.move_on_after(SPARK_SECONDS_MAX):
                await self.analysis.finish()

    async def _look(self) -> None:
        await self.begun()
        self._began = trio.current_time()
        self._window = Window(self._sample())
        while True:
            self.figures = self._window.add(self._sample())
            await trio.sleep(LOOK_SECONDS)

    def _sample(self) -> Sample:
        return Sample(
            trio.current_time() - self._began,
            self._broker.statistics(),
            self._producer.latest,
            self._consumers.latest,
        )

    def _result(self) -> Result:
        sample = self._sample()
        errors = [
            f"The {child.name} did not finish within {END_SECONDS_MAX:.0f} s."
            for child in (self._producer, self._consumers)
            if not child.is_finished
        ]
        produced = sample.producer.get("totals", {})
        if not errors:
            refused = sample.producer["errors"].items()
            errors = [f"Not produced: {count} records: {error}" for error, count in refused]
            errors += differences(produced, sample.consumers["totals"])
        figures = self._window.add(sample)
        spark = self.analysis, self.telemetry
        return Result(figures, sample.broker, errors, len(produced), *spark)


async def play(
    speed: float,
    seconds: float,
    change_seconds: float,
    *,
    has_spark: bool,
    has_telemetry: bool,
    obstacle: str,
) -> Result:
    """Run the whole demo.

    Args:
        speed: how much faster than in 2013; infinite for as fast as possible.
        seconds: how long; infinite for the whole year.
        change_seconds: how often a consumer joins or leaves.
        has_spark: whether Spark computes delays meanwhile, if it can.
        has_telemetry: whether Spark makes minutes of the broker's request log.
        obstacle: why Spark cannot run; else empty.

    Raises:
        ChildFailed: a process ended early (in a group).
        KeyboardInterrupt: the user did not want to wait for the end.
    """
    interrupted = trio.Event()
    with trio.open_signal_receiver(*ending_signals()) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_watch_signals, signals, interrupted)
            settings = {"request.log.topic": LOG} if has_telemetry else {}
            async with trionet.open_broker(settings) as broker:
                address = broker.bootstrap_servers
                await _make_topic(address)
                async with (
                    open_child("producer", address, TOPIC, as_factor(speed)) as producer,
                    open_child("consumers", address, TOPIC, str(change_seconds)) as consumers,
                    open_analysis(
                        address,
                        TOPIC,
                        speed,
                        producer.first_report,
                        is_wanted=has_spark,
                        obstacle=obstacle,
                    ) as analysis,
                    open_telemetry(
                        address, producer.first_report, is_wanted=has_telemetry
                    ) as telemetry,
                ):
                    spark = analysis, telemetry
                    story = Story(title(address, speed), broker, producer, consumers, *spark)
                    front = front_for(broker, RESULTS if has_telemetry else None)
                    result = await story.run(front, seconds, interrupted)
            nursery.cancel_scope.cancel(reason="the demo is over")
    return result


async def _make_topic(bootstrap_servers: str) -> None:
    async with trionet.open_admin(bootstrap_servers) as admin:
        (await admin.create_topics([NewTopic(TOPIC, PARTITIONS)])).checked()


def ending_signals() -> Iterator[signal.Signals]:
    """Those that end it; a closed terminal does not if SIGHUP is ignored, as by ``nohup``."""
    yield from (signal.SIGINT, signal.SIGTERM)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        yield signal.SIGHUP


async def _watch_signals(signals: AsyncIterator[int], interrupted: trio.Event) -> None:
    async for number in signals:
        # Both the system and the shell send SIGHUP when a terminal closes, so the second one is
        # not a user in a hurry.
        if interrupted.is_set() and number != signal.SIGHUP:
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
        "a group of consumers that come and go, and checks every record. On a terminal the "
        "dashboard shows it; q ends it.",
        epilog="Other stories: `python3 demo netstrings` serves another protocol than Kafka's, and "
        "`python3 demo bridge` copies topics between Jafka and Kafka.",
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
        "--change",
        type=_seconds,
        default=DEFAULT_CHANGE_SECONDS,
        dest="change_seconds",
        metavar="SECONDS",
        help="how often a consumer joins or leaves, so that the group divides the partitions anew "
        f"(default: {DEFAULT_CHANGE_SECONDS:g})",
    )
    parser.add_argument(
        "--spark",
        action=argparse.BooleanOptionalAction,
        help="compute delays with Spark meanwhile; --spark installs PySpark, too, if it is not"
        " there (default: if Java and PySpark are there)",
    )
    parser.add_argument(
        "--telemetry",
        action="store_true",
        help="have a second Spark, which wants cores of its own, make minutes of the broker's own "
        "request log, for the dashboard's page 9",
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
    has_spark, has_telemetry = arguments.spark is not False, arguments.telemetry
    obstacle = no_spark() if has_spark or has_telemetry else ""
    if obstacle and (arguments.spark or has_telemetry):
        print(f"demo: {obstacle}", file=sys.stderr)
        return 1
    status = 0
    try:
        result = trio.run(
            partial(play, has_spark=has_spark, has_telemetry=has_telemetry, obstacle=obstacle),
            arguments.speed,
            arguments.seconds,
            arguments.change_seconds,
        )
        status = print_result(result)
    except* ChildFailed as group:
        for failure in leaves(group):
            print(f"demo: {failure}", file=sys.stderr)
        status = 1
    except* KeyboardInterrupt:
        status = 130
    except* BrokenPipeError:
        # The reader of our output has had enough of it, as `head` has.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    return status


def print_result(result: Result) -> int:
    """Print how it ended. Returns the exit status.

    Raises:
        BrokenPipeError: the reader of standard output is gone.
    """
    figures, broker, errors, keys, analysis, telemetry = result
    write([*analysis.summary(), *telemetry.news(), *summary(figures, broker, errors, keys)])
    failed = [each for each in (analysis, telemetry) if each.has_failed]
    for each in failed:
        print(f"demo: {each.obstacle}", file=sys.stderr)
    return 1 if errors or failed else 0


def leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    """The errors of a group and of the groups in it."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from leaves(error)
        else:
            yield error


if __name__ == "__main__":
    sys.exit(main())
