"""Kafka's keys that change nothing here, and those that ask for what trionet does not have.

The first are accepted, and listed once in the log. The second are refused unless they ask for
nothing, since records would go elsewhere, or a connection be less safe, than was asked for.
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

# Java classes that trionet needs none of, or has its own of; files and commands of Kerberos, which
# is refused as a mechanism; how a broker, whose keys these are too, checks tokens.
_ALL_WITHOUT_MEANING: tuple[Row, ...] = (
    # An argument of its own, which counts.
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

WITHOUT_MEANING: Mapping[str, tuple[Row, ...]] = MappingProxyType(
    {
        "producer": (
            *_ALL_WITHOUT_MEANING,
            # Values and keys are bytes.
            ("key.serializer", CLASS, None, None),
            ("transaction.timeout.ms", INT, 60_000, None),
            ("value.serializer", CLASS, None, None),
        ),
        "consumer": (
            *_ALL_WITHOUT_MEANING,
            ("internal.throw.on.fetch.stable.offset.unsupported", BOOLEAN, False, None),
            ("key.deserializer", CLASS, None, None),
            # Share consumers alone have use for them.
            ("share.acknowledgement.mode", STRING, "implicit", None),
            ("share.acquire.mode", STRING, "BATCH_OPTIMIZED", None),
            ("value.deserializer", CLASS, None, None),
        ),
        "admin client": _ALL_WITHOUT_MEANING,
    }
)


class Refusal(NamedTuple):
    """A key that asks for what trionet does not have.

    Attributes:
        row: name, type, default, rule.
        harmless: the values that ask for nothing, besides the default.
        advice: what to do.
    """

    row: Row
    harmless: tuple[Value, ...]
    advice: str


_LOGIN = "leaving it out, and giving sasl.username and sasl.password, sasl.jaas.config, or tokens"
_TOKENS = "leaving it out, and giving a function that fetches tokens"
_HOOKS = "leaving it out, and giving functions in its place, such as on_send and on_consume"
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

_ALL_REFUSED: tuple[Refusal, ...] = (
    Refusal(("config.providers", LIST, (), None), (), "leaving it out, and giving the values"),
    Refusal(("sasl.client.callback.handler.class", CLASS, None, None), (), _LOGIN),
    Refusal(
        ("sasl.login.callback.handler.class", CLASS, None, None), _OAUTHBEARER_CALLBACKS, _LOGIN
    ),
    Refusal(("sasl.login.class", CLASS, None, None), (), _LOGIN),
    *(Refusal(row, (), _TOKENS) for row in _TOKEN_ENDPOINT_KEYS),
    Refusal(("ssl.engine.factory.class", CLASS, None, None), (), "leaving it out"),
)

REFUSED: Mapping[str, tuple[Refusal, ...]] = MappingProxyType(
    {
        "producer": (
            *_ALL_REFUSED,
            Refusal(("interceptor.classes", LIST, (), None), (), _HOOKS),
            Refusal(
                ("partitioner.class", CLASS, None, None),
                (),
                "leaving it out, and giving each record its partition",
            ),
            Refusal(
                ("transaction.two.phase.commit.enable", BOOLEAN, False, None),
                (),
                "false, since this version has no transactions",
            ),
            Refusal(
                ("transactional.id", STRING, None, None),
                (),
                "leaving it out, since this version has no transactions",
            ),
        ),
        "consumer": (
            *_ALL_REFUSED,
            Refusal(
                ("group.protocol", STRING, "classic", ("classic", "consumer")),
                (),
                "classic, since this version has no groups of KIP-848",
            ),
            Refusal(
                ("group.remote.assignor", STRING, None, None),
                (),
                "leaving it out, and naming assignors in partition.assignment.strategy",
            ),
            Refusal(("interceptor.classes", LIST, (), None), (), _HOOKS),
        ),
        "admin client": _ALL_REFUSED,
    }
)
