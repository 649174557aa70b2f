"""Keystores and truststores: PEM with the standard library, PKCS12 with ``cryptography``.

Java's own format, JKS, is not supported. However, keytool has created PKCS12 by default since Java
9, and Java reads such files even if their type is set to JKS; so does this module.

``cryptography`` derives keys while it holds the GIL, and OpenSSL cannot be interrupted: a store of
one kilobyte that requires two billion iterations would block the process for many minutes. So the
iterations, called rounds in the names here, are counted before any key is derived. Encrypted parts
are not inspected: such a part of a PKCS12 store can contain a key that is encrypted again, whose
iterations are not counted.

Stores are read in threads that can be abandoned: a path may lead to a disk that does not respond,
and decrypting a key may take seconds. Neither may prevent a broker from being reconfigured or
stopped, or use up the threads that other tasks need.
"""

from __future__ import annotations

import errno
import os
import secrets
import ssl
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar, TypeVarTuple

import attrs
import trio

from ..._util._off_loop import limiter_of_run
from ..._util.files._regular_file import read_regular_file
from ...errors import ConfigError
from . import _certificate as pem
from ._certificate import Element, alternative_names, distinguished_name, elements, first, validity

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates


#: The limit for all keys of a store together. Java has the same limit per key; keytool uses 10,000.
KEY_ROUNDS_MAX: Final = 5_000_000

_RSADSI = bytes.fromhex("2a864886f70d")  # 1.2.840.113549
_PKCS5 = _RSADSI + b"\x01\x05"
_PBKDF2 = _PKCS5 + b"\x0c"
_PBES2 = _PKCS5 + b"\x0d"
_PBMAC1 = _PKCS5 + b"\x0e"
_PBES1 = tuple(_PKCS5 + bytes([number]) for number in (1, 3, 4, 6, 10, 11))
_SCRYPT = bytes.fromhex("2b06010401da47040b")  # 1.3.6.1.4.1.11591.4.11
_PKCS12_PBE = _RSADSI + b"\x01\x0c\x01"
_DATA = _RSADSI + b"\x01\x07\x01"
_ENCRYPTED_DATA = _RSADSI + b"\x01\x07\x06"
_SHROUDED_KEY_BAG = _RSADSI + b"\x01\x0c\x0a\x01\x02"
_SAFE_CONTENTS_BAG = _RSADSI + b"\x01\x0c\x0a\x01\x06"

_CONSTRUCTED = 0x20
_OCTET_STRING = 0x04
# For nested bags and nested strings; OpenSSL reads five levels of the latter.
_DEPTH_MAX = 8


def too_many_rounds(source: str) -> ConfigError:
    """Return the error for a store above the limit, without the count, which may be very long."""
    return ConfigError(
        f"{source} requires too many iterations of key derivation; at most"
        f" {KEY_ROUNDS_MAX} in total are allowed; encrypt it again with fewer"
    )


def rounds_of_key(data: bytes) -> int:
    """Return the number of iterations for an encrypted PKCS8 key (RFC 5958, 3).

    Raises:
        ValueError: the data is malformed, or not an encrypted key.
    """
    (algorithm,) = _fields(first(data).content, 1)
    return _rounds_of(algorithm.content)


def rounds_of_pkcs12(data: bytes) -> int:
    """Return the number of iterations for a PKCS12 store, including its MAC (RFC 7292, 4).

    Raises:
        ValueError: the data is malformed, or not a PKCS12 store.
    """
    _, safes, *mac = _fields(first(data).content, 3)
    _, wrapped = _fields(safes.content, 2)
    contents = elements(first(_joined(first(wrapped.content))).content)
    return sum(_rounds_of_content(each.content) for each in contents) + (
        _rounds_of_mac(mac[0].content) if mac else 0
    )


def _rounds_of_content(content: bytes) -> int:
    kind, *wrapped = _fields(content, 2)
    if kind.content == _DATA and wrapped:
        return _rounds_of_bags(first(_joined(first(wrapped[0].content))).content)
    if kind.content == _ENCRYPTED_DATA and wrapped:
        _, encrypted = _fields(first(wrapped[0].content).content, 2)
        _, algorithm = _fields(encrypted.content, 2)
        return _rounds_of(algorithm.content)
    return 0


def _rounds_of_bags(bags: bytes, depth: int = 0) -> int:
    if depth > _DEPTH_MAX:
        raise ValueError("bags are nested too deeply")
    rounds = 0
    for bag in elements(bags):
        kind, value = _fields(bag.content, 2)
        if kind.content == _SHROUDED_KEY_BAG:
            rounds += rounds_of_key(value.content)
        elif kind.content == _SAFE_CONTENTS_BAG:
            rounds += _rounds_of_bags(first(value.content).content, depth + 1)
    return rounds


