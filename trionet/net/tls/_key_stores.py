"""Keystores and truststores: PEM with the standard library, PKCS12 with ``cryptography``.

Java's own format, JKS, is not supported. However, keytool has created PKCS12 by default since Java
9, and Java reads such files even if their type is set to JKS; so does this module.
"""

from __future__ import annotations

import errno
import os
import secrets
import ssl
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import attrs

from ..._util._regular_file import read_regular_file
from ...errors import ConfigError
from . import _pem as pem
from ._certificate import alternative_names, distinguished_name, validity
from ._key_derivation import KEY_ROUNDS_MAX, rounds_of_key, rounds_of_pkcs12, too_many_rounds

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates

STORE_BYTES_MAX: Final = 4 * 1024 * 1024
"""The default of ``ssl.store.max.bytes``: twenty times the size of a system's truststore."""
# The limit for a directory that is a truststore.
_FILES_MAX = 10_000
# How much of an unreadable path is quoted in an error.
_PATH_CHARS_MAX = 4096

_JKS_MAGIC = b"\xfe\xed\xfe\xed"
_TYPES = ("PEM", "PKCS12", "JKS")
# How long before its expiry a certificate should be replaced.
RENEWAL_TIME = timedelta(days=14)
_DATE = "%Y-%m-%d %H:%M UTC"


@attrs.frozen
class StoreSettings:
    """The ``ssl.*`` settings that clients and servers have in common; see Kafka's documentation.

    Attributes:
        keystore_type: ``PEM``, ``PKCS12``, or ``JKS`` for a file that is in fact PKCS12.
        keystore_key: the private key as PEM text, instead of a file.
        keystore_certificate_chain: the certificates of the private key as PEM text.
        truststore_certificates: trusted certificates as PEM text, instead of a file.
        enabled_protocols: ``TLSv1.2``, ``TLSv1.3``, or both.
        cipher_suites: the allowed suites, by their standard names; empty for OpenSSL's defaults.
        store_bytes_max: the maximum size of a store, in bytes; not a Kafka setting.
    """

    keystore_type: str = "JKS"
    keystore_location: str | None = None
    keystore_password: str | None = attrs.field(default=None, repr=False)
    keystore_key: str | None = attrs.field(default=None, repr=False)
    keystore_certificate_chain: str | None = None
    key_password: str | None = attrs.field(default=None, repr=False)
    truststore_type: str = "JKS"
    truststore_location: str | None = None
    truststore_password: str | None = attrs.field(default=None, repr=False)
    truststore_certificates: str | None = None
    enabled_protocols: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    cipher_suites: tuple[str, ...] = ()
    store_bytes_max: int = STORE_BYTES_MAX


@attrs.frozen
class KeyMaterial:
    """A private key and its certificates, ready for OpenSSL.

    Attributes:
        pem: the key, followed by the certificates. The key is encrypted if it was encrypted in the
            store, or if it had to be converted.
        password: the password of the key; None if the key is not encrypted.
        source: the origin of the key, for error messages.
        subject: the distinguished name of the first certificate.
        names: the subject alternative names of the first certificate, encoded.
        valid: the start and the end of the first certificate's validity period.
    """

    pem: bytes = attrs.field(repr=False)
    password: str | None = attrs.field(repr=False)
    source: str
    subject: str
    names: frozenset[bytes] = attrs.field(repr=False)
    valid: tuple[datetime, datetime]

    def doubt(self, now: datetime) -> str:
        """Return why clients reject the certificate, or soon will; empty if they accept it."""
        begin, end = self.valid
        if now > end:
            return f"the certificate in {self.source} expired on {end:{_DATE}}; clients reject it"
        if now < begin:
            return f"the certificate in {self.source} is not valid before {begin:{_DATE}}"
        if end - now < RENEWAL_TIME:
            return f"the certificate in {self.source} expires on {end:{_DATE}}"
        return ""


