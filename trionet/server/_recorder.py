"""The interface through which a server reports completed requests and closed connections."""

# Compiled by mypyc.

from __future__ import annotations

from typing import Protocol

from ..metrics._request_times import TimedRequest, count_finished
from ._closed_connections import ClosedConnection
from ._connection import Connection
from ._loop_faults import LoopFaults


class Recorder(Protocol):
    """Receives completed requests and closed connections; must not wait or raise."""

    def take(self, finished: list[TimedRequest]) -> None:
        """Record requests whose timestamps are all set, before they are counted.

        They are of class :class:`~trionet.server._request_channel.Request`.
        """
        ...

    def throttle_ended(self, request: TimedRequest) -> None:
        """Record the end of a throttle; the request may have been completed before."""
        ...

    def closed(self, closed: ClosedConnection, connection: Connection) -> None:
        """Record a closed connection."""
        ...


class Recording:
    """Calls an optional recorder, and counts and logs its errors instead of passing them on.

    Args:
        recorder: the recorder, or None.
        faults: counts and logs the errors that it raises.
    """

    __slots__ = ("_faults", "_recorder")

    def __init__(self, recorder: Recorder | None, faults: LoopFaults) -> None:
        self._recorder = recorder
        self._faults = faults

    def count(self, finished: list[TimedRequest]) -> None:
        """Record and count requests whose timestamps are all set, and empty the list."""
        if self._recorder is not None:
            try:
                self._recorder.take(finished)
            except Exception as error:  # boundary: the recorder
                self._faults.note("the recorder of requests", error)
        count_finished(finished)

    def throttle_ended(self, request: TimedRequest) -> None:
        """See :meth:`Recorder.throttle_ended`."""
        if self._recorder is not None:
            try:
                self._recorder.throttle_ended(request)
            except Exception as error:  # boundary: the recorder
                self._faults.note("the recorder of requests", error)

    def closed(self, closed: ClosedConnection, connection: Connection) -> None:
        """See :meth:`Recorder.closed`."""
        if self._recorder is not None:
            try:
                self._recorder.closed(closed, connection)
            except Exception as error:  # boundary: the recorder
                self._faults.note("the recorder of connections", error)
