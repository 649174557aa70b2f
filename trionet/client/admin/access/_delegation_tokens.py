"""Delegation tokens: what lets others act for a user for some time (KIP-48)."""

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
from ..calls._argument_checks import names
from ..calls._conversions import AdminCalls, check

DEFAULT_PERIOD: Final = -1
"""As long as the broker's settings say; to expire, at once."""

_WITH_OWNER_VERSION: Final = 3  # KIP-373


@attrs.frozen
class DelegationToken:
    """A token.

    Attributes:
        id: its name, which is the user name of SCRAM.
        hmac: its secret, whose base64 text is the password of SCRAM.
        owner: for whom it stands, such as ``User:alice``.
        requester: who asked for it; empty where it is not told.
        renewers: who may renew it, beside its owner.
        issued_ms: when it was made, in milliseconds since 1970.
        expires_ms: when it ends unless it is renewed.
        ends_ms: when it ends in any case.
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
    """Calls about delegation tokens; brokers allow them over authenticated connections only."""

    async def create_delegation_token(
        self,
        *,
        renewers: Iterable[str] = (),
        max_lifetime_ms: int = DEFAULT_PERIOD,
        owner: str | None = None,
    ) -> DelegationToken:
        """Make a token.

        Args:
            renewers: who may renew it, such as ``User:bob``.
            max_lifetime_ms: when it ends in any case.
            owner: for whom it stands; None for the caller.

        Raises:
            ApiError: such as DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.
            TrionetError: the request failed.

        Cancellation: a token may be made.
        """
        allowed = names(renewers)
        owner_type, owner_name = None, None
        if owner is not None:
            [owner] = names([owner])
            owner_type, owner_name = _principal(owner)

        def made(answer: CreateDelegationTokenResponse) -> DelegationToken:
            check(answer.error_code, "the delegation token")
            return DelegationToken(
                answer.token_id,
                bytes(answer.hmac),
                _text(answer.principal_type, answer.principal_name),
                _text(answer.token_requester_principal_type, answer.token_requester_principal_name),
                tuple(allowed),
                answer.issue_timestamp_ms,
                answer.expiry_timestamp_ms,
                answer.max_timestamp_ms,
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
        return await self._calls.ask_controller(body, made, version_min=version_min)

    async def renew_delegation_token(self, hmac: bytes, *, period_ms: int = DEFAULT_PERIOD) -> int:
        """Let a token end later; gives when, in milliseconds since 1970.

        Args:
            hmac: its secret.
            period_ms: how long from now.

        Raises:
            ApiError: such as DELEGATION_TOKEN_NOT_FOUND.
            TrionetError: the request failed.
        """

        def renewed(answer: RenewDelegationTokenResponse) -> int:
            check(answer.error_code, "the delegation token")
            return answer.expiry_timestamp_ms

        body = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)
        return await self._calls.ask_controller(body, renewed)

    async def expire_delegation_token(self, hmac: bytes, *, period_ms: int = DEFAULT_PERIOD) -> int:
        """Let a token end sooner; gives when, in milliseconds since 1970.

        Args:
            hmac: its secret.
            period_ms: how long from now; below zero for at once.

        Raises:
            ApiError: such as DELEGATION_TOKEN_NOT_FOUND.
            TrionetError: the request failed.
        """

        def expired(answer: ExpireDelegationTokenResponse) -> int:
            check(answer.error_code, "the delegation token")
            return answer.expiry_timestamp_ms

        body = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
        return await self._calls.ask_controller(body, expired)

    async def describe_delegation_tokens(
        self, owners: Iterable[str] | None = None
    ) -> list[DelegationToken]:
        """The tokens that the caller may see.

        Args:
            owners: those of these principals only; None for all.

        Raises:
            TrionetError: the request failed.
        """

        def described(answer: DescribeDelegationTokenResponse) -> list[DelegationToken]:
            check(answer.error_code, "the delegation tokens")
            return [_token(each) for each in answer.tokens]

        body = DescribeDelegationTokenRequest(
            owners=None
            if owners is None
            else [
                DescribeDelegationTokenOwner(principal_type=type, principal_name=name)
                for type, name in map(_principal, names(owners))
            ]
        )
        return await self._calls.ask_any(body, described)


def _principal(text: str) -> tuple[str, str]:
    """The type and the name of ``User:alice``."""
    type, separator, name = text.partition(":")
    if not type or not separator or not name:
        raise ValueError(f"{text!r} is no principal; one is such as 'User:alice'")
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