def read_key_store(settings: StoreSettings) -> KeyMaterial:
    """Read a key and its certificates from a file or from the settings themselves.

    Raises:
        ConfigError: the store cannot be read, or the settings contradict each other.
    """
    kind, location = settings.keystore_type, settings.keystore_location
    password, key_password = settings.keystore_password, settings.key_password
    _check_type("ssl.keystore.type", kind)
    if settings.keystore_key is not None or settings.keystore_certificate_chain is not None:
        return _key_in_settings(settings)
    if location is None:
        raise ConfigError(
            "a listener with TLS needs a certificate: set ssl.keystore.location and"
            " ssl.keystore.type, or ssl.keystore.key and ssl.keystore.certificate.chain"
        )
    data = _read("ssl.keystore.location", location, settings.store_bytes_max)
    if kind == "PEM":
        if password is not None:
            raise ConfigError(
                "ssl.keystore.password is not allowed with ssl.keystore.type=PEM; if the key is"
                " encrypted, set ssl.key.password"
            )
        return _material(_pem_key(data, location), data, key_password, location)
    store = _open_pkcs12("ssl.keystore", kind, location, data, password)
    if key_password is not None and key_password != password:
        raise ConfigError(
            "ssl.key.password differs from ssl.keystore.password; a PKCS12 store has one password"
        )
    return _key_of_pkcs12(store, location)


def read_trust_store(settings: StoreSettings) -> list[bytes] | None:
    """Read trusted certificates from a file or from the settings, as PEM; None if not set.

    Raises:
        ConfigError: the store cannot be read, or the settings contradict each other.
    """
    kind, location = settings.truststore_type, settings.truststore_location
    password, certificates = settings.truststore_password, settings.truststore_certificates
    bytes_max = settings.store_bytes_max
    _check_type("ssl.truststore.type", kind)
    if certificates is not None:
        if kind != "PEM" or location is not None:
            raise ConfigError(
                "ssl.truststore.certificates requires ssl.truststore.type=PEM and no"
                " ssl.truststore.location"
            )
        key = "ssl.truststore.certificates"
        _check_size(key, certificates, bytes_max)
        return _certificates(certificates.encode(), key)
    if location is None:
        return None
    if kind == "PEM":
        if password is not None:
            raise ConfigError(
                "ssl.truststore.password is not allowed with ssl.truststore.type=PEM, since a PEM"
                " truststore is not encrypted"
            )
        if os.path.isdir(location):
            return _certificates_of_folder(location, bytes_max)
    data = _read("ssl.truststore.location", location, bytes_max)
    if kind == "PEM":
        return _certificates(data, location)
    store = _open_pkcs12("ssl.truststore", kind, location, data, password)
    found = _certificates_of_pkcs12(store)
    if not found:
        raise ConfigError(f"{location} contains no certificates")
    return found


def _check_type(key: str, kind: str) -> None:
    if kind not in _TYPES:
        raise ConfigError(f"{key} = {kind!r} is not allowed; allowed: {', '.join(_TYPES)}")


def _check_size(key: str, text: str | None, bytes_max: int) -> None:
    if text is not None and len(text) > bytes_max:
        raise ConfigError(
            f"{key} has {len(text)} characters; ssl.store.max.bytes allows at most {bytes_max}"
        )


def _read(key: str, location: str, bytes_max: int) -> bytes:
    try:
        return read_regular_file(location, bytes_max)
    except OSError as error:
        limit = " (ssl.store.max.bytes)" if error.errno == errno.EFBIG else ""
        raise ConfigError(
            f"{key}: cannot read {location[:_PATH_CHARS_MAX]}: {error.strerror}{limit}"
        ) from error


def _key_in_settings(settings: StoreSettings) -> KeyMaterial:
    key, chain = settings.keystore_key, settings.keystore_certificate_chain
    _check_size("ssl.keystore.key", key, settings.store_bytes_max)
    _check_size("ssl.keystore.certificate.chain", chain, settings.store_bytes_max)
    is_file = settings.keystore_type != "PEM" or settings.keystore_location is not None
    if is_file or key is None or chain is None:
        raise ConfigError(
            "ssl.keystore.key and ssl.keystore.certificate.chain must be set together, with"
            " ssl.keystore.type=PEM and without ssl.keystore.location"
        )
    source = "ssl.keystore.key"
    return _material(_pem_key(key.encode(), source), chain.encode(), settings.key_password, source)


def _pem_key(data: bytes, source: str) -> bytes:
    found = pem.private_key(data)
    if found is None:
        raise ConfigError(f"{source} contains no private key in PEM format")
    # Only PKCS8 lets a key choose how it is derived from the password.
    return _affordable(found, source) if found.startswith(b"-----BEGIN ENCRYPTED ") else found


def _affordable(key: bytes, source: str) -> bytes:
    """Check the number of iterations of an encrypted key, and return the key re-encoded.

    Re-encoding ensures that OpenSSL gets exactly the data that was checked.
    """
    try:
        data = pem.content(key)
        rounds = rounds_of_key(data)
    except ValueError:
        raise ConfigError(
            f"the encrypted key of {source} cannot be read; expected PKCS8 without headers"
        ) from None
    if rounds > KEY_ROUNDS_MAX:
        raise too_many_rounds(f"the key of {source}")
    return pem.encrypted_pkcs8(data)


