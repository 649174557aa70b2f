"""The keys of TLS and SASL, which every client has.

Kafka's own, and librdkafka's where Kafka's needs a Java class, a text in the form of JAAS or a key
store: ``sasl.username``, ``sasl.password``, and files or texts in PEM.
"""

from __future__ import annotations

from ...protocol._config_types import (
    BOOLEAN,
    DOUBLE,
    FROM_0,
    FROM_1,
    INT,
    LIST,
    LONG,
    PASSWORD,
    SHORT,
    STRING,
    Row,
    between,
)
from ..security._settings import MECHANISMS

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
#: Empty turns the check of the broker's name off.
IDENTIFICATIONS = ("https", "")

SECURITY: tuple[Row, ...] = (
    ("sasl.jaas.config", PASSWORD, None, None),
    ("sasl.login.connect.timeout.ms", INT, None, FROM_1),
    ("sasl.login.read.timeout.ms", INT, None, FROM_1),
    ("sasl.login.refresh.buffer.seconds", SHORT, 300, between(0, 3600)),
    ("sasl.login.refresh.min.period.seconds", SHORT, 60, between(0, 900)),
    # From 0.5 to 1, and from 0 to 0.25.
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
