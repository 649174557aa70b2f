"""Brokers with TLS and SASL for tests, with certificates made on the fly.

One authority and one certificate for ``localhost`` and 127.0.0.1 serve all brokers of a process;
neither its key nor any password is kept anywhere.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Final

import attrs
import trio

from ...errors import ConfigError
from ...net.sasl._scram import HASHES, ScramCredential, salted
from ..internals._broker_internals import Inside
from ._client_configs import ClientSecurity

USERNAME: Final = "tester"
PASSWORD: Final = "not a secret"  # noqa: S105  # of brokers that live as long as a test
MECHANISMS: Final = ("PLAIN", *HASHES)


@attrs.frozen(kw_only=True)
class Security:
    """How a broker for tests is secured.

    Attributes:
        settings: Kafka's settings that do it.
        client: what a client has to do.
    """

    settings: dict[str, object]
    client: ClientSecurity

    def check(self, given: Mapping[str, object]) -> None:
        """Refuse settings beside which this would have no effect.

        Raises:
            ConfigError: they say where to listen.
        """
        if self.settings and "listeners" in given:
            raise ConfigError(
                "listeners is not allowed beside tls and sasl, which make a listener of their own;"
                " without these, settings can secure any listener"
            )


def security_of(*, tls: bool, sasl: str | None) -> Security:
    """What makes a broker's only listener one with TLS, SASL, or both.

    Raises:
        ConfigError: the mechanism is not allowed here, or a package is not installed.
    """
    if sasl is not None and sasl not in MECHANISMS:
        raise ConfigError(f"sasl={sasl!r} is not allowed; allowed: {', '.join(MECHANISMS)}")
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


async def add_users(inside: Inside, client: ClientSecurity) -> None:
    """Let the user in by SCRAM; of PLAIN the settings tell."""
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
        raise ConfigError("tls=True needs the package trustme; install trionet[testing]") from None
    authority = trustme.CA()
    issued = authority.issue_cert("localhost", "127.0.0.1")
    return _Pem(
        authority.cert_pem.bytes().decode(),
        "".join(pem.bytes().decode() for pem in issued.cert_chain_pems),
        issued.private_key_pem.bytes().decode(),
    )
