"""The TLS contexts of listeners and clients, created and reloaded from the ``ssl.*`` settings.

Keys are passed to OpenSSL in an anonymous in-memory file where the system supports it (Linux),
otherwise in a temporary file that only its owner can read. A converted key is encrypted there.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from threading import Lock

import attrs

from ...errors import ConfigError
from . import _certificate as pem
from ._key_stores import KeyMaterial, StoreSettings, read_key_store, read_trust_store
from ._tls_transport import describe

_HAS_MEMFD = hasattr(os, "memfd_create")
_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
# OpenSSL's errors for a certificate of another key; the last is for a key of another type.
_MISMATCHES = ("key values mismatch", "key type mismatch", "no certificate assigned")
# By their IANA names, which Java uses.
_SUITES_1_3 = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")
_SUITES_1_2 = {
    f"TLS_{exchange}_WITH_{standard}": f"{exchange.replace('_', '-')}-{openssl}"
    for exchange in ("ECDHE_ECDSA", "ECDHE_RSA", "DHE_RSA")
    for standard, openssl in (
        ("AES_256_GCM_SHA384", "AES256-GCM-SHA384"),
        ("AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
        ("CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305"),
    )
}
_CLIENT_AUTH = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


@attrs.frozen
class TlsSettings(StoreSettings):
    """The ``ssl.*`` settings of one listener; see Kafka's keys of the same names.

    Attributes:
        client_auth: ``none``, ``requested`` or ``required``.
        allow_dn_changes: whether a reload may change the subject of the certificate.
        allow_san_changes: whether a reload may remove a subject alternative name of the
            certificate.
    """

    client_auth: str = "none"
    allow_dn_changes: bool = False
    allow_san_changes: bool = False

    @property
    def files(self) -> tuple[str, ...]:
        """The files from which a context is created."""
        return tuple(path for path in (self.keystore_location, self.truststore_location) if path)


def server_context(settings: TlsSettings) -> tuple[ssl.SSLContext, KeyMaterial]:
    """Read the stores and create a server's context.

    Returns:
        The context, and the key and certificates that it contains.

    Raises:
        ConfigError: a store cannot be read, its password does not open it, the key does not match
            the certificate, or a setting is not allowed. The message contains no password or key.
    """
    if settings.client_auth not in _CLIENT_AUTH:
        raise ConfigError(
            f"ssl.client.auth = {settings.client_auth!r} is not allowed; allowed:"
            f" {', '.join(_CLIENT_AUTH)}"
        )
    material = read_key_store(settings)
    context = new_context(ssl.PROTOCOL_TLS_SERVER, settings)
    load_key(context, material)
    purpose = ssl.Purpose.CLIENT_AUTH if settings.client_auth != "none" else None
    load_trust(context, settings, purpose)
    context.verify_mode = _CLIENT_AUTH[settings.client_auth]
    return context, material


class TlsContexts:
    """The context of a listener, replaced for new connections when its files change.

    Args:
        settings: the settings of the listener.

    Attributes:
        context: the TLS context for new connections.

    Raises:
        ConfigError: see :func:`server_context`.
    """

    def __init__(self, settings: TlsSettings) -> None:
        self.settings: TlsSettings = settings
        self._seen = [_fingerprint(path) for path in settings.files]
        self.context: ssl.SSLContext
        self.context, self._material = server_context(settings)
        self._replacing = Lock()  # a reload in a thread, and other settings from the loop

    def doubt(self, now: datetime) -> str:
        """Return why clients reject the certificate of new connections, or soon will.

        See :meth:`._key_stores.KeyMaterial.doubt`.
        """
        return self._material.doubt(now)

    def reload_if_changed(self) -> bool:
        """Reload the stores if one of their files has changed; blocks, so call it in a thread.

        Open connections keep their context. A rejected change is not retried until a file changes
        again; a store that could not be read is retried.

        Returns:
            Whether there is a new context.

        Raises:
            ConfigError: see :func:`server_context`; or the certificate's names have changed, and
                the settings do not allow it (Kafka: SslFactory). The old context stays in use.
        """
        settings = self.settings
        seen = [_fingerprint(path) for path in settings.files]
        if seen == self._seen:
            return False
        try:
            context, material = server_context(settings)
            self._check_names(material)
        except ConfigError as error:
            if not isinstance(error.__cause__, OSError):
                self._seen = seen
            raise
        with self._replacing:
            if self.settings is not settings:
                return False  # there are other settings meanwhile, and their context
            self._seen = seen
            self.context, self._material = context, material
        return True

    def prepare(self, settings: TlsSettings) -> TlsContexts:
        """Return contexts for new settings, to pass to :meth:`use`; blocks, so call it in a thread.

        Raises:
            ConfigError: see :meth:`reload_if_changed`.
        """
        new = TlsContexts(settings)
        self._check_names(new._material)
        return new

    def use(self, new: TlsContexts) -> None:
        """Switch to other settings and their contexts, for new connections."""
        with self._replacing:
            self.settings, self._seen = new.settings, new._seen
            self.context, self._material = new.context, new._material

    def _check_names(self, new: KeyMaterial) -> None:
        old, settings = self._material, self.settings
        if not settings.allow_dn_changes and old.subject != new.subject:
            raise ConfigError(
                f"the certificate's subject would change from {old.subject!r} to {new.subject!r};"
                " keep the subject, or set ssl.allow.dn.changes=true"
            )
        if not settings.allow_san_changes and not old.names <= new.names:
            raise ConfigError(
                "the new certificate lacks a subject alternative name of the old one; keep all of"
                " them, or set ssl.allow.san.changes=true"
            )


def _fingerprint(path: str) -> tuple[int, int, int] | None:
    """Return a value that changes when a file is written or replaced; None if unreadable."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):  # ValueError: not a path
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


