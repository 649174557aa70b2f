"""Credentials of users: SCRAM credentials (KIP-554) and delegation tokens (KIP-48).

The client sends salted hashes, never passwords. With a delegation token, a client acts for a user
for a limited time.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

import attrs
import trio

from ..._util._off_loop import computing_threads
from ...net.sasl._scram import HASHES, ITERATIONS_MIN, SALT_BYTES
from ...protocol.messages import alter_user_scram_credentials as altering
from ...protocol.messages import create_delegation_token, describe_delegation_token
from ...protocol.messages import describe_user_scram_credentials as describing
from ...protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from ...protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from .._argument_checks import items, names
from ..network._cluster import Node
from ._calls import AdminCalls, Outcomes, Results
from ._conversions import WireEnum, failure

T = TypeVar("T")


class ScramMechanism(WireEnum):
    """A SCRAM mechanism; the values are Kafka's numbers."""

    UNKNOWN = 0
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2


_NAMES: Final = {
    ScramMechanism.SCRAM_SHA_256: "SCRAM-SHA-256",
    ScramMechanism.SCRAM_SHA_512: "SCRAM-SHA-512",
}


@attrs.frozen
class ScramUpsertion:
    """A request to set a user's SCRAM credential.

    Attributes:
        user: the user name.
        mechanism: the mechanism.
        password: the password in clear text.
        iterations: the number of hash iterations, from 4096 to 16384.
        salt: the salt; None for a random one.
    """

    user: str
    mechanism: ScramMechanism
    password: str = attrs.field(repr=False)
    iterations: int = ITERATIONS_MIN
    salt: bytes | None = attrs.field(default=None, repr=False)


@attrs.frozen
class ScramDeletion:
    """A request to delete a user's SCRAM credential.

    Attributes:
        user: the user name.
        mechanism: the mechanism.
    """

    user: str
    mechanism: ScramMechanism


class ScramCredentialCalls(AdminCalls):
    """Admin calls for SCRAM credentials."""

    async def describe(
        self, users: Iterable[str] | None = None
    ) -> Results[str, dict[ScramMechanism, int]]:
        """Return the mechanisms and iteration counts of users' SCRAM credentials.

        Args:
            users: user names; None for all users with credentials.

        Returns:
            For each user, the iteration count of each mechanism, or the error, which is
            RESOURCE_NOT_FOUND for a user without credentials.

        Raises:
            TrionetError: the request failed.
        """
        wanted = (
            None if users is None else [describing.UserName(name=name) for name in names(users)]
        )
        response: describing.DescribeUserScramCredentialsResponse = await self._calls.call_any(
            describing.DescribeUserScramCredentialsRequest(users=wanted), "the credentials"
        )
        results: Results[str, dict[ScramMechanism, int]] = Results()
        for each in response.results:
            results[each.user] = failure(each, f"user {each.user}") or {
                ScramMechanism(info.mechanism): info.iterations for info in each.credential_infos
            }
        return results

    async def alter(
        self, alterations: Iterable[ScramUpsertion | ScramDeletion]
    ) -> Results[str, None]:
        """Set and delete SCRAM credentials.

        Args:
            alterations: the changes, at most one per user, as in Kafka.

        Returns:
            For each user, None on success or the error.

        Raises:
            TrionetError: the request as a whole failed.

        Cancellation: the changes may have been made.
        """
        deletions: dict[str, list[altering.ScramCredentialDeletion]] = {}
        upsertions: dict[str, list[altering.ScramCredentialUpsertion]] = {}
        alterations = items(alterations, ScramUpsertion, ScramDeletion)
        for each in alterations:
            if isinstance(each, ScramDeletion):
                deletion = altering.ScramCredentialDeletion(
                    name=each.user, mechanism=each.mechanism
                )
                deletions.setdefault(each.user, []).append(deletion)
            else:
                upsertions.setdefault(each.user, []).append(await _upsertion(each))

        async def send(node: Node, keys: Sequence[str]) -> Outcomes[str, None]:
            response: altering.AlterUserScramCredentialsResponse = await self._request(
                node,
                altering.AlterUserScramCredentialsRequest(
                    deletions=[each for key in keys for each in deletions.get(key, ())],
                    upsertions=[each for key in keys for each in upsertions.get(key, ())],
                ),
            )
            return {each.user: failure(each, f"user {each.user}") for each in response.results}

        users = [each.user for each in alterations]
        return await self._calls.for_each(users, self._nodes.at_controller, send)


