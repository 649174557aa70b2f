"""SCRAM credentials: salted hashes that are stored in the database and cached in memory.

(Kafka stores them in its metadata log: ScramImage.) Passwords are hashed in a worker thread and
then discarded. The stored hashes cannot be used to log in.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

import trio

from ...errors import ConfigError
from ...net.sasl._mechanism import USER_NAME_CHARACTERS_MAX
from ...net.sasl._scram import (
    HASHES,
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    SECRET_BYTES,
    Lookup,
    ScramCredential,
    require_scramp,
    salted,
)
from ..storage._database import Database
from ..storage._disk import open_stopped

if TYPE_CHECKING:
    from sqlite3 import Connection


_PROPERTY = "scram.secret"  # name in the table of properties


class ScramCredentials:
    """The credentials of SCRAM users; created by :meth:`load`.

    Attributes:
        secret: the secret from which the salts of unknown users are derived. It is persistent,
            since a salt that changed at a restart would reveal that the user does not exist.
    """

    def __init__(
        self, database: Database, found: dict[tuple[str, str], ScramCredential], secret: bytes
    ) -> None:
        self._database = database
        self.secret = secret
        self._by_mechanism: dict[str, dict[str, ScramCredential]] = {name: {} for name in HASHES}
        for (mechanism, user_name), credential in found.items():
            self._by_mechanism[mechanism][user_name] = credential
        self._changing = trio.Lock()

    @classmethod
    async def load(cls, database: Database) -> ScramCredentials:
        """Read all credentials and the secret from the database.

        Raises:
            DatabaseError: the database cannot be read.
        """
        found, secret = await database.read(lambda each: (_read(each), _secret(each)))
        return cls(database, found, secret)

    def lookup(self, mechanism: str) -> Lookup:
        """Return the function with which a ScramServer looks up the users of a mechanism."""
        return self._by_mechanism[mechanism].get

    def users(self) -> dict[str, dict[str, int]]:
        """Return the iteration counts of all credentials, by user name and mechanism.

        (Kafka: DescribeUserScramCredentials.)
        """
        found: dict[str, dict[str, int]] = {}
        for mechanism, users in self._by_mechanism.items():
            for user_name, credential in users.items():
                found.setdefault(user_name, {})[mechanism] = credential.iterations
        return found

    async def set_password(
        self, user_name: str, password: str, mechanisms: tuple[str, ...] = tuple(HASHES)
    ) -> None:
        """Create a user, or replace the password of an existing user.

        Args:
            user_name: the user name, 1 to 255 characters long.
            password: the password, which must not be empty.
            mechanisms: the mechanisms, each one of :data:`trionet.net.sasl.scram.HASHES`.

        Raises:
            ConfigError: the user name is not allowed, or the password is empty.
            DatabaseError: the database cannot be written. Nothing was changed.

        Cancellation: if cancelled, nothing was changed.
        """
        check_user_name(user_name)
        if not password:
            raise ConfigError(f"the password of {user_name!r} must not be empty")
        made = {
            mechanism: await trio.to_thread.run_sync(partial(salted, mechanism, password))
            for mechanism in mechanisms
        }
        await self.put(user_name, made)

    async def put(self, user_name: str, credentials: dict[str, ScramCredential]) -> None:
        """Create or replace a user's credentials (KIP-554: upsertion).

        Args:
            user_name: the user name, 1 to 255 characters long.
            credentials: the credentials by mechanism.

        Raises:
            ConfigError: the user name or an iteration count is not allowed.
            DatabaseError: the database cannot be written. Nothing was changed.

        Cancellation: if cancelled, nothing was changed.
        """
        check_user_name(user_name)
        for credential in credentials.values():
            if not ITERATIONS_MIN <= credential.iterations <= ITERATIONS_MAX:
                raise ConfigError(
                    f"a SCRAM credential must have {ITERATIONS_MIN} to {ITERATIONS_MAX} iterations,"
                    f" not {credential.iterations}"
                )
        async with self._changing:
            await self._database.transaction(partial(_write, user_name, credentials))
            for mechanism, credential in credentials.items():
                self._by_mechanism[mechanism][user_name] = credential

    async def remove(self, user_name: str, mechanism: str) -> bool:
        """Delete a user's credential for one mechanism, and return whether it existed.

        Raises:
            DatabaseError: the database cannot be written. Nothing was changed.

        Cancellation: if cancelled, nothing was changed.
        """
        async with self._changing:
            was_there = user_name in self._by_mechanism[mechanism]
            await self._database.transaction(partial(_delete, user_name, mechanism))
            self._by_mechanism[mechanism].pop(user_name, None)
        return was_there


def check_user_name(user_name: str) -> None:
    """Reject a user name with which no client could log in.

    Raises:
        ConfigError: the name is empty or too long, or SASLprep changes it (RFC 4013).
    """
    scramp = require_scramp()
    try:
        prepared = str(scramp.core.Username(user_name))
    except (scramp.ScramException, UnicodeError):
        prepared = ""
    if prepared != user_name or not 0 < len(user_name) <= USER_NAME_CHARACTERS_MAX:
        raise ConfigError(
            f"invalid user name {user_name[:USER_NAME_CHARACTERS_MAX]!r}; allowed: 1 to"
            f" {USER_NAME_CHARACTERS_MAX} characters that SASLprep (RFC 4013) does not change"
        )


def _read(connection: Connection) -> dict[tuple[str, str], ScramCredential]:
    rows = connection.execute(
        "SELECT mechanism, user_name, salt, stored_key, server_key, iterations"
        " FROM scram_credential"
    )
    return {(row[0], row[1]): ScramCredential(*row[2:]) for row in rows}


def _secret(connection: Connection) -> bytes:
    """Return the secret that is stored in the database; create it on first use."""
    row = connection.execute("SELECT value FROM property WHERE name = ?", (_PROPERTY,)).fetchone()
    if row is not None:
        return bytes.fromhex(row[0])
    secret = os.urandom(SECRET_BYTES)
    connection.execute("INSERT INTO property VALUES (?, ?)", (_PROPERTY, secret.hex()))
    return secret


def _write(user_name: str, credentials: dict[str, ScramCredential], connection: Connection) -> None:
    for mechanism, credential in credentials.items():
        connection.execute(
            "INSERT OR REPLACE INTO scram_credential VALUES (?, ?, ?, ?, ?, ?)",
            (
                user_name,
                mechanism,
                credential.salt,
                credential.stored_key,
                credential.server_key,
                credential.iterations,
            ),
        )


def _delete(user_name: str, mechanism: str, connection: Connection) -> None:
    connection.execute(
        "DELETE FROM scram_credential WHERE user_name = ? AND mechanism = ?",
        (user_name, mechanism),
    )


async def add_scram_user(folder: str, user_name: str, password: str) -> None:
    """Add a user with credentials for all SCRAM mechanisms to a broker's data directory.

    The broker must not be running.

    Args:
        folder: the path of the data directory, which is created if it does not exist.
        user_name: the user name, 1 to 255 characters long.
        password: the password, which must not be empty.

    Raises:
        ConfigError: the directory is in use or belongs to another broker, or the user name or
            password is not allowed.
        DatabaseError: the database cannot be opened or written.
        OSError: the directory cannot be accessed.

    Cancellation: the user is either added completely, or not at all.
    """
    check_user_name(user_name)
    # A running broker would not read the new user from the database.
    async with open_stopped(folder) as database:
        credentials = await ScramCredentials.load(database)
        await credentials.set_password(user_name, password)
