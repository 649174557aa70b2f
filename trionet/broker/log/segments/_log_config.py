"""The settings of a topic that apply to the logs of its partitions (Kafka: LogConfig)."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ....protocol.records._crc32c import crc32c

_INT64_MAX = 2**63 - 1


@attrs.frozen(kw_only=True)
class LogConfig:
    """The log settings of one topic, named like Kafka's topic keys with underscores for dots.

    Defaults are Kafka's. Sizes are in bytes, times in milliseconds. Ranges are not checked here;
    they are checked where the configuration is read.
    """

    segment_bytes: int = 1073741824
    """Roll a segment that would exceed this size."""
    segment_ms: int = 604800000
    """Roll a segment whose first batch is older than this (``log.roll.ms``, ``log.roll.hours``)."""
    segment_jitter_ms: int = 0
    """The maximum jitter subtracted from ``segment_ms``, lest all partitions roll at once."""
    segment_index_bytes: int = 10485760
    """Roll a segment when one of its index files reaches this size."""
    index_interval_bytes: int = 4096
    """Add an index entry whenever this many bytes of batches have been appended."""
    max_message_bytes: int = 1048588
    """The maximum size of a batch, including the 12 bytes of its offset and length."""
    message_timestamp_type: str = "CreateTime"
    """The source of timestamps: the producer (``CreateTime``) or the broker (``LogAppendTime``)."""
    message_timestamp_before_max_ms: int = _INT64_MAX
    """Reject producers' timestamps that are further in the past than this (KIP-937)."""
    message_timestamp_after_max_ms: int = 3600000
    """Reject producers' timestamps that are further in the future than this (KIP-937)."""
    flush_messages: int = _INT64_MAX
    """Flush when this many records are not on disk. With 1, every response waits for the disk."""
    flush_ms: int = _INT64_MAX
    """Flush when the oldest record that is not on disk is this old."""
    retention_bytes: int = -1
    """Delete the oldest segments while the others have at least this total size; -1: no limit."""
    retention_ms: int = 604800000
    """Delete segments whose newest record is older than this; -1: no limit."""
    cleanup_policy: str = "delete"
    """``delete``, ``compact`` or both. Without ``delete``, retention deletes nothing."""
    min_cleanable_dirty_ratio: float = 0.5
    """Clean a log when more than this share of it is dirty."""
    min_compaction_lag_ms: int = 0
    """Do not clean segments with records that are younger than this."""
    max_compaction_lag_ms: int = _INT64_MAX
    """Clean a log with records that have been dirty for longer than this (KIP-354)."""
    delete_retention_ms: int = 86400000
    """Keep tombstones and transaction markers for this long after a cleaning has met them."""
    compression_type: str = "producer"
    """The codec of stored batches; ``producer`` keeps the codec that the producer chose."""
    compression_gzip_level: int = -1
    """The compression level for ``gzip`` (KIP-390)."""
    compression_lz4_level: int = 9
    """The compression level for ``lz4``; 9 selects its fast compressor."""
    compression_zstd_level: int = 3
    """The compression level for ``zstd``."""
    min_insync_replicas: int = 1
    """Reject ``acks=all`` while fewer replicas are in sync. A single broker ignores this."""
    producer_id_expiration_ms: int = 86400000
    """Remove a producer's state this long after its last batch (``producer.id.expiration.ms``)."""
    checks_records: bool = attrs.field(init=False)
    """Whether each record of a batch is checked. Derived once, since every append asks for it."""

    @checks_records.default
    def _checks_records(self) -> bool:
        return self.is_compacted or self.limits_old_timestamps

    @classmethod
    def from_topic(cls, settings: Mapping[str, object], **broker: int) -> LogConfig:
        """Select the log settings from a topic's settings.

        Args:
            settings: the values (numbers or strings), keyed by Kafka's topic keys such as
                ``segment.bytes``. Unknown keys are ignored.
            broker: the fields that Kafka sets per broker: ``producer_id_expiration_ms``.

        Raises:
            ValueError: the value of a numeric setting is not a number.
        """
        values: dict[str, object] = dict(broker)
        for field in attrs.fields(cls):
            key = field.name.replace("_", ".")
            if key in settings:
                value = settings[key]
                text = ",".join(value) if isinstance(value, tuple) else str(value)
                values[field.name] = type(field.default)(text)
        config = cls(**values)  # type: ignore[arg-type]  # each was made its field's type above
        if config.is_compacted and config.max_compaction_lag_ms < config.segment_ms:
            # What is in the active segment is never cleaned (KIP-354; Kafka: maxSegmentMs).
            return attrs.evolve(config, segment_ms=config.max_compaction_lag_ms)
        return config

    def segment_age_ms_max(self, name: str) -> int:
        """Return ``segment.ms`` minus a jitter that depends only on ``name``."""
        if not self.segment_jitter_ms:
            return self.segment_ms
        jitter_ms_max = min(self.segment_jitter_ms, self.segment_ms)
        return self.segment_ms - crc32c(name.encode()) * jitter_ms_max // 2**32

    @property
    def stamps_append_time(self) -> bool:
        """Whether the broker sets the timestamps of records (``LogAppendTime``)."""
        return self.message_timestamp_type == "LogAppendTime"

    @property
    def limits_old_timestamps(self) -> bool:
        """Whether producers' timestamps may be too old, which only each record shows.

        The header of a batch contains the greatest timestamp, which decides whether any is too far
        in the future.
        """
        return self.message_timestamp_before_max_ms < _INT64_MAX and not self.stamps_append_time

    @property
    def recompresses(self) -> bool:
        """Whether batches are recompressed if their codec differs from the topic's codec."""
        return self.compression_type != "producer"

    @property
    def is_compacted(self) -> bool:
        """Whether the cleaner removes records that later ones with the same keys replace."""
        return "compact" in self.cleanup_policy

    @property
    def limits_compaction_lag(self) -> bool:
        """Whether ``max.compaction.lag.ms`` is set."""
        return self.max_compaction_lag_ms < _INT64_MAX

    @property
    def may_have_gaps(self) -> bool:
        """Whether compaction may have left gaps between the offsets of records."""
        return "compact" in self.cleanup_policy

    @property
    def removes_old_segments(self) -> bool:
        """Whether retention and DeleteRecords are enabled."""
        return "delete" in self.cleanup_policy
