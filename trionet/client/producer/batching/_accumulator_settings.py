"""The settings of what a producer buffers."""

from __future__ import annotations

import attrs

from ..._backoff import ExponentialBackoff


@attrs.frozen(kw_only=True)
class AccumulatorSettings:
    """How records are gathered.

    Attributes:
        batch_bytes: how large a batch may get before it is full, in bytes and before compression;
            0 sends each record by itself (``batch.size``).
        linger_seconds: how long a batch that is not full waits for more records (``linger.ms``).
        buffer_bytes: what all batches may take (``buffer.memory``).
        request_bytes_max: the largest record, and the most that one request carries
            (``max.request.size``).
        delivery_seconds: how long a record may take from the beginning of its batch to its
            acknowledgement (``delivery.timeout.ms``).
        retry: the waits before a batch is sent again (``retry.backoff.ms``,
            ``retry.backoff.max.ms``).
        codec: the compression codec's number (``compression.type``).
        level: see :func:`._codecs.compress` (``compression.gzip.level`` and its like).
        is_adaptive: records without a key go more often to partitions whose queue is short
            (``partitioner.adaptive.partitioning.enable``, KIP-794).
        availability_seconds: they do not go to partitions whose leader has not taken anything for
            so long; 0 for no such limit (``partitioner.availability.timeout.ms``).
        ignores_keys: records with a key are treated as those without
            (``partitioner.ignore.keys``).
    """

    batch_bytes: int = 16384
    linger_seconds: float = 0.005
    buffer_bytes: int = 32 * 1024 * 1024
    request_bytes_max: int = 1024 * 1024
    delivery_seconds: float = 120.0
    retry: ExponentialBackoff = attrs.field(default=ExponentialBackoff(0.1, 1.0))
    codec: int = 0
    level: int | None = None
    is_adaptive: bool = True
    availability_seconds: float = 0.0
    ignores_keys: bool = False
