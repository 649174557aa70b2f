"""Passwords of users for SCRAM (KIP-554). Only what is made of them leaves this process."""

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
from ..._node import Node
from ..calls._argument_checks import items, names
from ..calls._conversions import AdminCalls, check, failure
from ..calls._nodes import CONTROLLER_CODES
from ..calls._results import Results
from ..calls._wire_enum import WireEnum


class ScramMechanism(WireEnum):
    """By Kafka's numbers."""

    UNKNOWN = 0
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2


_NAMES: Final = {
    ScramMechanism.SCRAM_SHA_256: "SCRAM-SHA-256",
    ScramMechanism.SCRAM_SHA_512: "SCRAM-SHA-512",
}


@attrs.frozen
class ScramUpsertion:
    """A password for a user, new or in place of another.

    Attributes:
        user: the name.
        mechanism: for which mechanism.
        password: as the user types it.
        iterations: how often it is hashed, 4096 to 16384.
        salt: at random without.
    """

    user: str
    mechanism: ScramMechanism
    password: str = attrs.field(repr=False)
    iterations: int = ITERATIONS_MIN
    salt: bytes | None = attrs.field(default=None, repr=False)


@attrs.frozen
class ScramDeletion:
    """The end of a user's password.

    Attributes:
        user: the name.
        mechanism: for which mechanism.
    """

    user: str
    mechanism: ScramMechanism


class ScramCredentialCalls(AdminCalls):
    """Calls about passwords for SCRAM."""

    async def describe_user_scram_credentials(
        self, users: Iterable[str] | None = None
    ) -> Results[str, dict[ScramMechanism, int]]:
        """Which users have passwords.

        Args:
            users: their names; None for all that have any.

        Returns:
            By name, the iterations by mechanism, or why they are not known: RESOURCE_NOT_FOUND for
            who has none.

        Raises:
            TrionetError: the request failed.
        """
        wanted = None if users is None else [UserName(name=name) for name in names(users)]

        def described(
            answer: DescribeUserScramCredentialsResponse,
        ) -> Results[str, dict[ScramMechanism, int]]:
            check(answer.error_code, "the credentials", answer.error_message)
            results: Results[str, dict[ScramMechanism, int]] = Results()
            for each in answer.results:
                error = failure(each.error_code, f"user {each.user}", each.error_message)
                results[each.user] = error or {
                    ScramMechanism(info.mechanism): info.iterations
                    for info in each.credential_infos
                }
            return results

        body = DescribeUserScramCredentialsRequest(users=wanted)
        return await self._calls.ask_any(body, described)

    async def alter_user_scram_credentials(
        self, alterations: Iterable[ScramUpsertion | ScramDeletion]
    ) -> Results[str, None]:
        """Set and delete passwords.

        Args:
            alterations: what to do, one for each user: Kafka takes no more at a time.

        Returns:
            By user, None or why nothing was done.

        Raises:
            TrionetError: the request as a whole failed.

        Cancellation: it may be done.
        """
        by_user: dict[str, list[ScramCredentialUpsertion | ScramCredentialDeletion]] = {}
        for alteration in items(alterations, ScramUpsertion, ScramDeletion):
            by_user.setdefault(alteration.user, []).append(await _encoded(alteration))

        async def ask(node: Node, keys: Sequence[str]) -> dict[str, TrionetError | None]:
            changes = [each for key in keys for each in by_user[key]]
            answer: AlterUserScramCredentialsResponse = await self._calls.client.request(
                node,
                AlterUserScramCredentialsRequest(
                    deletions=[x for x in changes if isinstance(x, ScramCredentialDeletion)],
                    upsertions=[x for x in changes if isinstance(x, ScramCredentialUpsertion)],
                ),
            )
            return {
                each.user: failure(each.error_code, f"user {each.user}", each.error_message)
                for each in answer.results
            }

        return await self._calls.each(by_user, self._calls.at_controller, ask, CONTROLLER_CODES)


async def _encoded(
    alteration: ScramUpsertion | ScramDeletion,
) -> ScramCredentialUpsertion | ScramCredentialDeletion:
    name, mechanism = alteration.user, alteration.mechanism
    await trio.lowlevel.checkpoint()
    if isinstance(alteration, ScramDeletion):
        return ScramCredentialDeletion(name=name, mechanism=mechanism)
    salt = os.urandom(SALT_BYTES) if alteration.salt is None else alteration.salt
    # Milliseconds on purpose: not on the loop.
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
