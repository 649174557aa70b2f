"""SCRAM credentials of users (KIP-554). The client sends salted hashes, never passwords."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from typing import Final

import attrs
import trio

from ...._util._off_loop import computing_threads
from ....errors import TrionetError
from ....net.sasl._scram import HASHES, ITERATIONS_MIN, SALT_BYTES
from ....protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ....protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from ..._argument_checks import items, names
from ...network._cluster import Node
from ..calls._calls import AdminCalls, Results
from ..calls._conversions import check, failure
from ..calls._enums import WireEnum
from ..calls._nodes import CONTROLLER_CODES


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
        wanted = None if users is None else [UserName(name=name) for name in names(users)]

        def described(
            response: DescribeUserScramCredentialsResponse,
        ) -> Results[str, dict[ScramMechanism, int]]:
            check(response.error_code, "the credentials", response.error_message)
            results: Results[str, dict[ScramMechanism, int]] = Results()
            for each in response.results:
                error = failure(each.error_code, f"user {each.user}", each.error_message)
                results[each.user] = error or {
                    ScramMechanism(info.mechanism): info.iterations
                    for info in each.credential_infos
                }
            return results

        body = DescribeUserScramCredentialsRequest(users=wanted)
        return await self._calls.call_any(body, described)

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
        by_user: dict[str, list[ScramCredentialUpsertion | ScramCredentialDeletion]] = {}
        for alteration in items(alterations, ScramUpsertion, ScramDeletion):
            by_user.setdefault(alteration.user, []).append(await _encoded(alteration))

        async def send(node: Node, keys: Sequence[str]) -> dict[str, TrionetError | None]:
            changes = [each for key in keys for each in by_user[key]]
            response: AlterUserScramCredentialsResponse = await self._calls.client.request(
                node,
                AlterUserScramCredentialsRequest(
                    deletions=[x for x in changes if isinstance(x, ScramCredentialDeletion)],
                    upsertions=[x for x in changes if isinstance(x, ScramCredentialUpsertion)],
                ),
            )
            return {
                each.user: failure(each.error_code, f"user {each.user}", each.error_message)
                for each in response.results
            }

        return await self._calls.for_each(
            by_user, self._calls.at_controller, send, CONTROLLER_CODES
        )


async def _encoded(
    alteration: ScramUpsertion | ScramDeletion,
) -> ScramCredentialUpsertion | ScramCredentialDeletion:
    name, mechanism = alteration.user, alteration.mechanism
    await trio.lowlevel.checkpoint()
    if isinstance(alteration, ScramDeletion):
        return ScramCredentialDeletion(name=name, mechanism=mechanism)
    salt = os.urandom(SALT_BYTES) if alteration.salt is None else alteration.salt
    # Takes milliseconds by design, so not on the event loop.
    salted = await trio.to_thread.run_sync(
        hashlib.pbkdf2_hmac,
        HASHES[_NAMES[mechanism]],
        alteration.password.encode(),
        salt,
        alteration.iterations,
        limiter=computing_threads(),
    )
    return ScramCredentialUpsertion(
        name=name,
        mechanism=mechanism,
        iterations=alteration.iterations,
        salt=salt,
        salted_password=salted,
    )
