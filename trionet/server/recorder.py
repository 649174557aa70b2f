"""What a server reports of every request that is over, and of every connection that closed."""

from __future__ import annotations

from typing import Protocol

import attrs

from ..metrics.request_times import TimedRequest, count_finished
from .closed_connections import ClosedConnection
from .connection import Connection
from .loop_faults import LoopFaults


class Recorder(Protocol):
    """Keeps what it is given; is called in the loop, must not wait and should not raise."""

    def take(self, finished: list[TimedRequest]) -> None:
        """Take note of requests whose stamps are all set, before they are counted.

        They are of class :class:`~trionet.server.request_channel.Request`.
        """
        ...

    def throttle_ended(self, request: TimedRequest) -> None:
        """Take note that a request's channel is throttled no more; it may be over already."""
        ...

    def closed(self, closed: ClosedConnection, connection: Connection) -> None:
        """Take note of a connection that closed."""
        ...


@attrs.frozen
class Recording:
    """A recorder, if there is one: what it raises is counted and logged, and harms no connection.

    Args:
        recorder: None for none.
        faults: counts and logs what it raises.
    """

    _recorder: Recorder | None
    _faults: LoopFaults

    def count(self, finished: list[TimedRequest]) -> None:
        """Count requests whose stamps are all set, and empty the list."""
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
