"""Delegation tokens, with which a client acts for a user for a limited time (KIP-48)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs

from ....protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from ....protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from ....protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from ....protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from ..._argument_checks import names
from ..calls._calls import AdminCalls
from ..calls._conversions import check

DEFAULT_PERIOD: Final = -1
"""Use the broker's configured period; when expiring a token, expire it immediately."""

_WITH_OWNER_VERSION: Final = 3  # KIP-373


@attrs.frozen
class DelegationToken:
    """The id, secret and validity of a delegation token.

    Attributes:
        id: the token id, used as the SCRAM user name.
        hmac: the secret, whose base64 form is used as the SCRAM password.
        owner: the principal that the token authenticates, such as ``User:alice``.
        requester: the principal that requested the token; empty if not reported.
        renewers: the principals, other than the owner, that may renew the token.
        issued_ms: when the token was issued, in ms since the epoch.
        expires_ms: when the token expires unless it is renewed, in ms since the epoch.
        ends_ms: when the token can no longer be renewed, in ms since the epoch.
    """

    id: str
    hmac: bytes = attrs.field(repr=False)
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    ends_ms: int


class DelegationTokenCalls(AdminCalls):
    """Admin calls for delegation tokens; brokers accept them only on authenticated connections."""

    async def create(
        self,
        *,
        renewers: Iterable[str] = (),
        max_lifetime_ms: int = DEFAULT_PERIOD,
        owner: str | None = None,
    ) -> DelegationToken:
        """Create and return a delegation token.

        Args:
            renewers: principals that may renew the token, such as ``User:bob``.
            max_lifetime_ms: the maximum lifetime of the token, in ms.
            owner: the principal that the token authenticates; None for the caller.

        Raises:
            ApiError: the request was rejected, for example with
                DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.
            TrionetError: the request failed.

        Cancellation: a token may have been created.
        """
        allowed = names(renewers)
        owner_type, owner_name = None, None
        if owner is not None:
            [owner] = names([owner])
            owner_type, owner_name = _principal(owner)

        def made(response: CreateDelegationTokenResponse) -> DelegationToken:
            check(response.error_code, "the delegation token")
            return DelegationToken(
                response.token_id,
                bytes(response.hmac),
                _text(response.principal_type, response.principal_name),
                _text(
                    response.token_requester_principal_type, response.token_requester_principal_name
                ),
                tuple(allowed),
                response.issue_timestamp_ms,
                response.expiry_timestamp_ms,
                response.max_timestamp_ms,
            )

        body = CreateDelegationTokenRequest(
            owner_principal_type=owner_type,
            owner_principal_name=owner_name,
            renewers=[
                CreatableRenewers(principal_type=type, principal_name=name)
                for type, name in map(_principal, allowed)
            ],
            max_lifetime_ms=max_lifetime_ms,
        )
        version_min = 1 if owner is None else _WITH_OWNER_VERSION
        return await self._calls.call_controller(body, made, version_min=version_min)

    async def renew(self, hmac: bytes, *, period_ms: int = DEFAULT_PERIOD) -> int:
        """Renew a token, and return the new expiry time in ms since the epoch.

        Args:
            hmac: the token's secret.
            period_ms: the time from now until the token expires, in ms.

        Raises:
            ApiError: the request was rejected, for example with DELEGATION_TOKEN_NOT_FOUND.
            TrionetError: the request failed.
        """

        def renewed(response: RenewDelegationTokenResponse) -> int:
            check(response.error_code, "the delegation token")
            return response.expiry_timestamp_ms

        body = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)
        return await self._calls.call_controller(body, renewed)

    async def expire(self, hmac: bytes, *, period_ms: int = DEFAULT_PERIOD) -> int:
        """Set when a token expires, and return that time in ms since the epoch.

        Args:
            hmac: the token's secret.
            period_ms: the time from now until the token expires, in ms; negative for immediately.

        Raises:
            ApiError: the request was rejected, for example with DELEGATION_TOKEN_NOT_FOUND.
            TrionetError: the request failed.
        """

        def expired(response: ExpireDelegationTokenResponse) -> int:
            check(response.error_code, "the delegation token")
            return response.expiry_timestamp_ms

        body = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
        return await self._calls.call_controller(body, expired)

    async def describe(self, owners: Iterable[str] | None = None) -> list[DelegationToken]:
        """Return the delegation tokens that the caller may describe.

        Args:
            owners: only tokens owned by these principals; None for all.

        Raises:
            TrionetError: the request failed.
        """

        def described(response: DescribeDelegationTokenResponse) -> list[DelegationToken]:
            check(response.error_code, "the delegation tokens")
            return [_token(each) for each in response.tokens]

        body = DescribeDelegationTokenRequest(
            owners=None
            if owners is None
            else [
                DescribeDelegationTokenOwner(principal_type=type, principal_name=name)
                for type, name in map(_principal, names(owners))
            ]
        )
        return await self._calls.call_any(body, described)


def _principal(text: str) -> tuple[str, str]:
    """Split a principal, such as ``User:alice``, into type and name."""
    type, separator, name = text.partition(":")
    if not type or not separator or not name:
        raise ValueError(f"invalid principal {text!r}: expected TYPE:NAME, such as 'User:alice'")
    return type, name


def _text(type: str, name: str) -> str:
    return f"{type}:{name}" if type else ""


def _token(token: DescribedDelegationToken) -> DelegationToken:
    return DelegationToken(
        token.token_id,
        bytes(token.hmac),
        _text(token.principal_type, token.principal_name),
        _text(token.token_requester_principal_type, token.token_requester_principal_name),
        tuple(_text(each.principal_type, each.principal_name) for each in token.renewers),
        token.issue_timestamp,
        token.expiry_timestamp,
        token.max_timestamp,
    )
