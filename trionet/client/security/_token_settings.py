"""Settings of the token endpoint for OAUTHBEARER, an OAuth server or a file (KIP-768)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from .._backoff import ExponentialBackoff

LOGIN_SECONDS: Final = 10.0
"""The default timeout of a token server; Kafka leaves it to the operating system."""


@attrs.frozen(kw_only=True)
class TokenEndpoint:
    """A token endpoint.

    Attributes:
        url: the URL of the server (``http`` or ``https``) or file
            (``sasl.oauthbearer.token.endpoint.url``).
        client_id: the client id (``sasl.oauthbearer.client.credentials.client.id``).
        client_secret: the secret (``sasl.oauthbearer.client.credentials.client.secret``).
        scope: the requested scope (``sasl.oauthbearer.scope``).
        has_encoded_header: whether id and secret are URL-encoded
            (``sasl.oauthbearer.header.urlencode``).
        extensions: SASL extensions sent with each token (``extension_NAME`` in
            ``sasl.jaas.config``).
        connect_seconds: how long connecting may take (``sasl.login.connect.timeout.ms``).
        read_seconds: how long the response may take (``sasl.login.read.timeout.ms``).
        retry: the backoff between attempts; its maximum also limits the time of all attempts
            (``sasl.login.retry.backoff.ms``, ``sasl.login.retry.backoff.max.ms``).
    """

    url: str
    client_id: str = ""
    client_secret: str = attrs.field(default="", repr=False)
    scope: str = ""
    has_encoded_header: bool = False
    extensions: Mapping[str, str] = attrs.field(factory=dict)
    connect_seconds: float = LOGIN_SECONDS
    read_seconds: float = LOGIN_SECONDS
    retry: ExponentialBackoff = attrs.field(default=ExponentialBackoff(0.1, 10.0))
