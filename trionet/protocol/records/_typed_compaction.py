"""What compaction does with each record: note its key, decide about it, move its timestamp.

Typed Python for mypyc, with the cautions of :mod:`._typed_reader`: lengths from a peer are compared
with what is left before they are added to a position, and IndexError means a truncated record.
Unlike the reader it has no counterpart for the interpreter: one call per record is nearly all that
one of its own could save.

Records are cut out, not encoded again. Only the fields that compaction needs are decoded; values
and headers are passed over by the length of the record.
"""

# Compiled by mypyc.

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

from trionet.errors import WireFormatError

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Longer keys are replaced by a digest, so that the size of a map is bounded by its number of keys.
KEY_BYTES_MAX: Final = 64

#: A greater delete horizon would overflow the deltas of the timestamps, and means the same: never.
DELETE_HORIZON_MAX: Final = 2**62

#: The greatest number of offsets that have a bit each: 64 MiB.
_BITS_MAX: Final = 2**29
_INT32_MAX: Final = 2**31 - 1
_INT64_MIN: Final = -(2**63)
_INT64_MAX: Final = 2**63 - 1


class Selection(NamedTuple):
    """The records of a batch that are kept."""

    ranges: list[int]
    """The start and the end of each run of neighbouring records, one after the other."""
    kept_count: int
    """The number of records that are kept."""
    keyless_count: int
    """The number of records that are not kept because they have no key."""
    has_tombstones: bool
    """Whether a record that is kept has no value."""
    newest_delta: int
    """The greatest timestamp of a record that is kept, relative to the base timestamp."""


class _Fields:
    """The fields of the current record that compaction needs.

    The start of a null key is -1.
    """

    def __init__(self) -> None:
        self.delta_start: i64 = 0
        self.delta_end: i64 = 0
        self.timestamp_delta: i64 = 0
        self.offset_delta: i64 = 0
        self.key_start: i64 = 0
        self.key_end: i64 = 0
        self.has_value = False

    def read(self, buf: bytes, pos: i64, limit: i64) -> i64:
        """Decode the record at ``pos``, which ends at ``limit`` or before, and return its end."""
        more: i64
        length: i64 = buf[pos]
        pos += 1
        if length > 127:
            more = buf[pos]
            if more > 127:
                length, pos = _read_more(buf, pos, length)
            else:
                length += (more << 7) - 128
                length = (length >> 1) ^ -(length & 1)
                pos += 1
        else:
            length = (length >> 1) ^ -(length & 1)
        if not 0 <= length <= limit - pos:
            raise IndexError
        end: i64 = pos + length
        self.delta_start = pos + 1
        delta: i64 = buf[pos + 1]  # skips the attributes, which are unused
        pos += 2
        if delta > 127:
            delta, pos = _read_more(buf, pos, delta)
        else:
            delta = (delta >> 1) ^ -(delta & 1)
        self.timestamp_delta = delta
        self.delta_end = pos
        delta = buf[pos]
        pos += 1
        if delta > 127:
            delta, pos = _read_more(buf, pos, delta)
            if not -_INT32_MAX <= delta <= _INT32_MAX:
                raise WireFormatError("the offset of a record does not fit into its batch")
        else:
            delta = (delta >> 1) ^ -(delta & 1)
        self.offset_delta = delta
        length = buf[pos]
        pos += 1
        if length > 127:
            length, pos = _read_more(buf, pos, length)
        else:
            length = (length >> 1) ^ -(length & 1)
        if length >= end - pos:
            raise _wrong_length()
        if length >= 0:
            self.key_start = pos
            pos += length
            self.key_end = pos
        else:
            self.key_start = _null(length)
        length = buf[pos]
        pos += 1
        if length > 127:
            length, pos = _read_more(buf, pos, length)
        else:
            length = (length >> 1) ^ -(length & 1)
        self.has_value = length >= 0
        if length >= end - pos:
            raise _wrong_length()
        if length >= 0:
            pos += length
        else:
            _null(length)
        # The number of headers is 0 if, and only if, it is the last byte.
        if pos >= end or (buf[pos] == 0) != (pos == end - 1):
            raise _wrong_length()
        return end


