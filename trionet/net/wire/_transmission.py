"""Outgoing data of a channel: a Send in progress, which may include ranges of files.

(Kafka: NetworkSend, ByteBufferSend, RecordsSend.) A Send records its progress, so that a partial
write continues where it stopped.
"""

# Compiled by mypyc.

from __future__ import annotations

from typing import Protocol

from ...errors import LocalProtocolError

Buffer = bytes | bytearray | memoryview

# One gathering write takes at most this many buffers (IOV_MAX is 1024 on Linux and macOS).
GATHER_BUFFERS_MAX = 512
# The maximum number of bytes of a Send to write in one step. Without it, a peer that reads as fast
# as we write would hold up the loop until its whole response has been written.
WRITE_BYTES_MAX = 1024 * 1024 + 64 * 1024


class RangeFile(Protocol):
    """A file that closes its file descriptor when its last reference is deleted."""

    def fileno(self) -> int: ...

    def read_at(self, position: int, count: int) -> bytes: ...


class FileRange:
    """Bytes ``offset`` to ``offset + count`` of a file, sent with sendfile where possible.

    The range keeps its file open, so that a log segment can still be sent after its deletion.
    """

    __slots__ = ("count", "file", "offset")

    def __init__(self, file: RangeFile, offset: int, count: int) -> None:
        self.file: RangeFile = file
        self.offset: int = offset
        self.count: int = count

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        return f"FileRange(fd={self.file.fileno()}, offset={self.offset}, count={self.count})"


Chunk = Buffer | FileRange


class WritableTransport(Protocol):
    """A transport that a Send can be written to.

    Each method returns the number of bytes written, and raises BlockingIOError if the socket
    accepts none now. With ``has_more``, more is written at once, which the bytes may wait for.
    """

    def write(self, data: Buffer, /) -> int: ...

    def write_gathered(self, buffers: list[Buffer], has_more: bool = False, /) -> int: ...

    def send_file(self, file_range: FileRange, /) -> int: ...


class Send:
    """One outgoing frame: its chunks, in order, and the number of bytes left to write.

    Args:
        chunks: bytes-like objects and :class:`FileRange`; together one whole frame, including its
            size prefix. The Send takes ownership of the list and its items.
    """

    __slots__ = ("_chunks", "remaining", "size")

    def __init__(self, chunks: list[Chunk]) -> None:
        self._chunks = chunks
        self.size: int = len(chunks[0]) if len(chunks) == 1 else sum(map(len, chunks))
        self.remaining: int = self.size

    @property
    def is_complete(self) -> bool:
        return self.remaining == 0

    def write_to(self, transport: WritableTransport) -> int:
        """Write as much as the transport accepts now, up to :data:`WRITE_BYTES_MAX`.

        Returns:
            The number of bytes written. While the Send is not complete, wait until the socket is
            writable.

        Raises:
            LocalProtocolError: the Send was already complete.
            OSError: the connection failed.
        """
        before = self.remaining
        if not before:
            raise LocalProtocolError("this Send is already complete; create a new one")
        budget = WRITE_BYTES_MAX
        try:
            while self.remaining and budget > 0:
                offered, written = self._write_first(transport, budget)
                self._advance(written)
                budget -= written
                if written < offered:
                    break
        except BlockingIOError:
            pass  # the socket accepts no more now
        return before - self.remaining

    def _write_first(self, transport: WritableTransport, budget: int) -> tuple[int, int]:
        """Write the first chunks in one call. Returns the counts of bytes offered and accepted."""
        chunk = self._chunks[0]
        if isinstance(chunk, FileRange):
            if len(chunk) > budget:
                chunk = FileRange(chunk.file, chunk.offset, budget)
            return len(chunk), transport.send_file(chunk)
        buffers = self._leading_buffers(budget)
        size = sum(map(len, buffers))
        if size < self.remaining:
            # A head that is sent by itself wakes the peer, which finds that it has to wait for the
            # file: 15 % of the time of a fetch of 64 KB.
            return size, transport.write_gathered(buffers, True)
        if len(buffers) == 1:
            return size, transport.write(buffers[0])
        return size, transport.write_gathered(buffers)

    def _leading_buffers(self, budget: int) -> list[Buffer]:
        buffers: list[Buffer] = []
        for chunk in self._chunks[:GATHER_BUFFERS_MAX]:
            if isinstance(chunk, FileRange) or budget <= 0:
                break
            buffers.append(chunk if len(chunk) <= budget else memoryview(chunk)[:budget])
            budget -= len(chunk)
        return buffers

    def _advance(self, written: int) -> None:
        self.remaining -= written
        if not self.remaining:
            self._chunks.clear()
            return
        chunks = self._chunks
        done = 0
        # Skip empty chunks as well, otherwise they would be offered again and again.
        while written >= len(chunks[done]):
            written -= len(chunks[done])
            done += 1
        del chunks[:done]
        if written:
            head = chunks[0]
            if isinstance(head, FileRange):
                chunks[0] = FileRange(head.file, head.offset + written, head.count - written)
            else:
                chunks[0] = memoryview(head)[written:]

    def __repr__(self) -> str:
        return f"Send({self.size - self.remaining}/{self.size} bytes written)"


Outgoing = Send | bytes
"""A frame to send. A frame in one piece, like nearly every response, needs no Send."""


def outgoing(chunks: list[Chunk]) -> Outgoing:
    """Return a frame that consists of these chunks, in its cheapest form."""
    if len(chunks) == 1:
        chunk = chunks[0]
        if isinstance(chunk, bytes):
            return chunk
    return Send(chunks)
