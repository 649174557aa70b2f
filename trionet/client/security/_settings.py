"""TLS and SASL settings for a client's connections."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import attrs

from ...errors import ConfigError
from ...net.sasl import MECHANISMS
from ...net.sasl import _oauthbearer as oauthbearer
from ...net.sasl import _scram as scram
from ...net.tls._tls_context import ClientTlsSettings
from ...net.wire._endpoint import SecurityProtocol
from .._backoff import ExponentialBackoff


@attrs.frozen
class BearerToken:
    """An OAUTHBEARER token (RFC 6750).

    Attributes:
        value: the token.
        expires_ms: when the token expires, in ms since the epoch; None to use the token's ``exp``
            claim. A token without an expiry time is never refreshed.
        extensions: SASL extensions sent with the token (KIP-342).
    """

    value: str = attrs.field(repr=False)
    expires_ms: int | None = None
    extensions: Mapping[str, str] = attrs.field(factory=dict)


TokenProvider = Callable[[], "BearerToken | str | Awaitable[BearerToken | str]"]
"""Returns a new token. A synchronous function is called in a thread, so it may block."""


LOGIN_SECONDS: Final = 10.0
"""The default connect and read timeouts of a token server; Kafka uses the operating system's."""


@attrs.frozen(kw_only=True)
class TokenEndpoint:
    """A token endpoint: an OAuth server or a file.

    Attributes:
        url: the URL of the server (``http`` or ``https``) or file
            (``sasl.oauthbearer.token.endpoint.url``).
        client_id: the client id (``sasl.oauthbearer.client.credentials.client.id``).
        client_secret: the client secret (``sasl.oauthbearer.client.credentials.client.secret``).
        scope: the requested scope (``sasl.oauthbearer.scope``).
        has_encoded_header: whether the id and secret are URL-encoded
            (``sasl.oauthbearer.header.urlencode``).
        extensions: SASL extensions sent with each token (``extension_NAME`` in
            ``sasl.jaas.config``).
        connect_timeout_seconds: the connect timeout (``sasl.login.connect.timeout.ms``).
        read_timeout_seconds: the timeout for the request and its response
            (``sasl.login.read.timeout.ms``).
        retry: the backoff between attempts; its maximum also limits the total time of all attempts
            (``sasl.login.retry.backoff.ms``, ``sasl.login.retry.backoff.max.ms``).
    """

    url: str
    client_id: str = ""
    client_secret: str = attrs.field(default="", repr=False)
    scope: str = ""
    has_encoded_header: bool = False
    extensions: Mapping[str, str] = attrs.field(factory=dict)
    connect_timeout_seconds: float = LOGIN_SECONDS
    read_timeout_seconds: float = LOGIN_SECONDS
    retry: ExponentialBackoff = attrs.field(default=ExponentialBackoff(0.1, 10.0))


@attrs.frozen(kw_only=True)
class IamLogin:
    """Where the AWS credentials for Amazon MSK come from, as options of ``sasl.jaas.config``.

    Without any, they come from where AWS's libraries look for them: the environment, the default
    profile, or the role of the machine.

    Attributes:
        profile_name: a profile of AWS's configuration (``awsProfileName``).
        role_arn: a role to assume (``awsRoleArn``).
        role_session_name: the name of the role's session (``awsRoleSessionName``).
        role_external_id: the external id that the role requires (``awsRoleExternalId``).
        access_key_id: the key that may assume the role (``awsRoleAccessKeyId``).
        secret_access_key: its secret (``awsRoleSecretAccessKey``).
        session_token: its session token (``awsRoleSessionToken``).
        sts_region: the region of the service that grants the role (``awsStsRegion``).
    """

    profile_name: str = ""
    role_arn: str = ""
    role_session_name: str = "aws-msk-iam-auth"
    role_external_id: str = ""
    access_key_id: str = ""
    secret_access_key: str = attrs.field(default="", repr=False)
    session_token: str = attrs.field(default="", repr=False)
    sts_region: str = ""


