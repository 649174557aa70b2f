"""Where the demo shows itself: the dashboard on a terminal, plain lines everywhere else."""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterable
from typing import Protocol

import trio

import trionet
from demo.analysis import Analysis
from demo.figures import Figures
from demo.lines import group_line, plain_line
from demo.telemetry import Telemetry

PLAIN_SECONDS = 1.0


class Shown(Protocol):
    """What is to be shown.

    Attributes:
        title: which flights, and how fast.
        figures: of now; None before there are any.
        partitions: how many the topic has.
        analysis: the delays by Spark.
        telemetry: minutes of the broker's request log by Spark.
    """

    title: str
    figures: Figures | None
    partitions: int
    analysis: Analysis
    telemetry: Telemetry

    async def begun(self) -> None:
        """Wait until the first flight is in the log; there are figures from then on."""
        ...


class Front(Protocol):
    """Shows a story."""

    async def run(self, story: Shown) -> None:
        """Show it until cancelled, or until the user has seen enough."""
        ...


class PlainLines:
    """A line a second on standard output, and more when something has happened."""

    async def run(self, story: Shown) -> None:
        lines = [story.title]
        printed: list[str] = []
        divided = ""
        await story.begun()
        while True:
            await trio.sleep(PLAIN_SECONDS)
            figures = story.figures
            assert figures is not None, "they come sooner than the first line"
            lines.append(plain_line(figures))
            if figures.is_divided(story.partitions) and (text := group_line(figures)) != divided:
                lines.append(f"         {text}")
                divided = text
            if (news := [*story.analysis.news(), *story.telemetry.news()]) != printed:
                lines += [f"         {line}" for line in news]
                printed = news
            # In a thread: the reader of the pipe may be slow.
            await trio.to_thread.run_sync(write, lines)
            lines = []


def write(lines: Iterable[str]) -> None:
    """Print lines.

    Raises:
        BrokenPipeError: the reader of standard output is gone.
    """
    try:
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()
    except OSError as error:
        if error.errno == errno.EIO:  # the terminal is gone
            raise BrokenPipeError(*error.args) from error
        raise


def front_for(broker: trionet.Broker, pipeline_topic: str | None = None) -> Front:
    """The dashboard if there is an interactive terminal, else plain lines.

    Args:
        broker: the one that is shown.
        pipeline_topic: of the results of the telemetry pipeline, if it runs.
    """
    # Loaded here, while the producer and the consumers start beside us.
    from trionet.dashboard.terminal._ansi import is_interactive

    if not is_interactive():
        return PlainLines()
    from demo.on_dashboard import OnDashboard

    return OnDashboard(broker, pipeline_topic)
