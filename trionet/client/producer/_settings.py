"""The settings of a producer, in seconds and bytes; each attribute names Kafka's key."""

from __future__ import annotations

import attrs

from .._backoff import ExponentialBackoff
from ..network._settings import ClientSettings


@attrs.frozen(kw_only=True)
class ProducerSettings:
    """All settings of a producer, with Kafka's defaults.

    Attributes:
        client: connections and requests; ``client.requests.timeout_seconds`` is
            ``request.timeout.ms``, ``client.requests.in_flight_max`` is
            ``max.in.flight.requests.per.connection``.
        acks: which replicas acknowledge a record: all in sync (-1), the leader (1), or none (0)
            (``acks``).
        linger_seconds: how long a record waits for others to share its batch (``linger.ms``).
        batch_bytes: the size of a batch before compression (``batch.size``).
        buffer_bytes: the memory for records until their outcome is known (``buffer.memory``).
        max_block_seconds: how long a call may wait for memory, or for a topic's metadata
            (``max.block.ms``).
        request_bytes_max: the largest request, and so the largest record (``max.request.size``).
        delivery_timeout_seconds: the time from appending a record to its outcome
            (``delivery.timeout.ms``).
        retries: the maximum number of retries of a batch (``retries``).
        retry: the backoff before a retry (``retry.backoff.ms``, ``retry.backoff.max.ms``).
        compression: the name of the codec (``compression.type``).
        compression_level: the level of compression (``compression.gzip.level``,
            ``compression.lz4.level``, ``compression.zstd.level``); None for the codec's default.
        idempotence: whether exactly one copy of each record is written, in order
            (``enable.idempotence``).
        adaptive_partitioning: whether records without a key prefer brokers that are quick
            (``partitioner.adaptive.partitioning.enable``).
        partitioner_availability_timeout_seconds: brokers that have accepted nothing for this long
            are skipped (``partitioner.availability.timeout.ms``); 0 for never.
        partitioner_ignores_keys: whether to choose partitions as if there were no keys
            (``partitioner.ignore.keys``).
        metadata_idle_seconds: the metadata of a topic not used for this long is dropped
            (``metadata.max.idle.ms``).
    """

    client: ClientSettings = attrs.field(factory=ClientSettings)
    acks: int = -1
    linger_seconds: float = 0.005
    batch_bytes: int = 16_384
    buffer_bytes: int = 33_554_432
    max_block_seconds: float = 60.0
    request_bytes_max: int = 1_048_576
    delivery_timeout_seconds: float = 120.0
    retries: int = 2**31 - 1
    retry: ExponentialBackoff = attrs.field(default=ExponentialBackoff(0.1, 1.0))
    compression: str = "none"
    compression_level: int | None = None
    idempotence: bool = True
    adaptive_partitioning: bool = True
    partitioner_availability_timeout_seconds: float = 0.0
    partitioner_ignores_keys: bool = False
    metadata_idle_seconds: float = 300.0