@attrs.frozen(kw_only=True)
class RefreshSettings:
    """The schedule of token refreshes (KIP-255, KIP-368).

    Attributes:
        window_factor: the share of the token's lifetime after which the token is refreshed, 0.5 to
            1.0 (``sasl.login.refresh.window.factor``).
        window_jitter: the maximum random addition to that share, 0 to 0.25
            (``sasl.login.refresh.window.jitter``).
        min_period_seconds: the minimum time between refreshes
            (``sasl.login.refresh.min.period.seconds``).
        buffer_seconds: the minimum time from the refresh to the token's expiry
            (``sasl.login.refresh.buffer.seconds``). If the token's lifetime is shorter than the sum
            of the two minimums, both are ignored.
    """

    window_factor: float = 0.8
    window_jitter: float = 0.05
    min_period_seconds: float = 60.0
    buffer_seconds: float = 300.0


@attrs.frozen(kw_only=True)
class SaslClientSettings:
    """A client's SASL credentials.

    Attributes:
        mechanism: one of :data:`trionet.net.sasl.MECHANISMS` (``sasl.mechanism``).
        user_name: the user name for PLAIN and SCRAM (``username`` in ``sasl.jaas.config``).
        password: the password for PLAIN and SCRAM (``password`` in ``sasl.jaas.config``).
        is_delegation_token: for SCRAM, whether the name and password are the id and HMAC of a
            delegation token (``tokenauth="true"``, KIP-48).
        token_provider: returns the tokens for OAUTHBEARER (``sasl.login.callback.handler.class``).
        token_endpoint: the server or file that provides the tokens in place of ``token_provider``.
        iam: the AWS credentials with which the tokens are signed, for Amazon MSK, in place of both.
        refresh: when to refresh the tokens.
    """

    mechanism: str
    user_name: str = ""
    password: str = attrs.field(default="", repr=False)
    is_delegation_token: bool = False
    token_provider: TokenProvider | None = attrs.field(default=None, repr=False)
    token_endpoint: TokenEndpoint | None = None
    iam: IamLogin | None = None
    refresh: RefreshSettings = attrs.field(factory=RefreshSettings)

    def __attrs_post_init__(self) -> None:
        if self.mechanism not in MECHANISMS:
            raise ConfigError(
                f"unsupported sasl.mechanism = {self.mechanism!r}; allowed: {', '.join(MECHANISMS)}"
            )
        if self.mechanism == oauthbearer.NAME:
            sources = (self.token_provider, self.token_endpoint, self.iam)
            if sum(each is not None for each in sources) != 1:
                raise ConfigError(
                    "sasl.mechanism = 'OAUTHBEARER' requires either a function that returns tokens"
                    " (token_provider) or sasl.oauthbearer.token.endpoint.url"
                )
        elif not self.user_name or not self.password:
            raise ConfigError(
                f"sasl.mechanism = {self.mechanism!r} requires a user name and a password"
            )
        if self.is_delegation_token and self.mechanism not in scram.HASHES:
            raise ConfigError(
                f"a delegation token cannot be used with sasl.mechanism = {self.mechanism!r};"
                " allowed:"
                f" {', '.join(scram.HASHES)}"
            )


@attrs.frozen(kw_only=True)
class SecuritySettings:
    """TLS and SASL settings for all connections of a client.

    Attributes:
        protocol: ``security.protocol``.
        tls: the ``ssl.*`` settings, used with ``SSL`` and ``SASL_SSL``.
        sasl: the credentials, required with ``SASL_PLAINTEXT`` and ``SASL_SSL``.
    """

    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    tls: ClientTlsSettings = attrs.field(factory=ClientTlsSettings)
    sasl: SaslClientSettings | None = None

    def __attrs_post_init__(self) -> None:
        if self.has_sasl and self.sasl is None:
            raise ConfigError(
                f"security.protocol = {self.protocol.value} requires sasl.mechanism and its"
                " credentials"
            )

    @property
    def has_tls(self) -> bool:
        """Whether the protocol uses TLS: SSL or SASL_SSL."""
        return self.protocol.has_tls

    @property
    def has_sasl(self) -> bool:
        """Whether the protocol uses SASL: SASL_PLAINTEXT or SASL_SSL."""
        return self.protocol.has_sasl