# Shared by the contexts of clients and servers: keystores and truststores, versions and suites.


def new_context(protocol: ssl._SSLMethod, settings: StoreSettings) -> ssl.SSLContext:
    """Create a context for one side, with the versions and suites of the settings.

    Raises:
        ConfigError: a version or a suite is not supported.
    """
    context = ssl.SSLContext(protocol)
    context.options |= ssl.OP_NO_RENEGOTIATION
    # As in Java, all certificates in the truststore are trusted, even intermediates and leaves.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    _set_versions(context, settings.enabled_protocols)
    if settings.cipher_suites:
        _set_cipher_suites(context, settings.cipher_suites)
    return context


def _set_versions(context: ssl.SSLContext, names: Sequence[str]) -> None:
    """Allow these versions and those between them."""
    unknown = [name for name in names if name not in _VERSIONS]
    if unknown or not names:
        raise ConfigError(
            f"ssl.enabled.protocols = {','.join(names)!r} is not allowed; allowed:"
            f" {', '.join(_VERSIONS)}, since older versions are not safe"
        )
    versions = sorted(_VERSIONS[name] for name in names)
    context.minimum_version, context.maximum_version = versions[0], versions[-1]


def _set_cipher_suites(context: ssl.SSLContext, names: Sequence[str]) -> None:
    """Allow only these suites; a version without any of them is disabled, as in Java."""
    unknown = [name for name in names if name not in _SUITES_1_2 and name not in _SUITES_1_3]
    if unknown:
        raise ConfigError(
            f"ssl.cipher.suites: {unknown[0]!r} is not a supported cipher suite; allowed:"
            f" {', '.join((*_SUITES_1_3, *_SUITES_1_2))}"
        )
    named_1_3 = set(names) & set(_SUITES_1_3)
    if named_1_3 and len(named_1_3) < len(_SUITES_1_3):
        raise ConfigError(
            f"ssl.cipher.suites contains {len(named_1_3)} of the TLSv1.3 suites, but Python cannot"
            f" select among them; allowed: all of {', '.join(_SUITES_1_3)}, or none, which disables"
            " TLSv1.3"
        )
    old = [_SUITES_1_2[name] for name in names if name in _SUITES_1_2]
    lowest = context.minimum_version if old else ssl.TLSVersion.TLSv1_3
    highest = context.maximum_version if named_1_3 else ssl.TLSVersion.TLSv1_2
    if max(lowest, context.minimum_version) > min(highest, context.maximum_version):
        raise ConfigError(
            "ssl.cipher.suites must contain at least one suite of a version in"
            " ssl.enabled.protocols"
        )
    context.minimum_version, context.maximum_version = lowest, highest
    if old:
        context.set_ciphers(":".join(old))


