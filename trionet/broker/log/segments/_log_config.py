"""The settings of one topic that its partitions' logs obey."""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ....protocol.records._crc32c import crc32c

_INT64_MAX = 2**63 - 1


@attrs.frozen(kw_only=True)
class LogConfig:
    """One topic's log settings: Kafka's topic keys with dots as underscores, Kafka 4's defaults.

    Sizes are bytes, times milliseconds. Values are taken as given: ranges are checked where the
    configuration is read.
    """

    segment_bytes: int = 1073741824
    """A log file that would grow beyond this is followed by a new one."""
    segment_ms: int = 604800000
    """So is one whose first batch is older than this (``log.roll.ms``, ``log.roll.hours``)."""
    segment_jitter_ms: int = 0
    """Up to this much is taken off ``segment_ms``, so that partitions do not roll together."""
    segment_index_bytes: int = 10485760
    """An index file of this size is full, and the segment is followed by a new one."""
    index_interval_bytes: int = 4096
    """An index entry is made after so many bytes of batches."""
    max_message_bytes: int = 1048588
    """The largest batch taken, its 12 bytes of offset and length included."""
    message_timestamp_type: str = "CreateTime"
    """``CreateTime``: the producer's timestamps; ``LogAppendTime``: the broker's."""
    message_timestamp_before_max_ms: int = _INT64_MAX
    """How far a producer's timestamp may lie in the past (KIP-937)."""
    message_timestamp_after_max_ms: int = 3600000
    """How far it may lie in the future (KIP-937)."""
    flush_messages: int = _INT64_MAX
    """Flush when so many records are not on the disk; with 1 every answer waits for the disk."""
    flush_ms: int = _INT64_MAX
    """Flush when the oldest record that is not on the disk was appended so long ago."""
    retention_bytes: int = -1
    """Remove the oldest segments as long as the rest is at least this big; -1: no limit."""
    retention_ms: int = 604800000
    """Remove segments whose newest record is older; -1: no limit."""
    cleanup_policy: str = "delete"
    """``delete``, ``compact`` or both; without ``delete`` nothing is removed by retention."""
    compression_type: str = "producer"
    """The codec that batches are stored in; ``producer``: the one they come in."""
    compression_gzip_level: int = -1
    """How much time compressing may take, if ``compression_type`` is ``gzip`` (KIP-390)."""
    compression_lz4_level: int = 9
    """The same for ``lz4``; 9 is its fast compressor."""
    compression_zstd_level: int = 3
    """The same for ``zstd``."""
    min_insync_replicas: int = 1
    """Take nothing with ``acks=all`` while fewer replicas run; not asked of one broker alone."""
    producer_id_expiration_ms: int = 86400000
    """Forget a producer so long after its last batch (``producer.id.expiration.ms``)."""

    @classmethod
    def from_topic(cls, settings: Mapping[str, object], **broker: int) -> LogConfig:
        """The log's part of a topic's settings.

        Args:
            settings: values (numbers, or strings of them) by Kafka's topic key, such as
                ``segment.bytes``. Keys that are not the log's are left to those they belong to.
            broker: fields that Kafka sets per broker, ``producer_id_expiration_ms``.

        Raises:
            ValueError: a number is expected and the value is none.
        """
        values: dict[str, object] = dict(broker)
        for field in attrs.fields(cls):
            key = field.name.replace("_", ".")
            if key in settings:
                value = settings[key]
                values[field.name] = (
                    str(value) if isinstance(field.default, str) else int(str(value))
                )
        return cls(**values)  # type: ignore[arg-type]  # each was made its field's type above

    def segment_age_ms_max(self, name: str) -> int:
        """``segment.ms`` less a part of the jitter that is always the same for one name."""
        if not self.segment_jitter_ms:
            return self.segment_ms
        jitter_ms_max = min(self.segment_jitter_ms, self.segment_ms)
        return self.segment_ms - crc32c(name.encode()) * jitter_ms_max // 2**32

    @property
    def stamps_append_time(self) -> bool:
        """Timestamps are the broker's, not the producer's."""
        return self.message_timestamp_type == "LogAppendTime"

    @property
    def recompresses(self) -> bool:
        """Batches that come in another codec than the topic's are compressed anew."""
        return self.compression_type != "producer"

    @property
    def may_have_gaps(self) -> bool:
        """Compaction removes records, so neighbouring segments need not join without a gap."""
        return "compact" in self.cleanup_policy

    @property
    def removes_old_segments(self) -> bool:
        """Retention applies."""
        return "delete" in self.cleanup_policy
