"""The child's end of the line: reports as JSON lines on stdout, one word to hear on stdin.

``stop`` asks the child to finish its work and give a last report. The end of stdin means that the
demo is gone, whatever ended it, and so the child goes too.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time

REPORT_SECONDS = 0.2


class Reporter:
    """Says how far the child is, and knows whether it shall stop."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._due = 0.0
        threading.Thread(target=self._listen, name="listener", daemon=True).start()

    @property
    def must_stop(self) -> bool:
        return self._stop.is_set()

    @property
    def is_due(self) -> bool:
        """Whether it is time for a report."""
        return time.monotonic() >= self._due

    def wait(self, seconds: float) -> None:
        """Return after so many seconds, when a report is due, or when the child shall stop."""
        self._stop.wait(max(0.0, min(seconds, self._due - time.monotonic())))

    def report(self, **figures: object) -> None:
        print(json.dumps(figures), flush=True)
        self._due = time.monotonic() + REPORT_SECONDS

    def _listen(self) -> None:
        # Not sys.stdin: an interpreter that exits must not wait for the lock of a blocked reader.
        while os.read(sys.__stdin__.fileno() if sys.__stdin__ else 0, 64):
            self._stop.set()
        os._exit(1)
