"""Key stores and trust stores: PEM by the standard library, PKCS12 by the package ``cryptography``.

Java's own format, JKS, is not read; but files of that "type" have been PKCS12 inside since Java 9,
and those are.
"""

from __future__ import annotations

import os
import re
import secrets
import ssl
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import attrs

from ..errors import ConfigError
from .certificate import alternative_names, distinguished_name, validity

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_PRIVATE_KEY = re.compile(
    rb"-----BEGIN (?P<kind>[A-Z ]*PRIVATE KEY)-----.+?-----END (?P=kind)-----", re.DOTALL
)
_ENCRYPTED = re.compile(rb"-----BEGIN ENCRYPTED |^Proc-Type: 4,ENCRYPTED", re.MULTILINE)
_JKS_MAGIC = b"\xfe\xed\xfe\xed"
_TYPES = ("PEM", "PKCS12", "JKS")
# How long before its end a certificate is to be replaced.
RENEWAL_TIME = timedelta(days=14)


@attrs.frozen
class KeyMaterial:
    """A private key and its certificates, ready for OpenSSL.

    Attributes:
        pem: key and certificates, one behind the other; the key is encrypted if it was, or if it
            had to be written anew.
        password: of the key, None for one in the clear.
        source: where it comes from, for errors.
        subject: the distinguished name of the first certificate.
        names: its alternative names, encoded.
        valid: from when on it is valid, and until when.
    """

    pem: bytes = attrs.field(repr=False)
    password: str | None = attrs.field(repr=False)
    source: str
    subject: str
    names: frozenset[bytes] = attrs.field(repr=False)
    valid: tuple[datetime, datetime]

    @property
    def has_encrypted_key(self) -> bool:
        """Whether the key cannot be used without a password."""
        return _ENCRYPTED.search(self.pem) is not None

    def doubt(self, now: datetime) -> str:
        """Why clients will not connect, or soon no longer; empty if they will."""
        begin, end = self.valid
        if now > end:
            return f"the certificate in {self.source} expired on {_date(end)}; clients refuse it"
        if now < begin:
            return f"the certificate in {self.source} is valid only from {_date(begin)} on"
        if end - now < RENEWAL_TIME:
            return f"the certificate in {self.source} expires on {_date(end)}"
        return ""


def read_key_store(
    kind: str,
    location: str | None,
    password: str | None,
    *,
    key_password: str | None,
    key: str | None,
    certificate_chain: str | None,
) -> KeyMaterial:
    """Read a key and its certificates from a file or from the settings themselves.

    Args:
        kind: ``ssl.keystore.type``.
        location: ``ssl.keystore.location``.
        password: ``ssl.keystore.password``.
        key_password: ``ssl.key.password``.
        key: ``ssl.keystore.key``.
        certificate_chain: ``ssl.keystore.certificate.chain``.

    Raises:
        ConfigError: the store cannot be read, or the settings do not fit each other.
    """
    _check_type("ssl.keystore.type", kind)
    if key is not None or certificate_chain is not None:
        return _key_in_settings(kind, location, key, certificate_chain, key_password)
    if location is None:
        raise ConfigError(
            "a listener with TLS needs a certificate: set ssl.keystore.location and"
            " ssl.keystore.type, or ssl.keystore.key and ssl.keystore.certificate.chain"
        )
    data = _read("ssl.keystore.location", location)
    if kind == "PEM":
        if password is not None:
            raise ConfigError(
                "ssl.keystore.password is not allowed with ssl.keystore.type=PEM, whose key may"
                " have a password: ssl.key.password"
            )
        return _material(_pem_key(data, location), data, key_password, location)
    store = _open_pkcs12("ssl.keystore", kind, location, data, password)
    if key_password is not None and key_password != password:
        raise ConfigError(
            "ssl.key.password differs from ssl.keystore.password; a PKCS12 store has one password"
        )
    return _key_of_pkcs12(store, location)


def read_trust_store(
    kind: str, location: str | None, password: str | None, *, certificates: str | None
) -> str | None:
    """Read trusted certificates from a file or from the settings, as PEM; None without any.

    Args:
        kind: ``ssl.truststore.type``.
        location: ``ssl.truststore.location``.
        password: ``ssl.truststore.password``.
        certificates: ``ssl.truststore.certificates``.

    Raises:
        ConfigError: the store cannot be read, or the settings do not fit each other.
    """
    _check_type("ssl.truststore.type", kind)
    if certificates is not None:
        if kind != "PEM" or location is not None:
            raise ConfigError(
                "ssl.truststore.certificates needs ssl.truststore.type=PEM and no"
                " ssl.truststore.location"
            )
        return _certificates(certificates.encode(), "ssl.truststore.certificates").decode()
    if location is None:
        return None
    if kind == "PEM":
        if password is not None:
            raise ConfigError(
                "ssl.truststore.password is not allowed with ssl.truststore.type=PEM, which has"
                " nothing secret in it"
            )
        if os.path.isdir(location):
            return _certificates_of_folder(location)
        return _certificates(_read("ssl.truststore.location", location), location).decode()
    data = _read("ssl.truststore.location", location)
    store = _open_pkcs12("ssl.truststore", kind, location, data, password)
    found = [entry.certificate for entry in (store.cert, *store.additional_certs) if entry]
    if not found:
        raise ConfigError(f"{location} holds no certificates")
    return b"".join(entry.public_bytes(_pem_encoding()) for entry in found).decode()


