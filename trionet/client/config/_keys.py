"""The keys of each kind of client: applied, without effect, or unsupported.

One row per key: name, type, default, rule. The rows match Kafka 4.3, except for the default of
``client.id`` (Kafka's clients generate names such as ``producer-1``), rules that Kafka checks
elsewhere, and librdkafka's keys that replace a Java class, a JAAS string or a keystore:
``sasl.username``, ``sasl.password``, and PEM files or strings. If a client's default differs from
the common one, the client's own table repeats the key.

Keys without effect are accepted, and logged once. Keys for missing features are rejected unless the
value turns the feature off: ignoring them could send records to the wrong place, or make a
connection less secure than intended.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

import attrs

from ..._util._text import nearest
from ...errors import ConfigError
from ...net.sasl import MECHANISMS
from ...protocol._config_types import (
    BOOLEAN,
    CLASS,
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
    Value,
    at_least,
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

# Kafka's clients accept responses of any size.
OURS: tuple[Row, ...] = (("receive.message.max.bytes", INT, 100_000_000, between(1000, INT_MAX)),)

#: The maximum of ``max.in.flight.requests.per.connection`` with idempotence. Brokers remember
#: only this many batches per producer (KIP-98).
IN_FLIGHT_MAX: Final = 5

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
#: The empty string disables host name verification.
IDENTIFICATIONS = ("https", "")

#: AWS's mechanism, for which this package uses OAUTHBEARER: see `.security._msk_iam`.
AWS_MSK_IAM: Final = "AWS_MSK_IAM"
_IAM: Final = "software.amazon.msk.auth.iam"
IAM_LOGIN_MODULE: Final = f"{_IAM}.IAMLoginModule"
IAM_LOGIN_CALLBACKS: Final = f"{_IAM}.IAMOAuthBearerLoginCallbackHandler"

KERBEROS: Final = (
    "Kerberos is not supported; docs/howto/connect-to-a-secured-cluster.md says under"
    " Kerberos what to use in its place"
)

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
    ("sasl.mechanism", STRING, "GSSAPI", (*MECHANISMS, AWS_MSK_IAM)),
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
    ("transaction.timeout.ms", INT, 60_000, FROM_1),
    ("transactional.id", STRING, None, None),
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
    # Kafka's consumers have no such limit.
    ("fetch.max.decompressed.bytes", LONG, 134_217_728, FROM_1),
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


# Java classes that have or need no counterpart; Kerberos, which is rejected as a mechanism; and
# keys for a broker's validation of tokens, which Kafka's clients accept too.
_ALL_WITHOUT_EFFECT: tuple[Row, ...] = (
    # Superseded by the argument of the same name.
    ("bootstrap.servers", LIST, None, None),
    ("metric.reporters", LIST, ("org.apache.kafka.common.metrics.JmxReporter",), None),
    ("metrics.recording.level", STRING, "INFO", ("INFO", "DEBUG", "TRACE")),
    ("sasl.kerberos.kinit.cmd", STRING, "/usr/bin/kinit", None),
    ("sasl.kerberos.min.time.before.relogin", LONG, 60_000, None),
    ("sasl.kerberos.service.name", STRING, None, None),
    ("sasl.kerberos.ticket.renew.jitter", DOUBLE, 0.05, None),
    ("sasl.kerberos.ticket.renew.window.factor", DOUBLE, 0.8, None),
    ("sasl.oauthbearer.clock.skew.seconds", INT, 30, None),
    ("sasl.oauthbearer.expected.audience", LIST, (), None),
    ("sasl.oauthbearer.expected.issuer", STRING, None, None),
    ("sasl.oauthbearer.jwks.endpoint.refresh.ms", LONG, 3_600_000, None),
    ("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", LONG, 10_000, None),
    ("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", LONG, 100, None),
    ("sasl.oauthbearer.jwks.endpoint.url", STRING, None, None),
    ("sasl.oauthbearer.scope.claim.name", STRING, "scope", None),
    ("sasl.oauthbearer.sub.claim.name", STRING, "sub", None),
    ("security.providers", STRING, None, None),
    ("ssl.keymanager.algorithm", STRING, "SunX509", None),
    ("ssl.protocol", STRING, "TLSv1.3", None),
    ("ssl.provider", STRING, None, None),
    ("ssl.secure.random.implementation", STRING, None, None),
    ("ssl.trustmanager.algorithm", STRING, "PKIX", None),
)

PRODUCER_WITHOUT_EFFECT: tuple[Row, ...] = (
    # Keys and values are bytes.
    ("key.serializer", CLASS, None, None),
    ("value.serializer", CLASS, None, None),
)

CONSUMER_WITHOUT_EFFECT: tuple[Row, ...] = (
    ("internal.throw.on.fetch.stable.offset.unsupported", BOOLEAN, False, None),
    ("key.deserializer", CLASS, None, None),
    # For share consumers only.
    ("share.acknowledgement.mode", STRING, "implicit", None),
    ("share.acquire.mode", STRING, "BATCH_OPTIMIZED", None),
    ("value.deserializer", CLASS, None, None),
)


class UnsupportedKey(NamedTuple):
    """A key for a feature that trionet does not have.

    Attributes:
        row: name, type, default, rule.
        advice: what to do instead.
        harmless: values other than the default that are accepted, since they do not use the
            feature.
    """

    row: Row
    advice: str
    harmless: tuple[Value, ...] = ()


_LOGIN = (
    "leave it out, and set sasl.username and sasl.password or sasl.jaas.config, or pass a function"
    " that fetches tokens (token_provider)"
)
_TOKENS = "leave it out, and pass a function that fetches tokens (token_provider)"
_HOOKS = "leave it out, and pass functions in its place, such as on_send and on_consume"
_PACKAGE = "org.apache.kafka.common.security.oauthbearer"
_CLIENT_CALLBACKS = (f"{_IAM}.IAMClientCallbackHandler", IAM_LOGIN_CALLBACKS)
_LOGIN_CALLBACKS = (f"{_PACKAGE}.OAuthBearerLoginCallbackHandler", IAM_LOGIN_CALLBACKS)

_TOKEN_ENDPOINT_KEYS: tuple[Row, ...] = (
    ("sasl.oauthbearer.assertion.algorithm", STRING, "RS256", None),
    ("sasl.oauthbearer.assertion.claim.aud", STRING, None, None),
    ("sasl.oauthbearer.assertion.claim.exp.seconds", INT, 300, None),
    ("sasl.oauthbearer.assertion.claim.iss", STRING, None, None),
    ("sasl.oauthbearer.assertion.claim.jti.include", BOOLEAN, False, None),
    ("sasl.oauthbearer.assertion.claim.nbf.seconds", INT, 60, None),
    ("sasl.oauthbearer.assertion.claim.sub", STRING, None, None),
    ("sasl.oauthbearer.assertion.file", STRING, None, None),
    ("sasl.oauthbearer.assertion.private.key.file", STRING, None, None),
    ("sasl.oauthbearer.assertion.private.key.passphrase", PASSWORD, None, None),
    ("sasl.oauthbearer.assertion.template.file", STRING, None, None),
    ("sasl.oauthbearer.jwt.retriever.class", CLASS, f"{_PACKAGE}.DefaultJwtRetriever", None),
    ("sasl.oauthbearer.jwt.validator.class", CLASS, f"{_PACKAGE}.DefaultJwtValidator", None),
)

_ALL_UNSUPPORTED: tuple[UnsupportedKey, ...] = (
    UnsupportedKey(
        ("config.providers", LIST, (), None), "leave it out, and set the values directly"
    ),
    UnsupportedKey(
        ("sasl.client.callback.handler.class", CLASS, None, None), _LOGIN, _CLIENT_CALLBACKS
    ),
    UnsupportedKey(
        ("sasl.login.callback.handler.class", CLASS, None, None), _LOGIN, _LOGIN_CALLBACKS
    ),
    UnsupportedKey(("sasl.login.class", CLASS, None, None), _LOGIN),
    *(UnsupportedKey(row, _TOKENS) for row in _TOKEN_ENDPOINT_KEYS),
    UnsupportedKey(("ssl.engine.factory.class", CLASS, None, None), "leave it out"),
)

_INTERCEPTORS = UnsupportedKey(("interceptor.classes", LIST, (), None), _HOOKS)

PRODUCER_UNSUPPORTED = (
    _INTERCEPTORS,
    UnsupportedKey(
        ("partitioner.class", CLASS, None, None),
        "leave it out, and pass the partition with each record",
    ),
    UnsupportedKey(
        ("transaction.two.phase.commit.enable", BOOLEAN, False, None),
        "set it to false, since trionet takes no part in other systems' transactions (KIP-939)",
    ),
)

CONSUMER_UNSUPPORTED = (
    UnsupportedKey(
        ("group.protocol", STRING, "classic", ("classic", "consumer")),
        "set it to classic, since this version does not support KIP-848",
    ),
    UnsupportedKey(
        ("group.remote.assignor", STRING, None, None),
        "leave it out, and set partition.assignment.strategy",
    ),
    _INTERCEPTORS,
)

#: Kafka's keys, keyed by librdkafka's names for them.
KAFKAS_NAME: Final[Mapping[str, str]] = MappingProxyType(
    {
        "auto.commit.enable": "enable.auto.commit",
        "batch.num.messages": "batch.size",
        "compression.codec": "compression.type",
        "compression.level": "compression.gzip.level, compression.lz4.level or"
        " compression.zstd.level",
        "fetch.error.backoff.ms": "retry.backoff.ms",
        "fetch.message.max.bytes": "max.partition.fetch.bytes",
        "fetch.wait.max.ms": "fetch.max.wait.ms",
        "max.in.flight": "max.in.flight.requests.per.connection",
        "message.max.bytes": "max.request.size",
        "message.send.max.retries": "retries",
        "message.timeout.ms": "delivery.timeout.ms",
        "metadata.broker.list": "bootstrap.servers",
        "queue.buffering.max.kbytes": "buffer.memory",
        "queue.buffering.max.messages": "buffer.memory",
        "queue.buffering.max.ms": "linger.ms",
        "request.required.acks": "acks",
        "sasl.mechanisms": "sasl.mechanism",
        "sasl.oauthbearer.client.id": "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.secret": "sasl.oauthbearer.client.credentials.client.secret",
        "socket.receive.buffer.bytes": "receive.buffer.bytes",
        "socket.send.buffer.bytes": "send.buffer.bytes",
        "socket.timeout.ms": "request.timeout.ms",
        "statistics.interval.ms": "statistics()",
        "topic.metadata.refresh.interval.ms": "metadata.max.age.ms",
    }
)


@attrs.frozen
class ClientKeys:
    """The keys of one kind of client, under their dotted names.

    Attributes:
        client: the name of this kind of client in error messages.
        topics: where topics are named, which no setting does, for error messages.
        applied: the keys that have an effect.
        without_effect: Kafka's keys that are accepted but have no effect.
        unsupported: Kafka's keys for features that trionet does not have.
    """

    client: str
    topics: str
    applied: Mapping[str, Row]
    without_effect: Mapping[str, Row]
    unsupported: Mapping[str, UnsupportedKey]

    def row(self, name: str) -> Row:
        """Return the row of a key; the name may have dots or underscores.

        Raises:
            ConfigError: this client has no such key; the message suggests what to do instead.
        """
        key = name if "." in name else name.replace("_", ".")
        if row := self.applied.get(key) or self.without_effect.get(key):
            return row
        if unsupported := self.unsupported.get(key):
            return unsupported.row
        if key in KAFKAS_NAME:
            raise ConfigError(f"{key} is librdkafka's name; use Kafka's: {KAFKAS_NAME[key]}")
        if of := [f"{each.client}s" for each in CLIENTS if each.has(key)]:
            raise ConfigError(
                f"{key} is a setting of {' and '.join(of)}, not of {self.client}s; leave it out"
            )
        hint = f"; {self.topics}" if key in {"topic", "topics"} else nearest(key, self.applied)
        raise ConfigError(f"{key}: unknown key{hint}")

    def has(self, key: str) -> bool:
        return key in self.applied or key in self.without_effect or key in self.unsupported


def _keys_of(
    client: str,
    topics: str,
    own: tuple[Row, ...],
    without_effect: tuple[Row, ...] = (),
    unsupported: tuple[UnsupportedKey, ...] = (),
) -> ClientKeys:
    # The client's own table comes last: its defaults take precedence.
    rows = (*COMMON, *OURS, *SECURITY, *OF_LIBRDKAFKA, *own)
    return ClientKeys(
        client,
        topics,
        MappingProxyType({row[0]: row for row in rows}),
        MappingProxyType({row[0]: row for row in (*_ALL_WITHOUT_EFFECT, *without_effect)}),
        MappingProxyType({each.row[0]: each for each in (*_ALL_UNSUPPORTED, *unsupported)}),
    )


PRODUCER_KEYS: Final = _keys_of(
    "producer",
    "a topic is the first argument of send()",
    PRODUCER,
    PRODUCER_WITHOUT_EFFECT,
    PRODUCER_UNSUPPORTED,
)
CONSUMER_KEYS: Final = _keys_of(
    "consumer",
    "the topics to read are the keyword topics, such as topics='orders'",
    CONSUMER,
    CONSUMER_WITHOUT_EFFECT,
    CONSUMER_UNSUPPORTED,
)
ADMIN_KEYS: Final = _keys_of(
    "admin client", "topics are arguments of its calls, such as create_topics()", ADMIN
)
CLIENTS: Final = (PRODUCER_KEYS, CONSUMER_KEYS, ADMIN_KEYS)
