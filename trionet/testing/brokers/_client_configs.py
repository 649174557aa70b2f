"""What clients need to be told to connect, in each one's own words."""

from __future__ import annotations

import ssl
from typing import Any

import attrs

CLIENTS = ("confluent-kafka", "kafka-python", "aiokafka")


@attrs.frozen(kw_only=True)
class ClientSecurity:
    """What the listener of a broker asks of clients.

    Attributes:
        ca_pem: the certificates that the broker's is signed by, as PEM; None without TLS.
        sasl_mechanism: such as ``PLAIN``; None without SASL.
        username: whose password is good.
        password: that password.
    """

    ca_pem: str | None = None
    sasl_mechanism: str | None = None
    username: str | None = None
    password: str | None = None

    @property
    def protocol(self) -> str:
        """Kafka's name of it."""
        if self.ca_pem is not None:
            return "SSL" if self.sasl_mechanism is None else "SASL_SSL"
        return "PLAINTEXT" if self.sasl_mechanism is None else "SASL_PLAINTEXT"


def client_config(client: str, bootstrap_servers: str, security: ClientSecurity) -> dict[str, Any]:
    """The settings of a client that let it connect.

    Raises:
        ValueError: the client is none of :data:`CLIENTS`.
    """
    if client not in CLIENTS:
        raise ValueError(f"{client!r} is no client known here; allowed: {', '.join(CLIENTS)}")
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
    """For kafka-python and aiokafka, which call everything the same."""
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
