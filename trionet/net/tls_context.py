"""From a listener's ``ssl.*`` settings to the context of its connections, and its reload."""

from __future__ import annotations

import os
import ssl
from collections.abc import Sequence
from datetime import datetime
from threading import Lock

import attrs

from ..errors import ConfigError
from .key_stores import KeyMaterial, StoreSettings, read_key_store
from .tls_stores import load_key, load_trust, new_context

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
        allow_san_changes: whether it may take away one of its other names.
    """

    client_auth: str = "none"
    allow_dn_changes: bool = False
    allow_san_changes: bool = False

    @property
    def files(self) -> tuple[str, ...]:
        """The files that a context is made from."""
        return tuple(path for path in (self.keystore_location, self.truststore_location) if path)


def server_context(settings: TlsSettings) -> tuple[ssl.SSLContext, KeyMaterial]:
    """Read the stores and make a server's context.

    Returns:
        The context, and the key and certificates that are in it.

    Raises:
        ConfigError: a store cannot be read or opened with its password, key and certificate do not
            belong together, or a setting is not allowed; never quotes a password or a key.
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
    """The context of a listener: replaced when its files change, for connections made after that.

    Args:
        settings: the listener's.

    Attributes:
        context: the one for new connections.

    Raises:
        ConfigError: as :func:`server_context`.
    """

    def __init__(self, settings: TlsSettings) -> None:
        self.settings = settings
        self._seen = _fingerprint(settings.files)
        self.context, self._material = server_context(settings)
        self._replacing = Lock()  # a reload in a thread, and other settings from the loop

    def doubt(self, now: datetime) -> str:
        """As :meth:`.key_stores.KeyMaterial.doubt`, of the certificate for new connections."""
        return self._material.doubt(now)

    def reload_if_changed(self) -> bool:
        """Read the stores again if a file of theirs has changed; blocks, so call it in a thread.

        Open connections keep what they began with. A change that was refused is not tried again
        until a file changes again; one that the system could not read is.

        Returns:
            Whether there is a new context.

        Raises:
            ConfigError: as :func:`server_context`, or the certificate's names have changed although
                the settings do not allow it (Kafka: SslFactory); the old context stays.
        """
        settings = self.settings
        seen = _fingerprint(settings.files)
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
        """What to :meth:`use` for other settings; blocks, so call it in a thread.

        Raises:
            ConfigError: as :meth:`reload_if_changed`.
        """
        new = TlsContexts(settings)
        self._check_names(new._material)
        return new

    def use(self, new: TlsContexts) -> None:
        """Take over other settings and their context, for connections made after that."""
        with self._replacing:
            self.settings, self._seen = new.settings, new._seen
            self.context, self._material = new.context, new._material

    def _check_names(self, new: KeyMaterial) -> None:
        old, settings = self._material, self.settings
        if not settings.allow_dn_changes and old.subject != new.subject:
            raise ConfigError(
                f"the new certificate's subject is {new.subject!r}, the old one's {old.subject!r};"
                " allowed: the same, or ssl.allow.dn.changes=true"
            )
        if not settings.allow_san_changes and not old.names <= new.names:
            raise ConfigError(
                "the new certificate lacks a subject alternative name of the old one; allowed: all"
                " of them, or ssl.allow.san.changes=true"
            )


def _fingerprint(paths: Sequence[str]) -> tuple[tuple[int, int, int] | None, ...]:
    """What changes when a file is written or replaced; None for one that cannot be looked at."""
    found: list[tuple[int, int, int] | None] = []
    for path in paths:
        try:
            status = os.stat(path)
        except (OSError, ValueError):  # or it is no path
            found.append(None)
        else:
            found.append((status.st_mtime_ns, status.st_size, status.st_ino))
    return tuple(found)
