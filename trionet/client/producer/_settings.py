"""Producer settings, with times in seconds and sizes in bytes."""

from __future__ import annotations

import attrs

from .._backoff import ExponentialBackoff
from ..network._open_client import ClientSettings


@attrs.frozen(kw_only=True)
class ProducerSettings:
    """The settings of a producer, with Kafka's defaults.

    Attributes:
        client: the connection and request settings; ``client.requests.timeout_seconds`` is
            ``request.timeout.ms``, and ``client.requests.in_flight_max`` is
            ``max.in.flight.requests.per.connection``.
        acks: which replicas must acknowledge a record: -1 for all in-sync replicas, 1 for only the
            leader, 0 for none (``acks``).
        linger_seconds: how long a batch that is not full waits for more records (``linger.ms``).
        batch_bytes: the maximum size of a batch before compression (``batch.size``).
        buffer_bytes: the maximum memory for batches that are queued or in flight
            (``buffer.memory``).
        max_block_seconds: how long a call may wait for memory, or for a topic's metadata
            (``max.block.ms``).
        request_bytes_max: the maximum size of a request, and therefore of a record
            (``max.request.size``).
        delivery_timeout_seconds: the maximum time from the creation of a batch to its outcome
            (``delivery.timeout.ms``).
        retries: the maximum number of retries of a batch (``retries``).
        retry: the backoff before a retry (``retry.backoff.ms``, ``retry.backoff.max.ms``).
        compression: the name of the codec (``compression.type``).
        compression_level: the compression level (``compression.gzip.level``,
            ``compression.lz4.level``, ``compression.zstd.level``); None for the codec's default.
        idempotence: whether exactly one copy of each record is written, in order
            (``enable.idempotence``).
        adaptive_partitioning: whether records without a key prefer faster brokers
            (``partitioner.adaptive.partitioning.enable``).
        partitioner_availability_timeout_seconds: how long a broker may accept no request for
            ready batches before the partitioner skips it (``partitioner.availability.timeout.ms``);
            0 never skips a broker.
        partitioner_ignores_keys: whether the partitioner ignores keys
            (``partitioner.ignore.keys``).
        metadata_idle_seconds: how long a topic may go unused before its metadata is dropped
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
