"""The reading side of one partition's log: where it starts and ends, and ranges of its files.

Most of it is thread-safe, because what is not in the page cache is read in threads while the loop
appends.
"""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from ...errors import ApiError
from ...net.wire._transmission import FileRange
from ...protocol.error_codes import FENCED_LEADER_EPOCH, OFFSET_OUT_OF_RANGE, UNKNOWN_LEADER_EPOCH
from ._durability import Durability
from ._offset_assignment import Assignment
from .files._directory import Directory
from .recovery._log_loader import Stop, load
from .segments import _reading as reading
from .segments import _timestamps as timestamps
from .segments._log_config import LogConfig
from .segments._reading import LogRead
from .segments._segments import Segments
from .segments._timestamps import OffsetAndTimestamp
from .state._leader_epochs import EpochEnd


class ReadableLog:
    """One partition's log as far as it is read; :class:`~trionet.broker.log.Log` adds the rest.

    Attributes:
        topic: the topic's name.
        partition: the partition's number.
        topic_id: the topic's id, 16 bytes; zeros if unknown.
        directory: the partition's folder.
        config: the topic's settings; assign another one and it counts from the next append on.
        start_offset: the first offset that can be read (the log start offset).
        end_offset: the offset that the next record gets (the log end offset).
        leader_id: the node that may append now, -1 for none; whoever elects it says so.
        leader_epoch: that of the records which are appended now.
        epochs: the offsets at which leader epochs began.
    """

    def __init__(
        self,
        directory: Directory,
        config: LogConfig,
        *,
        topic: str = "",
        partition: int = 0,
        topic_id: bytes = bytes(16),
        stop: Stop,
        now_ms: int,
        parent: Directory | None = None,
        limiter: trio.CapacityLimiter | None = None,
        save_start: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.config = config
        self.directory = directory
        self._name = f"{topic}-{partition}"
        loaded = load(directory, self._name, config, stop, now_ms)
        self._segments = Segments(loaded.segments)
        self.epochs = loaded.epochs
        self.leader_id = -1
        self.leader_epoch = loaded.epochs.latest
        self.start_offset = loaded.start_offset
        self.end_offset = self._segments.active.end_offset
        self._producers = loaded.producers
        self._refusal: str | None = None
        self._now_ms = now_ms
        self._is_as_closed = stop.was_clean and loaded.is_as_closed
        self._removals = 0  # under way
        self._unsettled: Assignment | None = None  # of an append that has begun
        self._is_rolling = False  # the file of the next segment may be there
        self._save_start = save_start
        self._durability = Durability(
            directory,
            parent,
            self._name,
            loaded.recovery_point,
            self._segments,
            loaded.epochs,
            limiter,
        )

    # Leader epochs

    def check_leader_epoch(self, epoch: int) -> None:
        """Refuse somebody who takes another epoch for the present one (KIP-320).

        Args:
            epoch: what they take for it; -1 if they do not know.

        Raises:
            ApiError: FENCED_LEADER_EPOCH, theirs is over; UNKNOWN_LEADER_EPOCH, theirs is not here
                yet.
        """
        if epoch < 0 or epoch == self.leader_epoch:
            return
        code = FENCED_LEADER_EPOCH if epoch < self.leader_epoch else UNKNOWN_LEADER_EPOCH
        raise ApiError(code, f"{self._name}: the leader epoch is {self.leader_epoch}, not {epoch}")

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        """Where the records of a leader epoch end; see :meth:`LeaderEpochs.end_of`."""
        return self.epochs.end_of(epoch, self.end_offset)

    # Reading

    @property
    def high_watermark(self) -> int:
        """The first offset that consumers do not see yet.

        The end of the log; with ``flush.messages=1`` the recovery point, since Kafka then shows
        nobody a record that a power cut can still take.
        """
        if self.config.flush_messages <= 1 and self.directory.is_durable:
            return self._durability.recovery_point
        return self.end_offset

    @property
    def last_stable_offset(self) -> int:
        """The first offset that a ``read_committed`` consumer does not see yet.

        Equal to the high watermark as long as no transaction can be open.
        """
        return self.high_watermark

    def read(
        self, offset: int, max_bytes: int, *, min_one_message: bool = True, up_to: int | None = None
    ) -> LogRead:
        """The file range that starts with the batch which contains ``offset``.

        Thread-safe. Waits for the disk where the file's pages or the index are not in RAM.

        Args:
            offset: where to begin, from :attr:`start_offset` to :attr:`end_offset`.
            max_bytes: the most bytes to give; the last batch may be cut short by it.
            min_one_message: give the first batch whole, even if it is larger than that (KIP-74).
                Without, an empty range if the first batch does not fit.
            up_to: give nothing of this offset and behind; :attr:`high_watermark` by default.

        Raises:
            ApiError: OFFSET_OUT_OF_RANGE; CORRUPT_MESSAGE, the bytes on the disk are no batch.
        """
        read = self._read(offset, max_bytes, min_one_message, up_to, cached_only=False)
        assert read is not None
        return read

    def read_cached(
        self, offset: int, max_bytes: int, *, min_one_message: bool = True, up_to: int | None = None
    ) -> LogRead | None:
        """As :meth:`read`, for the loop: None if finding or sending would wait for the disk.

        Let a thread do it then, with :meth:`read_warm`.
        """
        return self._read(offset, max_bytes, min_one_message, up_to, cached_only=True)

    def read_warm(
        self, offset: int, max_bytes: int, min_one_message: bool = True, up_to: int | None = None
    ) -> LogRead:
        """As :meth:`read`, for a thread: the range is in the page cache when it returns.

        Raises:
            OSError: the disk failed.
        """
        read = self.read(offset, max_bytes, min_one_message=min_one_message, up_to=up_to)
        reading.warm(read.records)
        return read

    def _read(
        self,
        offset: int,
        max_bytes: int,
        min_one_message: bool,
        up_to: int | None,
        *,
        cached_only: bool,
    ) -> LogRead | None:
        visible = self.high_watermark
        if up_to is None or up_to > visible:
            up_to = visible
        if not self.start_offset <= offset <= self.end_offset:
            raise ApiError(
                OFFSET_OUT_OF_RANGE,
                f"{self._name}: offset {offset} is not within {self.start_offset} and "
                f"{self.end_offset}",
            )
        segments = self._segments
        active = segments.active  # once: in a thread, the log may roll meanwhile
        is_new = offset >= active.base_offset
        read = reading.read_range(
            [active] if is_new else segments.all,
            offset,
            max_bytes,
            up_to,
            min_one_message=min_one_message,
            cached_only=cached_only,
        )
        if read is not None and not is_new:
            segments.note_use(read.segment_base_offset)
        return read

    def is_cached(self, records: FileRange) -> bool:
        """Whether sending a range of this log would not wait for the disk. Never blocks."""
        return reading.is_cached(records)

    def warm(self, records: FileRange) -> None:
        """Read a range into the page cache. Thread-safe; blocks.

        Raises:
            OSError: the disk failed.
        """
        reading.warm(records)

    def offset_for_timestamp(
        self, timestamp: int, up_to: int | None = None
    ) -> OffsetAndTimestamp | None:
        """The first record whose timestamp is at least ``timestamp``, None if there is none.

        Thread-safe; may read much and decodes a batch, so call it in a thread.

        Args:
            timestamp: in milliseconds.
            up_to: look before this offset only; :attr:`high_watermark` by default.

        Raises:
            ApiError: CORRUPT_MESSAGE, the bytes on the disk are no batch.
        """
        visible = self.high_watermark
        limit = visible if up_to is None else min(up_to, visible)
        found = timestamps.first_at_or_after(
            self._segments.all, timestamp, self.start_offset, limit
        )
        self._segments.release_idle()
        return found

    def beginnings_before(self, timestamp: float, now_ms: int) -> list[int]:
        """Offsets at which segments begin, and the end of the log; none above the high watermark.

        Those of segments that were written last at ``timestamp`` or before it, descending; see
        :func:`timestamps.beginnings_before`. Thread-safe; may wait for the disk unless
        ``timestamp`` is infinity.
        """
        visible = self.high_watermark
        offsets = timestamps.beginnings_before(
            self._segments.all, self.start_offset, self.end_offset, timestamp, now_ms
        )
        if offsets and offsets[0] > visible:
            return [visible, *(offset for offset in offsets if offset <= visible)]
        return offsets

    def max_timestamp_offset(self) -> OffsetAndTimestamp | None:
        """The record with the greatest timestamp, None if there is none (KIP-734).

        Thread-safe; call it in a thread as :meth:`offset_for_timestamp`.

        Raises:
            ApiError: CORRUPT_MESSAGE, the bytes on the disk are no batch.
        """
        found = timestamps.newest(self._segments.all, self.start_offset)
        self._segments.release_idle()
        return found
