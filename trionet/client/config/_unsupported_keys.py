"""Kafka's keys that have no effect in trionet, and keys for features that trionet does not have.

Keys without effect are accepted, and logged once. Keys for missing features are rejected unless the
value turns the feature off: ignoring them could send records to the wrong place, or make a
connection less secure than intended.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from ...protocol._config_types import (
    BOOLEAN,
    CLASS,
    DOUBLE,
    INT,
    LIST,
    LONG,
    PASSWORD,
    STRING,
    Row,
    Value,
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

WITHOUT_EFFECT: Mapping[str, tuple[Row, ...]] = MappingProxyType(
    {
        "producer": (
            *_ALL_WITHOUT_EFFECT,
            # Keys and values are bytes.
            ("key.serializer", CLASS, None, None),
            ("transaction.timeout.ms", INT, 60_000, None),
            ("value.serializer", CLASS, None, None),
        ),
        "consumer": (
            *_ALL_WITHOUT_EFFECT,
            ("internal.throw.on.fetch.stable.offset.unsupported", BOOLEAN, False, None),
            ("key.deserializer", CLASS, None, None),
            # For share consumers only.
            ("share.acknowledgement.mode", STRING, "implicit", None),
            ("share.acquire.mode", STRING, "BATCH_OPTIMIZED", None),
            ("value.deserializer", CLASS, None, None),
        ),
        "admin client": _ALL_WITHOUT_EFFECT,
    }
)


class UnsupportedKey(NamedTuple):
    """A key for a feature that trionet does not have.

    Attributes:
        row: name, type, default, rule.
        harmless: values other than the default that are accepted, since they do not use the
            feature.
        advice: what to do instead.
    """

    row: Row
    harmless: tuple[Value, ...]
    advice: str


_LOGIN = (
    "leave it out, and set sasl.username and sasl.password or sasl.jaas.config, or pass a function"
    " that fetches tokens (token_provider)"
)
_TOKENS = "leave it out, and pass a function that fetches tokens (token_provider)"
_HOOKS = "leave it out, and pass functions in its place, such as on_send and on_consume"
_PACKAGE = "org.apache.kafka.common.security.oauthbearer"
_OAUTHBEARER_CALLBACKS = (f"{_PACKAGE}.OAuthBearerLoginCallbackHandler",)

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
        ("config.providers", LIST, (), None), (), "leave it out, and set the values directly"
    ),
    UnsupportedKey(("sasl.client.callback.handler.class", CLASS, None, None), (), _LOGIN),
    UnsupportedKey(
        ("sasl.login.callback.handler.class", CLASS, None, None), _OAUTHBEARER_CALLBACKS, _LOGIN
    ),
    UnsupportedKey(("sasl.login.class", CLASS, None, None), (), _LOGIN),
    *(UnsupportedKey(row, (), _TOKENS) for row in _TOKEN_ENDPOINT_KEYS),
    UnsupportedKey(("ssl.engine.factory.class", CLASS, None, None), (), "leave it out"),
)

UNSUPPORTED: Mapping[str, tuple[UnsupportedKey, ...]] = MappingProxyType(
    {
        "producer": (
            *_ALL_UNSUPPORTED,
            UnsupportedKey(("interceptor.classes", LIST, (), None), (), _HOOKS),
            UnsupportedKey(
                ("partitioner.class", CLASS, None, None),
                (),
                "leave it out, and pass the partition with each record",
            ),
            UnsupportedKey(
                ("transaction.two.phase.commit.enable", BOOLEAN, False, None),
                (),
                "set it to false, since this version has no transactions",
            ),
            UnsupportedKey(
                ("transactional.id", STRING, None, None),
                (),
                "leave it out, since this version has no transactions",
            ),
        ),
        "consumer": (
            *_ALL_UNSUPPORTED,
            UnsupportedKey(
                ("group.protocol", STRING, "classic", ("classic", "consumer")),
                (),
                "set it to classic, since this version does not support KIP-848",
            ),
            UnsupportedKey(
                ("group.remote.assignor", STRING, None, None),
                (),
                "leave it out, and set partition.assignment.strategy",
            ),
            UnsupportedKey(("interceptor.classes", LIST, (), None), (), _HOOKS),
        ),
        "admin client": _ALL_UNSUPPORTED,
    }
)
