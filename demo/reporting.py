"""The child's end of the line: reports as JSON lines on stdout, one word to hear on stdin.

``stop`` asks the child to finish its work and give a last report. The end of stdin means that the
demo is gone, whatever ended it, and so the child goes too. Children on trio use :func:`report` and
:func:`hear`, the one with Spark a :class:`Reporter`.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time

import trio

REPORT_SECONDS = 0.2


def report(**figures: object) -> None:
    """Say how far the child is; the last report has ``totals``."""
    print(json.dumps(figures), flush=True)


async def hear(stop: trio.Event) -> None:
    """Set the event when the child shall stop; until cancelled, or until the demo is gone."""
    async with trio.lowlevel.FdStream(os.dup(_stdin())) as stdin:
        async for _ in stdin:
            stop.set()
    # The demo and its broker are gone, so there is no one to report to and nothing to wait for.
    os._exit(1)


def keep_reports_apart() -> None:
    """From now on whatever this process starts prints to stderr: what a JVM says is no report."""
    sys.stdout = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)


class Reporter:
    """Says how far the child is, and knows whether it shall stop; without trio."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._due = 0.0
        threading.Thread(target=self._listen, name="listener", daemon=True).start()

    @property
    def must_stop(self) -> bool:
        return self._stop.is_set()

    def wait(self, seconds: float) -> None:
        """Return after so many seconds, when a report is due, or when the child shall stop."""
        self._stop.wait(max(0.0, min(seconds, self._due - time.monotonic())))

    def report(self, **figures: object) -> None:
        report(**figures)
        self._due = time.monotonic() + REPORT_SECONDS

    def _listen(self) -> None:
        # Not sys.stdin: an interpreter that exits must not wait for the lock of a blocked reader.
        while os.read(_stdin(), 64):
            self._stop.set()
        os._exit(1)


def _stdin() -> int:
    return sys.__stdin__.fileno() if sys.__stdin__ else 0