class OffsetMap:
    """The offset of the last record of each key, in a range of offsets (Kafka: OffsetMap).

    Kafka's SkimpyOffsetMap is an open hash table of MD5 digests in one buffer, whose size bounds
    the number of keys. Here it is a dict of the keys, bounded by the same number.

    Once the map is complete, one bit per offset of the range shows which records are the last of
    their keys. A look-up mostly waits for memory; only records before the range still need one.

    Args:
        keys_max: the number of keys with which the map is full, at least 1.
        first_offset: the first offset of the range.

    Attributes:
        latest_offset: the last offset of the range, -1 for none.
    """

    def __init__(self, keys_max: int, first_offset: int) -> None:
        if keys_max < 1:
            raise ValueError(
                f"an offset map for {keys_max} keys makes no progress; it needs room for at least 1"
            )
        self.latest_offset: i64 = -1
        self._offsets: dict[bytes, int] = {}
        self._keys_max: i64 = keys_max
        self._first_offset: i64 = first_offset
        self._last_bits = b""
        self._bits_end: i64 = first_offset

    @property
    def utilization(self) -> float:
        """The share of the map that is in use, from 0 to 1."""
        return len(self._offsets) / self._keys_max

    def cover(self, offset: i64) -> None:
        """Extend the range to an offset, up to which no key is missing."""
        if offset >= self._first_offset:
            self.latest_offset = offset

    def covers(self, base_offset: i64, last_offset: i64) -> bool:
        """Return whether a batch is in the range."""
        return base_offset >= self._first_offset and last_offset <= self.latest_offset

    def put(self, buf: bytes, pos: i64, limit: i64, count: i64, base_offset: i64) -> int:
        """Put the offset of each record of a batch under its key, until the map is full.

        A record without a key, or before the range, is passed over. A full map accepts no record,
        even if it has its key (Kafka: Cleaner.buildOffsetMapForSegment).

        Args:
            buf: a buffer that contains the records.
            pos: the position of the first record.
            limit: the position after the last record.
            count: the number of records.
            base_offset: the base offset of the batch.

        Returns:
            The number of records that were read: all of them, unless the map is full.
        """
        fields = _Fields()
        offsets = self._offsets
        keys_max = self._keys_max
        first_offset = self._first_offset
        done: i64 = 0
        while done < count:
            end = fields.read(buf, pos, limit)
            start = fields.key_start
            offset = base_offset + fields.offset_delta
            if start >= 0 and offset >= first_offset:
                if len(offsets) >= keys_max:
                    return done
                key = buf[start : fields.key_end]
                offsets[key if len(key) <= KEY_BYTES_MAX else _digest(key)] = offset
                self.latest_offset = offset
            pos = end
            done += 1
        _check_end(pos, limit)
        return done

    def complete(self) -> None:
        """Prepare for :meth:`select`; nothing is put into the map from here on."""
        first = self._first_offset
        count = min(self.latest_offset + 1 - first, _BITS_MAX)
        if count > 0:
            bits = bytearray((count + 7) >> 3)
            for offset in self._offsets.values():
                bit: i64 = offset - first
                if bit < count:
                    bits[bit >> 3] |= 1 << (bit & 7)
            self._last_bits = bytes(bits)
            self._bits_end = first + count

    def _is_last(self, key: bytes, offset: i64) -> bool:
        """Return whether no later record of the range has this key."""
        latest: i64 = self._offsets.get(key if len(key) <= KEY_BYTES_MAX else _digest(key), -1)
        return offset >= latest

    def select(
        self,
        buf: bytes,
        pos: i64,
        limit: i64,
        count: i64,
        base_offset: i64,
        keep_tombstones: bool,
    ) -> Selection:
        """Select the records of a batch that are kept (Kafka: Cleaner.shouldRetainRecord).

        A record is kept if no later one has its key, and it has a value or tombstones are kept. All
        records beyond the range are kept.

        Args:
            buf: a buffer that contains the records.
            pos: the position of the first record.
            limit: the position after the last record.
            count: the number of records.
            base_offset: the base offset of the batch.
            keep_tombstones: whether records without a value are kept.
        """
        fields = _Fields()
        first, bits_end, latest_offset = self._first_offset, self._bits_end, self.latest_offset
        bits = self._last_bits
        ranges: list[int] = []
        run_start: i64 = -1
        run_end: i64 = -1
        done: i64 = 0
        kept: i64 = 0
        keyless: i64 = 0
        newest: i64 = _INT64_MIN
        has_tombstones = False
        while done < count:
            done += 1
            end = fields.read(buf, pos, limit)
            offset = base_offset + fields.offset_delta
            start = fields.key_start
            if start < 0:
                is_kept = offset > latest_offset
                keyless += 0 if is_kept else 1
            elif not fields.has_value and not keep_tombstones:
                is_kept = offset > latest_offset
            elif first <= offset < bits_end:
                is_kept = bits[(offset - first) >> 3] >> ((offset - first) & 7) & 1 != 0
            else:
                is_kept = offset > latest_offset or self._is_last(
                    buf[start : fields.key_end], offset
                )
            if is_kept:
                kept += 1
                newest = max(newest, fields.timestamp_delta)
                if not fields.has_value:
                    has_tombstones = True
                if run_end != pos:
                    if run_end >= 0:
                        ranges.append(run_start)
                        ranges.append(run_end)
                    run_start = pos
                run_end = end
            pos = end
        _check_end(pos, limit)
        if run_end >= 0:
            ranges.append(run_start)
            ranges.append(run_end)
        return Selection(ranges, kept, keyless, has_tombstones, newest)


