"""The keys that only producers have, and those whose default is another for them."""

from __future__ import annotations

from ...protocol._config_types import (
    BOOLEAN,
    FROM_0,
    FROM_1,
    FROM_MINUS_1,
    INT,
    INT_MAX,
    LONG,
    STRING,
    Row,
    at_least,
    between,
)

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
GZIP_LEVELS = (-1, 1, 2, 3, 4, 5, 6, 7, 8, 9)

PRODUCER: tuple[Row, ...] = (
    ("acks", STRING, "all", ("all", "-1", "0", "1")),
    ("batch.size", INT, 16_384, FROM_0),
    ("buffer.memory", LONG, 33_554_432, FROM_0),
    ("compression.gzip.level", INT, -1, GZIP_LEVELS),
    ("compression.lz4.level", INT, 9, between(1, 17)),
    ("compression.type", STRING, "none", CODECS),
    ("compression.zstd.level", INT, 3, between(-131_072, 22)),
    ("delivery.timeout.ms", INT, 120_000, FROM_0),
    ("enable.idempotence", BOOLEAN, True, None),
    ("linger.ms", LONG, 5, FROM_0),
    ("max.block.ms", LONG, 60_000, FROM_0),
    ("max.in.flight.requests.per.connection", INT, 5, FROM_1),
    ("max.request.size", INT, 1_048_576, FROM_0),
    ("metadata.max.idle.ms", LONG, 300_000, at_least(5000)),
    ("partitioner.adaptive.partitioning.enable", BOOLEAN, True, None),
    ("partitioner.availability.timeout.ms", LONG, 0, FROM_0),
    ("partitioner.ignore.keys", BOOLEAN, False, None),
    ("receive.buffer.bytes", INT, 32_768, FROM_MINUS_1),
    ("retries", INT, INT_MAX, between(0, INT_MAX)),
)
