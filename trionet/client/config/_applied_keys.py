"""The keys that have an effect: for all clients, for TLS and SASL, and for each kind of client.

One row per key: name, type, default, rule. The rows match Kafka 4.3, except for the default of
``client.id`` (Kafka's clients generate names such as ``producer-1``), rules that Kafka checks
elsewhere, and librdkafka's keys that replace a Java class, a JAAS string or a keystore:
``sasl.username``, ``sasl.password``, and PEM files or strings. If a client's default differs from
the common one, the client's own table repeats the key.
"""

from __future__ import annotations

from ...protocol._config_types import (
    BOOLEAN,
    DOUBLE,
    FROM_0,
    FROM_1,
    FROM_MINUS_1,
    INT,
    INT_MAX,
    LIST,
    LONG,
    PASSWORD,
    SHORT,
    STRING,
    Row,
    at_least,
    between,
)
from ..security._settings import MECHANISMS

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

# Kafka's clients accept responses of any size.
OURS: tuple[Row, ...] = (("receive.message.max.bytes", INT, 100_000_000, between(1000, INT_MAX)),)

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
#: The empty string disables host name verification.
IDENTIFICATIONS = ("https", "")

SECURITY: tuple[Row, ...] = (
    ("sasl.jaas.config", PASSWORD, None, None),
    ("sasl.login.connect.timeout.ms", INT, None, FROM_1),
    ("sasl.login.read.timeout.ms", INT, None, FROM_1),
    ("sasl.login.refresh.buffer.seconds", SHORT, 300, between(0, 3600)),
    ("sasl.login.refresh.min.period.seconds", SHORT, 60, between(0, 900)),
    # Checked when settings are built: 0.5 to 1, and 0 to 0.25.
    ("sasl.login.refresh.window.factor", DOUBLE, 0.8, None),
    ("sasl.login.refresh.window.jitter", DOUBLE, 0.05, None),
    ("sasl.login.retry.backoff.max.ms", LONG, 10_000, FROM_0),
    ("sasl.login.retry.backoff.ms", LONG, 100, FROM_0),
    ("sasl.mechanism", STRING, "GSSAPI", MECHANISMS),
    ("sasl.oauthbearer.client.credentials.client.id", STRING, None, None),
    ("sasl.oauthbearer.client.credentials.client.secret", PASSWORD, None, None),
    ("sasl.oauthbearer.header.urlencode", BOOLEAN, False, None),
    ("sasl.oauthbearer.scope", STRING, None, None),
    ("sasl.oauthbearer.token.endpoint.url", STRING, None, None),
    ("security.protocol", STRING, "PLAINTEXT", PROTOCOLS),
    ("ssl.cipher.suites", LIST, (), None),
    ("ssl.enabled.protocols", LIST, ("TLSv1.2", "TLSv1.3"), ("TLSv1.2", "TLSv1.3")),
    ("ssl.endpoint.identification.algorithm", STRING, "https", IDENTIFICATIONS),
    ("ssl.key.password", PASSWORD, None, None),
    ("ssl.keystore.certificate.chain", PASSWORD, None, None),
    ("ssl.keystore.key", PASSWORD, None, None),
    ("ssl.keystore.location", STRING, None, None),
    ("ssl.keystore.password", PASSWORD, None, None),
    ("ssl.keystore.type", STRING, "JKS", ("JKS", "PKCS12", "PEM")),
    ("ssl.truststore.certificates", PASSWORD, None, None),
    ("ssl.truststore.location", STRING, None, None),
    ("ssl.truststore.password", PASSWORD, None, None),
    ("ssl.truststore.type", STRING, "JKS", ("JKS", "PKCS12", "PEM")),
)

OF_LIBRDKAFKA: tuple[Row, ...] = (
    ("sasl.password", PASSWORD, None, None),
    ("sasl.username", STRING, None, None),
    ("ssl.ca.location", STRING, None, None),
    ("ssl.ca.pem", PASSWORD, None, None),
    ("ssl.certificate.location", STRING, None, None),
    ("ssl.certificate.pem", PASSWORD, None, None),
    ("ssl.key.location", STRING, None, None),
    ("ssl.key.pem", PASSWORD, None, None),
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

ADMIN: tuple[Row, ...] = (
    ("bootstrap.controllers", LIST, (), None),
    ("connections.max.idle.ms", LONG, 300_000, None),
    ("default.api.timeout.ms", INT, 60_000, FROM_0),
    ("enable.metrics.push", BOOLEAN, False, None),
    ("retries", INT, INT_MAX, between(0, INT_MAX)),
)