def read_null_keys(
    buf: bytes, pos: i64, limit: i64, count: i64, base_timestamp: i64
) -> tuple[list[int], int]:
    """Return the indexes of the records without a key, and the position after the last record.

    Accepts only records that compaction can read, whatever it removes and whenever. The headers are
    skipped: one record may have millions.

    Args:
        buf: a buffer that contains the records.
        pos: the position of the first record.
        limit: the position after the last record of the batch.
        count: the number of records to read, which may be less than the batch has.
        base_timestamp: the base timestamp of the batch.

    Raises:
        WireFormatError: a record is malformed.
        IndexError: a record is truncated.
    """
    fields = _Fields()
    # As move_timestamps() requires it for the greatest delete horizon.
    earliest = _INT64_MIN + DELETE_HORIZON_MAX - min(base_timestamp, 0)
    latest = _INT64_MAX - max(base_timestamp, 0)
    found: list[int] = []
    done: i64 = 0
    while done < count:
        pos = fields.read(buf, pos, limit)
        if not earliest <= fields.timestamp_delta <= latest:
            raise _wrong_timestamp()
        if fields.key_start < 0:
            found.append(done)
        done += 1
    return found, pos


def move_timestamps(buf: bytes, ranges: list[int], base_timestamp: i64, new_base: i64) -> bytes:
    """Encode the timestamps of records relative to another base timestamp.

    Args:
        buf: a buffer that contains the records, which were decoded before.
        ranges: the start and the end of each run of neighbouring records.
        base_timestamp: the timestamp to which they are relative.
        new_base: the timestamp to which they will be relative; not negative.
    """
    fields = _Fields()
    # So that neither the timestamp nor its distance from the new base overflows.
    earliest = _INT64_MIN + new_base - min(base_timestamp, 0)
    latest = _INT64_MAX - max(base_timestamp, 0)
    parts: list[bytes] = []
    for number in range(0, len(ranges), 2):
        pos: i64 = ranges[number]
        limit: i64 = ranges[number + 1]
        while pos < limit:
            end = fields.read(buf, pos, limit)
            start = fields.delta_start
            delta = fields.timestamp_delta
            if not earliest <= delta <= latest:
                raise _wrong_timestamp()
            when = _varint(base_timestamp + delta - new_base)
            rest = fields.delta_end
            parts.append(_varint(1 + len(when) + end - rest))
            parts.append(buf[start - 1 : start])
            parts.append(when)
            parts.append(buf[rest:end])
            pos = end
    return b"".join(parts)


def _read_more(buf: bytes, pos: i64, first: i64) -> tuple[i64, i64]:
    """Read the rest of a varint of two or more bytes, and decode it."""
    low = first & 127
    shift: i64 = 7
    while first > 127:
        first = buf[pos]
        pos += 1
        if shift == 63:  # only the lowest bit is left, which would overflow before decoding
            if first > 1:
                raise WireFormatError("varint with more than 64 bits")
            return ((low >> 1) | (first << 62)) ^ -(low & 1), pos
        low |= (first & 127) << shift
        shift += 7
    return (low >> 1) ^ -(low & 1), pos


def _varint(number: i64) -> bytes:
    out = bytearray()
    # Without the sign, so that the lowest bit of the varint, which holds it, has room.
    rest = number if number >= 0 else -(number + 1)
    byte = ((rest & 63) << 1) | (1 if number < 0 else 0)
    rest >>= 6
    while rest:
        out.append(byte | 128)
        byte = rest & 127
        rest >>= 7
    out.append(byte)
    return bytes(out)


def _digest(key: bytes) -> bytes:
    """Return what stands for a long key in a map: one byte longer than any key that does itself."""
    return blake2b(key, digest_size=KEY_BYTES_MAX).digest() + b"\0"


def _null(length: i64) -> i64:
    if length != -1:
        raise WireFormatError(f"a record field has a negative length: {length}")
    return -1


def _wrong_length() -> WireFormatError:
    return WireFormatError("the length of a record does not match its fields")


def _wrong_timestamp() -> WireFormatError:
    return WireFormatError("the timestamp of a record does not fit into 64 bits")


def _check_end(pos: i64, limit: i64) -> None:
    if pos != limit:
        raise WireFormatError("the records of a batch do not end where the batch ends")
