"""Creates the TLS context of a client from its ``ssl.*`` settings."""

from __future__ import annotations

import ssl

import attrs

from ...errors import ConfigError
from ._key_stores import StoreSettings, read_key_store
from ._tls_context import load_key, load_trust, new_context

# "https" is the rule of RFC 2818, by the name that Java has for it.
_IDENTIFICATIONS = ("https", "")


@attrs.frozen
class ClientTlsSettings(StoreSettings):
    """The ``ssl.*`` settings of a client; see Kafka's keys of the same names.

    A key store is only needed for brokers that require a client certificate. Without a trust store,
    the system's certificates are trusted.

    Attributes:
        endpoint_identification_algorithm: ``https`` to compare the name connected to with those in
            the broker's certificate, or empty for no comparison: then the owner of any certificate
            of the authority can impersonate the broker.
    """

    endpoint_identification_algorithm: str = "https"


def client_context(settings: ClientTlsSettings) -> ssl.SSLContext:
    """Read the stores and make a client's context; blocks, so call it in a thread.

    Raises:
        ConfigError: a store cannot be read or opened with its password, key and certificate do not
            belong together, or a setting is not allowed; never quotes a password or a key.
    """
    algorithm = settings.endpoint_identification_algorithm.lower()
    if algorithm not in _IDENTIFICATIONS:
        raise ConfigError(
            f"ssl.endpoint.identification.algorithm = {algorithm!r} is not allowed; allowed: https,"
            " or an empty text for no check of the broker's name"
        )
    context = new_context(ssl.PROTOCOL_TLS_CLIENT, settings)
    context.check_hostname = bool(algorithm)
    store = (settings.keystore_location, settings.keystore_key, settings.keystore_certificate_chain)
    if any(each is not None for each in store):
        load_key(context, read_key_store(settings))
    load_trust(context, settings, ssl.Purpose.SERVER_AUTH)
    return context
