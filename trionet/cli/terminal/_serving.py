"""What the commands that run a broker share: log lines, hints, and the signals that stop them."""

from __future__ import annotations

import errno
import logging
import signal
import sys
from collections.abc import AsyncIterator

import trio

from ._streams import OutputClosedError, discard_output


def start_logging(level: str) -> None:
    """Write log lines of ``level`` (a name) and above to standard error."""
    logging.basicConfig(
        stream=sys.stderr,
        level=level.upper(),
        format="%(asctime)s %(levelname)s %(message)s",
    )


def port_hint(error: OSError) -> str:
    """Return what to do if the port is in use, after the error's own words; empty otherwise."""
    if error.errno != errno.EADDRINUSE:
        return ""
    return "; another program has this port: --listen HOST:PORT takes another one, 0 a free one"


def announce(line: str) -> None:
    """Print the line that reports that a broker is ready, if there is or was a reader."""
    try:
        print(line, flush=True)
    except (BrokenPipeError, OutputClosedError):
        discard_output()  # no program waits for the line, but clients may need the broker


async def watch_signals(
    signals: AsyncIterator[int],
    log: logging.Logger,
    ready: trio.Event,
    stop: trio.Event,
    scope: trio.CancelScope,
) -> None:
    """Stop gracefully on the first SIGTERM or Ctrl-C once the broker is ready; cancel on any other.

    Args:
        signals: from ``trio.open_signal_receiver``.
        log: where signals are logged.
        ready: set by the caller once the broker accepts connections.
        stop: set by the first signal.
        scope: cancelled by another signal, or by one while the broker is starting.
    """
    async for number in signals:
        log.info("%s: stopping", signal.Signals(number).name)
        if stop.is_set() or not ready.is_set():
            scope.cancel(reason="a second signal, or one while the broker is starting")
            return
        stop.set()
