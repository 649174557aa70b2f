"""Recording of completed requests and closed connections, and logging of unexpected errors.

Only cancellation ends a loop: an exception in a recorder, a metrics hook or a quota's callback must
not close all connections (Kafka catches Throwable around the turn of a Processor).
"""

# Compiled by mypyc.

from __future__ import annotations

import logging
import math
from typing import Final, Protocol

import trio

from ..metrics._request_times import TimedRequest, count_finished
from ._closed_connections import ClosedConnection
from ._connection import Connection

#: Without this limit, a step that fails in every turn would fill the disk with tracebacks.
SECONDS_BETWEEN_LINES: Final = 1.0


class LoopFaults:
    """A counter of unexpected errors, which logs at most one per second for each loop or hook.

    Args:
        log: the log to write to.

    Attributes:
        count: the number of errors.
    """

    def __init__(self, log: logging.LoggerAdapter[logging.Logger]) -> None:
        self.count: int = 0
        self._log = log
        self._logged: dict[str, tuple[float, int]] = {}

    def note(self, what: str, error: Exception) -> None:
        """Count an error.

        Args:
            what: the operation that failed, for the log; the server continues after the error.
            error: the exception.
        """
        self.count += 1
        at, silent = self._logged.get(what, (-math.inf, 0))
        now = trio.current_time()
        if now < at + SECONDS_BETWEEN_LINES:
            self._logged[what] = at, silent + 1
            return
        self._logged[what] = now, 0
        more = f", and {silent} more times since the last such line" if silent else ""
        self._log.error("%s failed%s; the server keeps running", what, more, exc_info=error)


class Recorder(Protocol):
    """A receiver of completed requests and closed connections, which must not wait or raise."""

    def take(self, finished: list[TimedRequest]) -> None:
        """Record finished requests, whose timestamps are all set, before they are counted.

        The requests are instances of :class:`~trionet.server._request_channel.Request`.
        """
        ...

    def throttle_ended(self, request: TimedRequest) -> None:
        """Record the end of a throttle; the request may already be complete."""
        ...

    def closed(self, closed: ClosedConnection, connection: Connection) -> None:
        """Record a closed connection."""
        ...


class Recording:
    """A wrapper of the recorders, whose exceptions are counted and logged, not raised.

    Recorders come and go in any order, and also from within a call of their own.

    Args:
        recorder: the recorder from the start, or None.
        faults: counts and logs the exceptions of the recorders.

    Attributes:
        recorders: the recorders.
    """

    __slots__ = ("_faults", "recorders")

    def __init__(self, recorder: Recorder | None, faults: LoopFaults) -> None:
        self.recorders: tuple[Recorder, ...] = () if recorder is None else (recorder,)
        self._faults = faults

    def add(self, recorder: Recorder) -> None:
        """Record with one more recorder from now on."""
        self.recorders = (*self.recorders, recorder)

    def remove(self, recorder: Recorder) -> None:
        """Record without a recorder from now on."""
        self.recorders = tuple(each for each in self.recorders if each is not recorder)

    def count(self, finished: list[TimedRequest]) -> None:
        """Record and count requests whose timestamps are all set, and empty the list."""
        for recorder in self.recorders:
            try:
                recorder.take(finished)
            except Exception as error:  # boundary: the recorder
                self._faults.note("the recorder of requests", error)
        count_finished(finished)

    def throttle_ended(self, request: TimedRequest) -> None:
        """Record the end of a throttle; see :meth:`Recorder.throttle_ended`."""
        for recorder in self.recorders:
            try:
                recorder.throttle_ended(request)
            except Exception as error:  # boundary: the recorder
                self._faults.note("the recorder of requests", error)

    def closed(self, closed: ClosedConnection, connection: Connection) -> None:
        """Record a closed connection; see :meth:`Recorder.closed`."""
        for recorder in self.recorders:
            try:
                recorder.closed(closed, connection)
            except Exception as error:  # boundary: the recorder
                self._faults.note("the recorder of connections", error)