def _check_type(key: str, kind: str) -> None:
    if kind not in _TYPES:
        raise ConfigError(f"{key} = {kind!r} is not allowed; allowed: {', '.join(_TYPES)}")


def _read(key: str, location: str) -> bytes:
    try:
        with open(location, "rb") as file:
            return file.read()
    except OSError as error:
        raise ConfigError(f"{key}: cannot read {location}: {error.strerror}") from error


def _key_in_settings(
    kind: str,
    location: str | None,
    key: str | None,
    certificate_chain: str | None,
    password: str | None,
) -> KeyMaterial:
    if kind != "PEM" or location is not None or key is None or certificate_chain is None:
        raise ConfigError(
            "ssl.keystore.key and ssl.keystore.certificate.chain belong together; allowed: both,"
            " with ssl.keystore.type=PEM and no ssl.keystore.location"
        )
    source = "ssl.keystore.key"
    return _material(_pem_key(key.encode(), source), certificate_chain.encode(), password, source)


def _pem_key(data: bytes, source: str) -> bytes:
    found = _PRIVATE_KEY.search(data)
    if found is None:
        raise ConfigError(f"{source} holds no private key in PEM form")
    return found[0]


def _certificates(data: bytes, source: str) -> bytes:
    found = _CERTIFICATE.findall(data)
    if not found:
        if data.startswith(_JKS_MAGIC):
            raise _javas_own(source)
        raise ConfigError(f"{source} holds no certificate in PEM form")
    return b"\n".join((*found, b""))


def _certificates_of_folder(location: str) -> str:
    """All that is in the files of a folder, each once: names by a hash are links to others."""
    found: dict[bytes, None] = {}
    for name in sorted(os.listdir(location)):
        path = os.path.join(location, name)
        if os.path.isfile(path):
            data = _read("ssl.truststore.location", path)
            found.update(dict.fromkeys(_CERTIFICATE.findall(data)))
    if not found:
        raise ConfigError(f"no file of {location} holds a certificate in PEM form")
    return b"\n".join((*found, b"")).decode()


def _material(key: bytes, chain: bytes, password: str | None, source: str) -> KeyMaterial:
    certificates = _certificates(chain, source)
    try:
        first = ssl.PEM_cert_to_DER_cert(_CERTIFICATE.findall(chain)[0].decode())
        subject, names = distinguished_name(first), alternative_names(first)
        valid = validity(first)
    except ValueError as error:
        raise ConfigError(f"the certificate in {source} cannot be read ({error})") from None
    return KeyMaterial(key + b"\n" + certificates, password, source, subject, names, valid)


def _javas_own(location: str) -> ConfigError:
    return ConfigError(
        f"{location} is in Java's own format (JKS), which is not read; convert it: keytool"
        f" -importkeystore -srckeystore {os.path.basename(location)} -destkeystore new.p12"
        " -deststoretype PKCS12; or on to PEM: openssl pkcs12 -in new.p12 -out new.pem"
    )


def _open_pkcs12(
    prefix: str, kind: str, location: str, data: bytes, password: str | None
) -> PKCS12KeyAndCertificates:
    if data.startswith(_JKS_MAGIC):
        raise _javas_own(location)
    if data.lstrip().startswith(b"-----BEGIN"):
        raise ConfigError(f"{prefix}.type = {kind}, but {location} is PEM; allowed: PEM for it")
    try:
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
    except ImportError:
        raise ConfigError(
            f"{prefix}.type = {kind} needs a package: pip install 'trionet[tls]'; PEM needs none"
        ) from None
    try:
        return load_pkcs12(data, None if password is None else password.encode())
    except ValueError:
        what = f": wrong {prefix}" if password is not None else f" without {prefix}"
        raise ConfigError(
            f"{prefix}.location: {location} cannot be opened{what}.password, or is no PKCS12"
        ) from None


def _key_of_pkcs12(store: PKCS12KeyAndCertificates, location: str) -> KeyMaterial:
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, PrivateFormat

    if store.key is None or store.cert is None:
        raise ConfigError(f"{location} holds no private key with its certificate")
    password = secrets.token_urlsafe()
    key = store.key.private_bytes(
        _pem_encoding(), PrivateFormat.PKCS8, BestAvailableEncryption(password.encode())
    )
    chain = [entry.certificate for entry in (store.cert, *store.additional_certs)]
    pem = b"".join(certificate.public_bytes(_pem_encoding()) for certificate in chain)
    return _material(key, pem, password, location)


def _date(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _pem_encoding() -> Encoding:
    from cryptography.hazmat.primitives.serialization import Encoding

    return Encoding.PEM