def load_key(context: ssl.SSLContext, material: KeyMaterial) -> None:
    """Load the certificate and key with which to authenticate to peers."""
    try:
        with _private_file(material.pem) as path:
            # Without any password, OpenSSL would prompt for one on the terminal.
            context.load_cert_chain(path, password=material.password or "")
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(_why_unusable(material, describe(error))) from None
    except OSError as error:  # no descriptor is left, or no memory
        raise ConfigError(
            f"cannot pass the key of {material.source} to OpenSSL: {error.strerror}"
        ) from error


def _why_unusable(material: KeyMaterial, reason: str) -> str:
    source = material.source
    if reason in _MISMATCHES:
        return f"the key of {source} does not match the first certificate"
    if not pem.is_encrypted(material.pem):
        return f"the key or the certificates of {source} cannot be used ({reason})"
    if material.password is None:
        return f"the key of {source} is encrypted; set ssl.key.password"
    return f"cannot decrypt the key of {source}: wrong ssl.key.password"


def load_trust(
    context: ssl.SSLContext, settings: StoreSettings, purpose: ssl.Purpose | None
) -> None:
    """Trust the configured certificates; if there are none, the system's for ``purpose``."""
    certificates = read_trust_store(settings)
    if certificates is None:
        if purpose is not None:
            context.load_default_certs(purpose)  # as Java's own truststore
        return
    try:
        for certificate in certificates:
            # Each alone: OpenSSL keeps the GIL, and a thousand at once would stop the loop.
            context.load_verify_locations(cadata=certificate.decode("ascii", "replace"))
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(
            f"the truststore {settings.truststore_location or 'in the settings'} contains no"
            f" readable certificates ({describe(error)})"
        ) from None


@contextmanager
def _private_file(content: bytes) -> Iterator[str]:
    """Yield the path of a file with this content, which only its owner can read.

    The file is removed when the block ends.
    """
    if _HAS_MEMFD:
        with os.fdopen(os.memfd_create("trionet"), "w+b") as file:
            file.write(content)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
        return
    descriptor, path = tempfile.mkstemp(prefix="trionet")  # mode 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        yield path
    finally:
        os.unlink(path)


@attrs.frozen
class ClientTlsSettings(StoreSettings):
    """The ``ssl.*`` settings of a client; see Kafka's keys of the same names.

    A keystore is needed only for brokers that require a client certificate. Without a truststore,
    the system's certificates are trusted.

    Attributes:
        endpoint_identification_algorithm: ``https`` to check that the broker's certificate contains
            the name that the client connects to; empty for no check. Without the check, the owner
            of any certificate from a trusted authority can impersonate the broker.
    """

    endpoint_identification_algorithm: str = "https"


def client_context(settings: ClientTlsSettings) -> ssl.SSLContext:
    """Read the stores and create a client's context; blocks, so call it in a thread.

    Raises:
        ConfigError: a store cannot be read, its password does not open it, the key does not match
            the certificate, or a setting is not allowed. The message contains no password or key.
    """
    algorithm = settings.endpoint_identification_algorithm.lower()
    if algorithm not in ("https", ""):  # Java's name for the rule of RFC 2818, or none
        raise ConfigError(
            f"ssl.endpoint.identification.algorithm = {algorithm!r} is not allowed; allowed: https,"
            " or an empty string, which disables the check of the broker's name"
        )
    context = new_context(ssl.PROTOCOL_TLS_CLIENT, settings)
    context.check_hostname = bool(algorithm)
    store = (settings.keystore_location, settings.keystore_key, settings.keystore_certificate_chain)
    if store != (None, None, None):
        load_key(context, read_key_store(settings))
    load_trust(context, settings, ssl.Purpose.SERVER_AUTH)
    return context
