"""Settings of the record accumulator."""

from __future__ import annotations

import attrs

from ..._backoff import ExponentialBackoff


@attrs.frozen(kw_only=True)
class AccumulatorSettings:
    """The settings of the record accumulator.

    Attributes:
        batch_bytes: the maximum size of a batch in bytes, before compression; 0 sends each record
            in a batch of its own (``batch.size``).
        linger_seconds: how long a batch that is not full waits for more records (``linger.ms``).
        buffer_bytes: the maximum memory of all batches (``buffer.memory``).
        request_bytes_max: the maximum size of a record and of a request (``max.request.size``).
        delivery_timeout_seconds: the maximum time from the creation of a batch to its
            acknowledgement (``delivery.timeout.ms``).
        retry: the backoff before a retry (``retry.backoff.ms``, ``retry.backoff.max.ms``).
        codec: the number of the compression codec (``compression.type``).
        level: see :func:`._codecs.compress` (``compression.gzip.level`` and the like).
        is_adaptive: whether records without a key prefer partitions with short queues
            (``partitioner.adaptive.partitioning.enable``, KIP-794).
        availability_timeout_seconds: how long a leader may accept no request for ready batches
            before the partitioner skips it (``partitioner.availability.timeout.ms``); 0 never skips
            a leader.
        ignores_keys: whether the partitioner ignores keys (``partitioner.ignore.keys``).
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
