"""The keys of TLS and SASL, which every client has.

Kafka's own, and librdkafka's where Kafka's needs a Java class, a text in the form of JAAS or a key
store: ``sasl.username``, ``sasl.password``, and files or texts in PEM.
"""

from __future__ import annotations

from ...protocol.config_types import LIST, PASSWORD, STRING, Row

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
#: Empty turns the check of the broker's name off.
IDENTIFICATIONS = ("https", "")

SECURITY: tuple[Row, ...] = (
    ("sasl.jaas.config", PASSWORD, None, None),
    ("sasl.mechanism", STRING, "GSSAPI", MECHANISMS),
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
