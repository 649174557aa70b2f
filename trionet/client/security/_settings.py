"""What protects a client's connections, and who it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import attrs

from ...errors import ConfigError
from ...net.sasl import _oauthbearer as oauthbearer
from ...net.sasl import _plain as plain
from ...net.sasl import _scram as scram
from ...net.tls._tls_client_context import ClientTlsSettings
from ...net.wire._endpoint import SecurityProtocol
from ._token_settings import TokenEndpoint

MECHANISMS = (plain.NAME, *scram.HASHES, oauthbearer.NAME)
"""The SASL mechanisms that a client can use."""


@attrs.frozen
class BearerToken:
    """What OAUTHBEARER proves who we are by (RFC 6750).

    Attributes:
        value: the token itself.
        expires_ms: until when it is good, in ms since the epoch; None where its own claim ``exp``
            tells, or nobody knows.
        extensions: SASL extensions that go with it (KIP-342).
    """

    value: str = attrs.field(repr=False)
    expires_ms: int | None = None
    extensions: Mapping[str, str] = attrs.field(factory=dict)


TokenProvider = Callable[[], "BearerToken | str | Awaitable[BearerToken | str]"]
"""Gives a new token; a plain function may wait, and is called in a thread for that."""


@attrs.frozen(kw_only=True)
class RefreshSettings:
    """When a token is replaced (KIP-255, KIP-368).

    Attributes:
        window_factor: after what part of its life, 0.5 to 1.0
            (``sasl.login.refresh.window.factor``).
        window_jitter: of what part of its life that is blurred, 0 to 0.25
            (``sasl.login.refresh.window.jitter``).
        min_period_seconds: how long the next refresh waits at least
            (``sasl.login.refresh.min.period.seconds``).
        buffer_seconds: how long before its end it is replaced at the latest
            (``sasl.login.refresh.buffer.seconds``). Both give way where the token lives for less
            than the two together.
    """

    window_factor: float = 0.8
    window_jitter: float = 0.05
    min_period_seconds: float = 60.0
    buffer_seconds: float = 300.0


@attrs.frozen(kw_only=True)
class SaslClientSettings:
    """How a client says who it is by SASL.

    Attributes:
        mechanism: one of :data:`MECHANISMS` (``sasl.mechanism``).
        user_name: of PLAIN and SCRAM (``username`` in ``sasl.jaas.config``).
        password: the same (``password``).
        is_delegation_token: the name and password are a delegation token's id and HMAC, for SCRAM
            (``tokenauth="true"``, KIP-48).
        token_provider: gives the tokens of OAUTHBEARER (``sasl.login.callback.handler.class``).
        token_endpoint: gives them in its place.
        refresh: when it is asked for the next.
    """

    mechanism: str
    user_name: str = ""
    password: str = attrs.field(default="", repr=False)
    is_delegation_token: bool = False
    token_provider: TokenProvider | None = attrs.field(default=None, repr=False)
    token_endpoint: TokenEndpoint | None = None
    refresh: RefreshSettings = attrs.field(factory=RefreshSettings)

    def __attrs_post_init__(self) -> None:
        if self.mechanism not in MECHANISMS:
            raise ConfigError(
                f"sasl.mechanism = {self.mechanism!r} is not supported; allowed:"
                f" {', '.join(MECHANISMS)}"
            )
        if self.mechanism == oauthbearer.NAME:
            if (self.token_provider is None) == (self.token_endpoint is None):
                raise ConfigError(
                    "sasl.mechanism = 'OAUTHBEARER' needs a function that gives tokens"
                    " (token_provider) or sasl.oauthbearer.token.endpoint.url, and not both"
                )
        elif not self.user_name or not self.password:
            raise ConfigError(
                f"sasl.mechanism = {self.mechanism!r} needs a user name and a password"
            )
        if self.is_delegation_token and self.mechanism not in scram.HASHES:
            raise ConfigError(
                f"a delegation token is not for sasl.mechanism = {self.mechanism!r}; allowed:"
                f" {', '.join(scram.HASHES)}"
            )


@attrs.frozen(kw_only=True)
class SecuritySettings:
    """How all connections of a client are protected.

    Attributes:
        protocol: ``security.protocol``.
        tls: the ``ssl.*`` settings, of meaning with ``SSL`` and ``SASL_SSL``.
        sasl: who we are, needed for ``SASL_PLAINTEXT`` and ``SASL_SSL``.
    """

    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    tls: ClientTlsSettings = attrs.field(factory=ClientTlsSettings)
    sasl: SaslClientSettings | None = None

    def __attrs_post_init__(self) -> None:
        if self.has_sasl and self.sasl is None:
            raise ConfigError(
                f"security.protocol = {self.protocol.value} needs sasl.mechanism and what it proves"
                " who we are by"
            )

    @property
    def has_tls(self) -> bool:
        return self.protocol.has_tls

    @property
    def has_sasl(self) -> bool:
        return self.protocol.has_sasl
