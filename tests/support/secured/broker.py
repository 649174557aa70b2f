"""A `trionet broker` with every kind of secured listener, set up as its user would: with files."""

from __future__ import annotations

import contextlib
import datetime
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from cryptography.x509 import load_pem_x509_certificate

from support.processes import SAME_TRIONET, first_line, running
from support.secured.access import MECHANISMS, OAUTHBEARER, PASSWORD, USER, Access, Failure
from support.tls import authority, certificate, write_pem, write_trust
from support.tokens import RSA_KEY, jwk, key_set, signed

_READY = "trionet broker ready: "
_LISTENERS = {
    "SSL": "SSL",
    "MUTUAL": "SSL",
    "SASL_PLAINTEXT": "SASL_PLAINTEXT",
    "SASL_SSL": "SASL_SSL",
    "UNSIGNED_PLAINTEXT": "SASL_PLAINTEXT",
    "UNSIGNED_SSL": "SASL_SSL",
    "EXPIRED": "SSL",
    "ELSEWHERE": "SSL",
}
_UNSECURED = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured."
    "OAuthBearerUnsecuredValidatorCallbackHandler"
)
_PLAIN_USERS = (
    f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
)


class SecuredBroker:
    """A running broker and what its clients need; made by :func:`secured_broker`.

    Args:
        folder: where the files of its clients are.
        bootstraps: where each listener is, by its name.
    """

    def __init__(self, folder: Path, bootstraps: dict[str, str]) -> None:
        self._folder = folder
        self._bootstraps = bootstraps

    @property
    def token_files(self) -> tuple[Path, ...]:
        """The tokens that its issuer has signed, good or not."""
        return self._folder / "token", self._folder / "expired-token"

    def _access(self, listener: str, **more: Any) -> Access:
        given = {"trust": self._folder / "trust.pem", **more}
        return Access(self._bootstraps[listener], _LISTENERS[listener], **given)

    def ssl(self) -> Access:
        return self._access("SSL")

    def mutual(self) -> Access:
        return self._access("MUTUAL", certificate=self._folder / "client.pem")

    def sasl(self, protocol: str, mechanism: str) -> Access:
        """By a password, or by a token that the broker's issuer has signed."""
        if mechanism != OAUTHBEARER:
            return self._access(protocol, mechanism=mechanism)
        file = self._folder / "token"
        token = file.read_text()
        return self._access(protocol, mechanism=mechanism, token=token, token_file=file)

    def unsigned(self, protocol: str) -> Access:
        """By a token that the client writes itself, where the listener takes such tokens."""
        listener = protocol.replace("SASL", "UNSIGNED")
        return self._access(listener, mechanism=OAUTHBEARER, is_unsecured=True)

    def failing(self, failure: Failure, protocol: str = "SASL_SSL", mechanism: str = "") -> Access:
        """An access that cannot work."""
        match failure:
            case Failure.WRONG_PASSWORD:
                return self._access(protocol, mechanism=mechanism, password="wrong")
            case Failure.BAD_TOKEN:
                file = self._folder / "expired-token"
                return self._access(
                    protocol, mechanism=OAUTHBEARER, token=file.read_text(), token_file=file
                )
            case Failure.EXPIRED_SERVER:
                return self._access("EXPIRED")
            case Failure.OTHER_HOST:
                return self._access("ELSEWHERE")
            case Failure.EXPIRED_CLIENT:
                return self._access("MUTUAL", certificate=self._folder / "expired-client.pem")
            case Failure.NO_CERTIFICATE:
                return self._access("MUTUAL")


def _expired(*names: str, common_name: str) -> trustme.LeafCert:
    """A certificate that was good for a day, until yesterday."""
    day = datetime.timedelta(days=1)
    end = datetime.datetime.now(datetime.UTC) - day
    return authority().issue_cert(
        *names, common_name=common_name, not_before=end - day, not_after=end
    )


def _token(expires_in: int) -> str:
    now = int(time.time())
    return signed({"sub": USER, "iat": now - 7200, "exp": now + expires_in})


def _write_client(path: Path, leaf: trustme.LeafCert) -> None:
    """A keystore in PEM whose key is in the one form that Java reads (PKCS8)."""
    key = load_pem_private_key(leaf.private_key_pem.bytes(), None)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(pem + b"".join(each.bytes() for each in leaf.cert_chain_pems))


