"""Who gives the tokens of OAUTHBEARER: an OAuth server, or a file (KIP-768)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from .._backoff import ExponentialBackoff

LOGIN_SECONDS: Final = 10.0
"""How long a server of tokens may take, if that is not set; Kafka leaves it to the system."""


@attrs.frozen(kw_only=True)
class TokenEndpoint:
    """Who gives tokens.

    Attributes:
        url: of the server, ``http`` or ``https``; or of a file
            (``sasl.oauthbearer.token.endpoint.url``).
        client_id: who we are to the server (``sasl.oauthbearer.client.credentials.client.id``).
        client_secret: the same (``sasl.oauthbearer.client.credentials.client.secret``).
        scope: what the token is to be good for (``sasl.oauthbearer.scope``).
        has_encoded_header: id and secret are URL-encoded (``sasl.oauthbearer.header.urlencode``).
        extensions: SASL extensions that go with each token (``extension_NAME`` of
            ``sasl.jaas.config``).
        connect_seconds: how long connecting may take (``sasl.login.connect.timeout.ms``).
        read_seconds: how long the answer may take (``sasl.login.read.timeout.ms``).
        retry: the wait before the next attempt; when its longest has passed since the first, there
            is none any more (``sasl.login.retry.backoff.ms``, ``sasl.login.retry.backoff.max.ms``).
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