def _rounds_of_mac(content: bytes) -> int:
    digest, _, *iterations = _fields(content, 3)
    (algorithm,) = _fields(digest.content, 1)
    (kind,) = _fields(algorithm.content, 1)
    if kind.content == _PBMAC1:
        return _rounds_of(algorithm.content)
    return _number(iterations[0]) if iterations else 1


def _rounds_of(algorithm: bytes) -> int:
    """Return the iteration count of the key derivation for encryption or a MAC (RFC 8018)."""
    kind, parameters = _fields(algorithm, 2)
    if kind.content in (_PBES2, _PBMAC1):
        (derivation,) = _fields(parameters.content, 1)
        kind, parameters = _fields(derivation.content, 2)
    if kind.content == _SCRYPT:
        # Each step takes about as long as an iteration of PBKDF2.
        _, cost, block_size, parallelization = _fields(parameters.content, 4)
        return _number(cost) * _number(block_size) * _number(parallelization)
    if kind.content in (_PBKDF2, *_PBES1) or kind.content.startswith(_PKCS12_PBE):
        _, iterations = _fields(parameters.content, 2)
        return _number(iterations)
    raise ValueError("unknown key derivation")


def _number(element: Element) -> int:
    """Return the absolute value of a count, so that a negative one cannot offset another."""
    return abs(int.from_bytes(element.content, "big", signed=True))


def _joined(element: Element, depth: int = 0) -> bytes:
    """Return the content of an OCTET STRING, joining its segments if it is constructed."""
    if element.tag == _OCTET_STRING:
        return element.content
    if element.tag != _OCTET_STRING | _CONSTRUCTED or depth > _DEPTH_MAX:
        raise ValueError("not an OCTET STRING")
    return b"".join(_joined(piece, depth + 1) for piece in elements(element.content))


def _fields(data: bytes, count: int) -> list[Element]:
    """Return at most ``count`` elements, since untrusted data can contain a million of them."""
    return list(islice(elements(data), count))


#: The maximum time for reading the stores that a client named.
STORE_SECONDS_MAX: Final = 10.0
#: The maximum number of threads that read stores, including abandoned ones.
STORE_THREADS_MAX: Final = 4

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_limiter: Final[trio.lowlevel.RunVar[trio.CapacityLimiter]] = trio.lowlevel.RunVar("store_threads")


async def in_store_thread(function: Callable[[*Ts], T], *args: *Ts) -> T:
    """Call ``function(*args)`` in a thread that can be abandoned.

    Args:
        function: reads stores; must not have side effects, because the thread may be abandoned.
        args: the arguments of ``function``.

    Raises:
        BaseException: any exception that ``function`` raises.

    Cancellation: takes effect immediately; the thread is abandoned.
    """
    limiter = limiter_of_run(_limiter, STORE_THREADS_MAX)
    return await trio.to_thread.run_sync(function, *args, abandon_on_cancel=True, limiter=limiter)


async def in_bounded_time(function: Callable[[*Ts], T], *args: *Ts) -> T:
    """Call ``function(*args)`` in a thread within a time limit, for stores that a client named.

    Raises:
        ConfigError: the call takes longer than :data:`STORE_SECONDS_MAX`.
        BaseException: any exception that ``function`` raises.

    Cancellation: takes effect immediately; the thread is abandoned.
    """
    with trio.move_on_after(STORE_SECONDS_MAX):
        return await in_store_thread(function, *args)
    raise ConfigError(
        f"the keystores and truststores could not be read within {STORE_SECONDS_MAX:.0f} s; make"
        " sure that the disk responds, and that decrypting the keys takes less time"
    )


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
    found = _whole_certificates(data, source)
    if not found:
        if data.startswith(_JKS_MAGIC):
            raise _javas_own(source)
        raise ConfigError(f"{source} contains no certificate in PEM format")
    return found


def _whole_certificates(data: bytes, source: str) -> list[bytes]:
    """Return the certificates in the data, if any; one that was cut off is an error."""
    if pem.is_cut_off(data):
        raise ConfigError(
            f"{source} contains the beginning of a certificate in PEM format without its end; it"
            " was cut off, or is still being written"
        )
    return pem.certificates(data)


def _certificates_of_folder(location: str, bytes_max: int) -> list[bytes]:
    """Return the certificates in a directory's files, without duplicates due to hashed names.

    ``bytes_max`` is the limit for all files together.
    """
    key, found = "ssl.truststore.location", dict[bytes, None]()
    for path in _files_of(key, location):
        data = _read(key, path, bytes_max)
        bytes_max -= len(data)
        found.update(dict.fromkeys(_whole_certificates(data, path)))
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