async def _upsertion(credential: ScramUpsertion) -> altering.ScramCredentialUpsertion:
    salt = os.urandom(SALT_BYTES) if credential.salt is None else credential.salt
    # Takes milliseconds by design, so not on the event loop.
    salted = await trio.to_thread.run_sync(
        hashlib.pbkdf2_hmac,
        HASHES[_NAMES[credential.mechanism]],
        credential.password.encode(),
        salt,
        credential.iterations,
        limiter=computing_threads(),
    )
    return altering.ScramCredentialUpsertion(
        name=credential.user,
        mechanism=credential.mechanism,
        iterations=credential.iterations,
        salt=salt,
        salted_password=salted,
    )


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
        body = create_delegation_token.CreateDelegationTokenRequest(
            owner_principal_type=owner_type,
            owner_principal_name=owner_name,
            renewers=_principals(create_delegation_token.CreatableRenewers, allowed),
            max_lifetime_ms=max_lifetime_ms,
        )
        response: create_delegation_token.CreateDelegationTokenResponse = (
            await self._calls.call_controller(
                body,
                "the delegation token",
                version_min=1 if owner is None else _WITH_OWNER_VERSION,
            )
        )
        return _token(
            response,
            allowed,
            response.issue_timestamp_ms,
            response.expiry_timestamp_ms,
            response.max_timestamp_ms,
        )

    async def renew(self, hmac: bytes, *, period_ms: int = DEFAULT_PERIOD) -> int:
        """Renew a token, and return the new expiry time in ms since the epoch.

        Args:
            hmac: the token's secret.
            period_ms: the time from now until the token expires, in ms.

        Raises:
            ApiError: the request was rejected, for example with DELEGATION_TOKEN_NOT_FOUND.
            TrionetError: the request failed.
        """
        body = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)
        response: RenewDelegationTokenResponse = await self._calls.call_controller(
            body, "the delegation token"
        )
        return response.expiry_timestamp_ms

    async def expire(self, hmac: bytes, *, period_ms: int = DEFAULT_PERIOD) -> int:
        """Set when a token expires, and return that time in ms since the epoch.

        Args:
            hmac: the token's secret.
            period_ms: the time from now until the token expires, in ms; negative for immediately.

        Raises:
            ApiError: the request was rejected, for example with DELEGATION_TOKEN_NOT_FOUND.
            TrionetError: the request failed.
        """
        body = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
        response: ExpireDelegationTokenResponse = await self._calls.call_controller(
            body, "the delegation token"
        )
        return response.expiry_timestamp_ms

    async def describe(self, owners: Iterable[str] | None = None) -> list[DelegationToken]:
        """Return the delegation tokens that the caller may describe.

        Args:
            owners: only tokens owned by these principals; None for all.

        Raises:
            TrionetError: the request failed.
        """
        wanted = None
        if owners is not None:
            owner = describe_delegation_token.DescribeDelegationTokenOwner
            wanted = _principals(owner, names(owners))
        response: describe_delegation_token.DescribeDelegationTokenResponse = (
            await self._calls.call_any(
                describe_delegation_token.DescribeDelegationTokenRequest(owners=wanted),
                "the delegation tokens",
            )
        )
        return [
            _token(
                each,
                [
                    _text(renewer.principal_type, renewer.principal_name)
                    for renewer in each.renewers
                ],
                each.issue_timestamp,
                each.expiry_timestamp,
                each.max_timestamp,
            )
            for each in response.tokens
        ]


def _principal(text: str) -> tuple[str, str]:
    """Split a principal, such as ``User:alice``, into type and name."""
    type, separator, name = text.partition(":")
    if not type or not separator or not name:
        raise ValueError(f"invalid principal {text!r}: expected TYPE:NAME, such as 'User:alice'")
    return type, name


def _text(type: str, name: str) -> str:
    return f"{type}:{name}" if type else ""


def _principals(message: Callable[..., T], texts: Iterable[str]) -> list[T]:
    principals = map(_principal, texts)
    return [message(principal_type=type, principal_name=name) for type, name in principals]


def _token(
    token: create_delegation_token.CreateDelegationTokenResponse
    | describe_delegation_token.DescribedDelegationToken,
    renewers: Iterable[str],
    issued_ms: int,
    expires_ms: int,
    ends_ms: int,
) -> DelegationToken:
    return DelegationToken(
        token.token_id,
        bytes(token.hmac),
        _text(token.principal_type, token.principal_name),
        _text(token.token_requester_principal_type, token.token_requester_principal_name),
        tuple(renewers),
        issued_ms,
        expires_ms,
        ends_ms,
    )
