"""TLS and SASL of brokers under test, and the settings with which clients connect to them.

All brokers in a process share one certificate authority and one certificate, for ``localhost`` and
127.0.0.1, generated at run time. The package contains no private key.
"""

from __future__ import annotations

import functools
import ssl
from collections.abc import Mapping
from typing import Any, Final

import attrs
import trio

from ..errors import ConfigError
from ..net.sasl._scram import HASHES, ScramCredential, salted
from ._client_timings import Kind, timings
from ._internals import BrokerInternals
from ._names import one_of

# pytest leaves the frames of this module out of its reports.
__tracebackhide__ = True

CLIENTS = ("confluent-kafka", "kafka-python", "aiokafka", "java")


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


def client_config(
    client: str, bootstrap_servers: str, security: ClientSecurity, kind: Kind | None = None
) -> dict[str, Any]:
    """Return the connection settings for a client library, and short timings if a kind is given.

    Raises:
        ValueError: the library is not one of :data:`CLIENTS`, or there is no such kind.
    """
    one_of("client", client, CLIENTS)
    short = {} if kind is None else timings(client, kind)
    if client == "confluent-kafka":
        return _for_librdkafka(bootstrap_servers, security) | short
    if client == "java":
        return _for_java(bootstrap_servers, security) | short
    return _for_python(bootstrap_servers, security) | short


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


def _for_java(bootstrap_servers: str, security: ClientSecurity) -> dict[str, Any]:
    """Return the settings for the Java client, which trionet's own clients accept as well."""
    config = {"bootstrap.servers": bootstrap_servers}
    if security.protocol != "PLAINTEXT":
        config["security.protocol"] = security.protocol
    if security.ca_pem is not None:
        config["ssl.truststore.type"] = "PEM"
        config["ssl.truststore.certificates"] = security.ca_pem
    if security.sasl_mechanism is not None:
        module = "plain.Plain" if security.sasl_mechanism == "PLAIN" else "scram.Scram"
        config["sasl.mechanism"] = security.sasl_mechanism
        config["sasl.jaas.config"] = (
            f"org.apache.kafka.common.security.{module}LoginModule required"
            f' username="{security.username}" password="{security.password}";'
        )
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


USERNAME: Final = "tester"
PASSWORD: Final = "not a secret"  # noqa: S105  # of brokers that live for a test
MECHANISMS: Final = ("PLAIN", *HASHES)


@attrs.frozen(kw_only=True)
class Security:
    """The security configuration of a broker under test.

    Attributes:
        settings: the broker settings that enable it.
        client: the trust anchor and credentials for clients.
    """

    settings: dict[str, object]
    client: ClientSecurity

    def check(self, settings: Mapping[str, object]) -> None:
        """Reject settings that conflict with the security settings.

        Raises:
            ConfigError: the settings include ``listeners``.
        """
        if self.settings and "listeners" in settings:
            raise ConfigError(
                "listeners cannot be combined with tls or sasl, which define a listener; to secure"
                " your own listeners, use Kafka's listener settings instead of tls and sasl"
            )


def security_of(*, tls: bool, sasl: str | None) -> Security:
    """Return the security configuration of a broker with one listener.

    Raises:
        ConfigError: an argument is invalid, or the ``trustme`` package is not installed.
    """
    if not isinstance(tls, bool):  # of a marker, which no type checker sees
        raise ConfigError(f"invalid tls={tls!r}; allowed: True, False")
    if sasl is not None and sasl not in MECHANISMS:
        raise ConfigError(f"invalid sasl={sasl!r}; allowed: {', '.join(MECHANISMS)}")
    pem = _certificates() if tls else None
    client = ClientSecurity(
        ca_pem=None if pem is None else pem.authority,
        sasl_mechanism=sasl,
        username=None if sasl is None else USERNAME,
        password=None if sasl is None else PASSWORD,
    )
    if client.protocol == "PLAINTEXT":
        return Security(settings={}, client=client)
    settings: dict[str, object] = {"listeners": f"{client.protocol}://127.0.0.1:0"}
    if pem is not None:
        settings["ssl.keystore.type"] = "PEM"
        settings["ssl.keystore.key"] = pem.key
        settings["ssl.keystore.certificate.chain"] = pem.chain
    if sasl is not None:
        settings["sasl.enabled.mechanisms"] = sasl
    if sasl == "PLAIN":
        settings[f"listener.name.{client.protocol.lower()}.plain.sasl.jaas.config"] = (
            "org.apache.kafka.common.security.plain.PlainLoginModule required"
            f' user_{USERNAME}="{PASSWORD}";'
        )
    return Security(settings=settings, client=client)


async def add_users(inside: BrokerInternals, client: ClientSecurity) -> None:
    """Store the user's SCRAM credentials, if any; for PLAIN, the password is in the settings."""
    await trio.lowlevel.checkpoint()
    if client.sasl_mechanism in HASHES:
        credentials = inside.cluster.scram_credentials
        assert credentials is not None, "a listener with SASL has loaded them"
        made = {client.sasl_mechanism: _credential(client.sasl_mechanism)}
        await credentials.put(USERNAME, made)


@functools.cache
def _credential(mechanism: str) -> ScramCredential:
    return salted(mechanism, PASSWORD)


@attrs.frozen
class _Pem:
    authority: str
    chain: str
    key: str


@functools.cache
def _certificates() -> _Pem:
    try:
        import trustme
    except ImportError:
        raise ConfigError(
            "tls=True requires the trustme package; install trionet[testing]"
        ) from None
    authority = trustme.CA()
    issued = authority.issue_cert("localhost", "127.0.0.1")
    return _Pem(
        authority.cert_pem.bytes().decode(),
        "".join(pem.bytes().decode() for pem in issued.cert_chain_pems),
        issued.private_key_pem.bytes().decode(),
    )
