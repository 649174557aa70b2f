"""The compiled base of the producer: its one plain function that is called for every record."""

# Compiled by mypyc.

from __future__ import annotations

from ..._util._compiling import mypyc_attr
from ...protocol.records._types import Headers
from ._record_appender import RecordAppender
from .delivery._delivery import Delivery


@mypyc_attr(allow_interpreted_subclasses=True)
class NowaitProducer:
    """The compiled part of :class:`.Producer`.

    A base class because an interpreted function around the compiled one would take a third of its
    time. No more belongs here: compiled code that calls methods of an interpreted subclass is as
    slow as Python, and mypyc 2.4 passes zeros in place of default arguments that are left out.

    Args:
        appender: does the work.
    """

    def __init__(self, appender: RecordAppender) -> None:
        self._appender = appender

    def send_nowait(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> Delivery:
        """Append a record without waiting; its delivery reports the result.

        Nothing is sent while no task waits: a task that calls this in a loop has to wait from time
        to time, in :meth:`enqueue` for example.

        Args:
            topic: as for :meth:`send`, like the others.
            value: as there.
            key: as there.
            headers: as there.
            partition: as there.
            timestamp: as there.

        Returns:
            The record's delivery, to be awaited for where it was written.

        Raises:
            trio.WouldBlock: ``buffer.memory`` has no space for it, or other tasks wait for it; or
                the topic or the partition is not known yet.
            RecordTooLargeError: the record exceeds a limit.
            TypeError, ValueError: as :meth:`send`.
            trio.ClosedResourceError: the producer is closed.
        """
        return self._appender.append(topic, value, key, headers, partition, timestamp)
