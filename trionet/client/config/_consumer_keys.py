"""The keys that only consumers have."""

from __future__ import annotations

from ...protocol._config_types import BOOLEAN, FROM_0, FROM_1, INT, LIST, STRING, Row

ISOLATION_LEVELS = ("read_committed", "read_uncommitted")

CONSUMER: tuple[Row, ...] = (
    ("allow.auto.create.topics", BOOLEAN, True, None),
    ("auto.commit.interval.ms", INT, 5000, FROM_0),
    ("auto.offset.reset", STRING, "latest", None),
    ("check.crcs", BOOLEAN, True, None),
    ("client.rack", STRING, "", None),
    ("default.api.timeout.ms", INT, 60_000, FROM_0),
    ("enable.auto.commit", BOOLEAN, True, None),
    ("exclude.internal.topics", BOOLEAN, True, None),
    ("fetch.max.bytes", INT, 52_428_800, FROM_0),
    ("fetch.max.wait.ms", INT, 500, FROM_0),
    ("fetch.min.bytes", INT, 1, FROM_0),
    ("group.id", STRING, None, None),
    ("group.instance.id", STRING, None, None),
    ("heartbeat.interval.ms", INT, 3000, FROM_1),
    ("isolation.level", STRING, "read_uncommitted", ISOLATION_LEVELS),
    ("max.partition.fetch.bytes", INT, 1_048_576, FROM_0),
    ("max.poll.interval.ms", INT, 300_000, FROM_1),
    ("max.poll.records", INT, 500, FROM_1),
    ("partition.assignment.strategy", LIST, ("range", "cooperative-sticky"), None),
    ("session.timeout.ms", INT, 45_000, FROM_1),
)
