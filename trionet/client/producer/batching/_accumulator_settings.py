"""Settings of the record accumulator."""

from __future__ import annotations

import attrs

from ..._backoff import ExponentialBackoff


@attrs.frozen(kw_only=True)
class AccumulatorSettings:
    """How records are gathered into batches.

    Attributes:
        batch_bytes: the size at which a batch is full, in bytes before compression; 0 sends each
            record in a batch of its own (``batch.size``).
        linger_seconds: how long a batch that is not full waits for more records (``linger.ms``).
        buffer_bytes: the memory that all batches may occupy (``buffer.memory``).
        request_bytes_max: the maximum size of a record, and of one request
            (``max.request.size``).
        delivery_timeout_seconds: how long a record may take from the creation of its batch to its
            acknowledgement (``delivery.timeout.ms``).
        retry: the backoff before a batch is sent again (``retry.backoff.ms``,
            ``retry.backoff.max.ms``).
        codec: the number of the compression codec (``compression.type``).
        level: see :func:`._codecs.compress` (``compression.gzip.level`` and the like).
        is_adaptive: whether records without a key prefer partitions with short queues
            (``partitioner.adaptive.partitioning.enable``, KIP-794).
        availability_timeout_seconds: partitions whose leader has accepted nothing for this long
            are skipped; 0 for no limit (``partitioner.availability.timeout.ms``).
        ignores_keys: whether to choose the partition of records with a key as if they had none
            (``partitioner.ignore.keys``).
    """

    batch_bytes: int = 16384
    linger_seconds: float = 0.005
    buffer_bytes: int = 32 * 1024 * 1024
    request_bytes_max: int = 1024 * 1024
    delivery_timeout_seconds: float = 120.0
    retry: ExponentialBackoff = attrs.field(default=ExponentialBackoff(0.1, 1.0))
    codec: int = 0
    level: int | None = None
    is_adaptive: bool = True
    availability_timeout_seconds: float = 0.0
    ignores_keys: bool = False
