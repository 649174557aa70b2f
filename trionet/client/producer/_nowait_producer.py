"""The compiled base of the producer: its one plain function that is called for every record."""

# Compiled by mypyc.

from __future__ import annotations

from ..._util._compiling import mypyc_attr
from ...protocol.records._types import Headers
from ._record_appender import RecordAppender
from .delivery._delivery import Delivery


@mypyc_attr(allow_interpreted_subclasses=True)
class NowaitProducer:
    """The base of :class:`.Producer`.

    An interpreted function around the compiled one would take a third of its time. More does not
    belong here: compiled code that calls methods of an interpreted subclass does it as slowly as
    Python, and mypyc 2.4 hands on zeros in place of default arguments that are left out.

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
        """Take a record to be sent; what becomes of it, its delivery tells.

        Nothing is sent by tasks that never wait: who makes many of these has to wait at times, for
        :meth:`enqueue`, say.

        Args:
            topic: as these of :meth:`send`.
            value: as there.
            key: as there.
            headers: as there.
            partition: as there.
            timestamp: as there.

        Returns:
            What can be awaited for where it was written.

        Raises:
            trio.WouldBlock: ``buffer.memory`` has no room for it, or others wait for that; or the
                topic or the partition is not known yet.
            RecordTooLargeError: the record exceeds a limit.
            TypeError, ValueError: as :meth:`send`.
            trio.ClosedResourceError: the producer is closed.
        """
        return self._appender.append(topic, value, key, headers, partition, timestamp)
