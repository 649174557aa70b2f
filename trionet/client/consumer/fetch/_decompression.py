"""Decompresses large batches in a thread and small ones inline, to keep the event loop free."""

from __future__ import annotations

from typing import Final

import trio

from ...._util._off_loop import computing_threads
from ....errors import WireFormatError
from ....protocol.records._batch import BatchHeader
from ._decompressed_batch import DecompressedBatch

#: The decompressed size up to which batches are decompressed inline: gzip, the slowest codec, takes
#: 0.85 ms for it, zstd 0.3, lz4 0.1 to 0.3, snappy 0.2. A thread costs 0.1 ms.
INFLATED_BYTES_MAX: Final = 256 * 1024

#: A batch that is larger on the wire is assumed to exceed that, and is not tried inline: JSON
#: compressed to this size by gzip decompresses to about that much.
PACKED_BYTES_MAX: Final = 64 * 1024


def decompressed_inline(
    records: memoryview, start: int, header: BatchHeader
) -> DecompressedBatch | None:
    """Open a batch if that takes at most about a millisecond; None if it needs a thread.

    Args:
        records: the buffer that contains the batch.
        start: the index at which the batch starts.
        header: the header of the batch.
    """
    if not header.codec:
        return DecompressedBatch(records, start)
    if header.size > PACKED_BYTES_MAX:
        return None
    try:
        return DecompressedBatch(records, start, INFLATED_BYTES_MAX)
    except WireFormatError:
        return None  # it is larger, or malformed: the thread finds out


class Decompression:
    """A batch that is decompressed in a thread.

    Args:
        records: the buffer that contains the batch; it is not modified.
        start: the index at which the batch starts.

    Attributes:
        opened: the batch, once it is decompressed.
        error: why it cannot be decompressed.
    """

    def __init__(self, records: memoryview, start: int) -> None:
        self._records = records
        self._start = start
        self.opened: DecompressedBatch | None = None
        self.error: WireFormatError | None = None

    async def run(self) -> None:  # noqa: ASYNC910 -- a thread is waited for
        """Decompress the batch; at most as many run at a time as there are processors.

        Cancellation: has no effect once the thread has started; otherwise nothing was done.
        """
        try:
            self.opened = await trio.to_thread.run_sync(
                DecompressedBatch, self._records, self._start, limiter=computing_threads()
            )
        except WireFormatError as error:
            self.error = error
