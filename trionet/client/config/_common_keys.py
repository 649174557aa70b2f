"""The keys that every client has: connections, requests, metadata of the cluster.

One line a key: name, type, default, rule, all of them Kafka 4.3's, except the default of
``client.id`` (Kafka's clients make up ``producer-1`` and the like) and rules that Kafka checks
elsewhere. Where one client's default is another, its own table says so.
"""

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
    between,
)

COMMON: tuple[Row, ...] = (
    ("client.dns.lookup", STRING, "use_all_dns_ips", ("use_all_dns_ips",)),
    ("client.id", STRING, "trionet", None),
    ("connections.max.idle.ms", LONG, 540_000, None),
    ("enable.metrics.push", BOOLEAN, True, None),
    ("metadata.max.age.ms", LONG, 300_000, FROM_0),
    ("metadata.recovery.rebootstrap.trigger.ms", LONG, 300_000, FROM_0),
    ("metadata.recovery.strategy", STRING, "rebootstrap", ("rebootstrap", "none")),
    ("metrics.num.samples", INT, 2, FROM_1),
    ("metrics.sample.window.ms", LONG, 30_000, FROM_1),
    ("receive.buffer.bytes", INT, 65_536, FROM_MINUS_1),
    ("reconnect.backoff.max.ms", LONG, 1000, FROM_0),
    ("reconnect.backoff.ms", LONG, 50, FROM_0),
    ("request.timeout.ms", INT, 30_000, FROM_0),
    ("retry.backoff.max.ms", LONG, 1000, FROM_0),
    ("retry.backoff.ms", LONG, 100, FROM_0),
    ("send.buffer.bytes", INT, 131_072, FROM_MINUS_1),
    ("socket.connection.setup.timeout.max.ms", LONG, 30_000, FROM_1),
    ("socket.connection.setup.timeout.ms", LONG, 10_000, FROM_1),
)

# Kafka's clients take answers of any size.
OURS: tuple[Row, ...] = (("receive.message.max.bytes", INT, 100_000_000, between(1000, INT_MAX)),)