def _certificates(data: bytes, source: str) -> list[bytes]:
    found = pem.certificates(data)
    if not found:
        if data.startswith(_JKS_MAGIC):
            raise _javas_own(source)
        raise ConfigError(f"{source} contains no certificate in PEM format")
    return found


def _certificates_of_folder(location: str, bytes_max: int) -> list[bytes]:
    """Return the certificates in a directory's files, without duplicates due to hashed names.

    ``bytes_max`` is the limit for all files together.
    """
    key, found = "ssl.truststore.location", dict[bytes, None]()
    for path in _files_of(key, location):
        data = _read(key, path, bytes_max)
        bytes_max -= len(data)
        found.update(dict.fromkeys(pem.certificates(data)))
    if not found:
        raise ConfigError(f"no file in {location} contains a certificate in PEM format")
    return list(found)


def _files_of(key: str, location: str) -> list[str]:
    """Return the paths of the regular files in a directory, one path per file."""
    files: dict[tuple[int, int], str] = {}
    try:
        with os.scandir(location) as entries:
            for number, entry in enumerate(entries):
                if number >= _FILES_MAX:
                    raise ConfigError(
                        f"{key}: {location} has too many files; at most {_FILES_MAX} are allowed"
                    )
                if entry.is_file():
                    status = entry.stat()
                    files.setdefault((status.st_dev, status.st_ino), entry.path)
    except OSError as error:
        raise ConfigError(f"{key}: cannot read {location}: {error.strerror}") from error
    return sorted(files.values())


def _material(key: bytes, chain: bytes, password: str | None, source: str) -> KeyMaterial:
    certificates = _certificates(chain, source)
    text = b"\n".join((key, *certificates, b""))
    try:
        first = ssl.PEM_cert_to_DER_cert(certificates[0].decode())
        about = distinguished_name(first), alternative_names(first), validity(first)
    except ValueError as error:
        raise ConfigError(f"the certificate in {source} cannot be read ({error})") from None
    return KeyMaterial(text, password, source, *about)


def _javas_own(location: str) -> ConfigError:
    return ConfigError(
        f"{location} is in Java's own format (JKS), which is not supported; convert it: keytool"
        f" -importkeystore -srckeystore {os.path.basename(location)} -destkeystore new.p12"
        " -deststoretype PKCS12; then, for PEM: openssl pkcs12 -in new.p12 -out new.pem"
    )


def _open_pkcs12(
    prefix: str, kind: str, location: str, data: bytes, password: str | None
) -> PKCS12KeyAndCertificates:
    if data.startswith(_JKS_MAGIC):
        raise _javas_own(location)
    if data.lstrip().startswith(b"-----BEGIN"):
        raise ConfigError(f"{prefix}.type = {kind}, but {location} is PEM; set {prefix}.type=PEM")
    try:
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
    except ImportError:
        raise ConfigError(
            f"{prefix}.type = {kind} requires a package: pip install 'trionet[tls]'; PEM does not"
        ) from None
    try:
        rounds = rounds_of_pkcs12(data)
        if rounds <= KEY_ROUNDS_MAX:
            return load_pkcs12(data, None if password is None else password.encode())
    except ValueError:
        why = f"wrong {prefix}.password" if password is not None else f"no {prefix}.password is set"
        raise ConfigError(
            f"{prefix}.location: cannot open {location}: {why}, or it is not PKCS12"
        ) from None
    raise too_many_rounds(f"{prefix}.location: {location}")


def _key_of_pkcs12(store: PKCS12KeyAndCertificates, location: str) -> KeyMaterial:
    from cryptography.hazmat.primitives import serialization

    if store.key is None or store.cert is None:
        raise ConfigError(f"{location} contains no private key with a certificate")
    password = secrets.token_urlsafe()
    key = store.key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(password.encode()),
    )
    return _material(key, b"".join(_certificates_of_pkcs12(store)), password, location)


def _certificates_of_pkcs12(store: PKCS12KeyAndCertificates) -> list[bytes]:
    """Return the certificates as PEM, starting with the certificate of the key."""
    from cryptography.hazmat.primitives.serialization import Encoding

    entries = (store.cert, *store.additional_certs)
    return [entry.certificate.public_bytes(Encoding.PEM) for entry in entries if entry]