def _write_pkcs12(path: Path, leaf: trustme.LeafCert) -> None:
    key: Any = load_pem_private_key(leaf.private_key_pem.bytes(), None)
    first = load_pem_x509_certificate(leaf.cert_chain_pems[0].bytes())
    encryption = BestAvailableEncryption(PASSWORD.encode())
    path.write_bytes(serialize_key_and_certificates(b"broker", key, first, None, encryption))


def _write_files(folder: Path) -> None:
    write_trust(folder / "trust.pem")
    write_pem(folder / "broker.pem", certificate("localhost"))
    write_pem(folder / "elsewhere.pem", certificate("elsewhere.example"))
    write_pem(folder / "expired.pem", _expired("localhost", common_name="broker"))
    _write_pkcs12(folder / "broker.p12", certificate("localhost"))
    _write_client(folder / "client.pem", certificate("client.example", common_name=USER))
    _write_client(folder / "expired-client.pem", _expired("client.example", common_name=USER))
    (folder / "keys.json").write_text(key_set(jwk(RSA_KEY, kid="rsa")))
    (folder / "token").write_text(_token(3600))
    (folder / "expired-token").write_text(_token(-3600))
    (folder / "password").write_text(PASSWORD + "\n")


def _properties(folder: Path) -> str:
    """The broker's `server.properties`."""
    listeners = ",".join(f"{name}://localhost:0" for name in _LISTENERS)
    protocols = ",".join(map(":".join, _LISTENERS.items()))
    lines = [
        f"listeners={listeners}",
        f"listener.security.protocol.map={protocols}",
        f"log.dirs={folder / 'data'}",
        "ssl.keystore.type=PEM",
        f"ssl.keystore.location={folder / 'broker.pem'}",
        "ssl.truststore.type=PEM",
        f"ssl.truststore.location={folder / 'trust.pem'}",
        "listener.name.mutual.ssl.client.auth=required",
        "listener.name.mutual.ssl.keystore.type=PKCS12",
        f"listener.name.mutual.ssl.keystore.location={folder / 'broker.p12'}",
        f"listener.name.mutual.ssl.keystore.password={PASSWORD}",
        f"listener.name.expired.ssl.keystore.location={folder / 'expired.pem'}",
        f"listener.name.elsewhere.ssl.keystore.location={folder / 'elsewhere.pem'}",
        f"sasl.enabled.mechanisms={','.join(MECHANISMS)}",
        f"sasl.oauthbearer.jwks.endpoint.url=file://{folder / 'keys.json'}",
    ]
    for listener, protocol in _LISTENERS.items():
        prefix = f"listener.name.{listener.lower()}"
        if listener.startswith("UNSIGNED"):
            lines += [
                f"{prefix}.sasl.enabled.mechanisms={OAUTHBEARER}",
                f"{prefix}.oauthbearer.sasl.server.callback.handler.class={_UNSECURED}",
            ]
        elif protocol.startswith("SASL"):
            lines.append(f"{prefix}.plain.sasl.jaas.config={_PLAIN_USERS}")
    return "\n".join([*lines, ""])


@contextlib.contextmanager
def secured_broker(folder: Path) -> Iterator[SecuredBroker]:
    """A broker whose files, and whose clients' files, are in `folder`.

    Its one user, `USER`, may log in by every mechanism, and by a certificate.
    """
    _write_files(folder)
    (folder / "server.properties").write_text(_properties(folder))
    command: list[str | Path] = [sys.executable, "-m", "trionet", "broker", "--config"]
    command.append(folder / "server.properties")
    subprocess.run(
        [*command, "--add-scram", USER, "--password-file", folder / "password"],
        check=True,
        capture_output=True,
        env=SAME_TRIONET,
    )
    with running(command, env=SAME_TRIONET, stderr=folder / "log") as process:
        line = first_line(process)
        if not line.startswith(_READY):
            raise RuntimeError(f"{line!r} is not the line that says it is ready")
        endpoints = line.removeprefix(_READY).split(",")
        bootstraps = dict(endpoint.split("://") for endpoint in endpoints)
        yield SecuredBroker(folder, bootstraps)
