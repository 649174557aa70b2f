"""Builds the connection settings for several Kafka client libraries."""

from __future__ import annotations

import ssl
from typing import Any

import attrs

CLIENTS = ("confluent-kafka", "kafka-python", "aiokafka")


@attrs.frozen(kw_only=True)
class ClientSecurity:
    """The trust anchor and credentials with which a client connects to a secured listener.

    Attributes:
        ca_pem: the CA certificate that verifies the broker's certificate, as PEM; None without TLS.
        sasl_mechanism: the SASL mechanism, such as ``PLAIN``; None without SASL.
        username: the name of an existing user; None without SASL.
        password: the password of the user; None without SASL.
    """

    ca_pem: str | None = None
    sasl_mechanism: str | None = None
    username: str | None = None
    password: str | None = None

    @property
    def protocol(self) -> str:
        """Kafka's name for the security protocol."""
        if self.ca_pem is not None:
            return "SSL" if self.sasl_mechanism is None else "SASL_SSL"
        return "PLAINTEXT" if self.sasl_mechanism is None else "SASL_PLAINTEXT"


def client_config(client: str, bootstrap_servers: str, security: ClientSecurity) -> dict[str, Any]:
    """Return the connection settings for a client library.

    Raises:
        ValueError: the library is not one of :data:`CLIENTS`.
    """
    if client not in CLIENTS:
        raise ValueError(f"unknown client {client!r}; allowed: {', '.join(CLIENTS)}")
    if client == "confluent-kafka":
        return _for_librdkafka(bootstrap_servers, security)
    return _for_python(bootstrap_servers, security)


def _for_librdkafka(bootstrap_servers: str, security: ClientSecurity) -> dict[str, Any]:
    config = {"bootstrap.servers": bootstrap_servers}
    if security.protocol != "PLAINTEXT":
        config["security.protocol"] = security.protocol
    if security.ca_pem is not None:
        config["ssl.ca.pem"] = security.ca_pem
    if security.sasl_mechanism is not None:
        config["sasl.mechanism"] = security.sasl_mechanism
        config["sasl.username"] = security.username or ""
        config["sasl.password"] = security.password or ""
    return config


def _for_python(bootstrap_servers: str, security: ClientSecurity) -> dict[str, Any]:
    """Return the settings for kafka-python and aiokafka, which share setting names."""
    config: dict[str, Any] = {"bootstrap_servers": bootstrap_servers}
    if security.protocol != "PLAINTEXT":
        config["security_protocol"] = security.protocol
    if security.ca_pem is not None:
        config["ssl_context"] = ssl.create_default_context(cadata=security.ca_pem)
    if security.sasl_mechanism is not None:
        config["sasl_mechanism"] = security.sasl_mechanism
        config["sasl_plain_username"] = security.username
        config["sasl_plain_password"] = security.password
    return config
