"""Decompresses large batches in a thread, and small ones at once, so that none holds the loop."""

from __future__ import annotations

from typing import Final

import trio

from ...._util._off_loop import computing_threads
from ....errors import WireFormatError
from ....protocol.records._batch import BatchHeader
from ._decompressed_batch import OpenedBatch

#: What inflates at once: gzip, the slowest codec, takes 0.85 ms for so much of what comes out, and
#: zstd 0.3, lz4 0.1 to 0.3, snappy 0.2. A thread costs 0.1 ms.
INFLATED_BYTES_MAX: Final = 256 * 1024

#: A batch that is larger on the wire is taken to inflate to more, and is not tried at once: JSON
#: of so many bytes in gzip is just that.
PACKED_BYTES_MAX: Final = 64 * 1024


def opened_at_once(records: memoryview, start: int, header: BatchHeader) -> OpenedBatch | None:
    """Open a batch if that takes about a millisecond at most; None for an :class:`Inflation`.

    Args:
        records: what holds it.
        start: where it begins.
        header: its header.
    """
    if not header.codec:
        return OpenedBatch(records, start)
    if header.size > PACKED_BYTES_MAX:
        return None
    try:
        return OpenedBatch(records, start, INFLATED_BYTES_MAX)
    except WireFormatError:
        return None  # it grows to more, or is malformed


class Inflation:
    """A batch that is opened in a thread.

    Args:
        records: what holds it; nothing else is written there.
        start: where it begins.

    Attributes:
        opened: the batch, as soon as it is.
        error: why it cannot be.
    """

    def __init__(self, records: memoryview, start: int) -> None:
        self._records = records
        self._start = start
        self.opened: OpenedBatch | None = None
        self.error: WireFormatError | None = None

    async def run(self) -> None:  # noqa: ASYNC910 -- a thread is waited for
        """Open the batch; as many are opened at a time as there are processors.

        Cancellation: nothing has begun, or this waits for the end of the thread, and the batch is
        open.
        """
        try:
            self.opened = await trio.to_thread.run_sync(
                OpenedBatch, self._records, self._start, limiter=computing_threads()
            )
        except WireFormatError as error:
            self.error = error
