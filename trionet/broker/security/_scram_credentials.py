"""SCRAM credentials: salted hashes that are stored in the database and cached in memory.

(Kafka stores them in its metadata log: ScramImage.) Passwords are hashed in a worker thread and
then discarded. The stored hashes cannot be used to log in.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

import attrs
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
from ..storage._tables import (
    BLOB,
    PROPERTIES,
    TEXT,
    Fields,
    Table,
    integer,
    one_of,
    read_property,
)

if TYPE_CHECKING:
    from sqlite3 import Connection


_PROPERTY = "scram.secret"  # name in the table of properties


@attrs.define(eq=False)
class ScramCredentials:
    """The credentials of SCRAM users.

    Attributes:
        by_mechanism: the credentials by mechanism and user name.
        secret: the secret from which the salts of unknown users are derived. It is persistent,
            since a salt that changed at a restart would reveal that the user does not exist.
    """

    by_mechanism: dict[str, dict[str, ScramCredential]]
    secret: bytes = attrs.field(repr=False)
    _database: Database

    @classmethod
    async def load(cls, database: Database) -> ScramCredentials:
        """Read all credentials and the secret from the database.

        Raises:
            DatabaseError: the database cannot be read.
        """
        found, secret = await database.read(lambda each: (_read(each), _secret(each)))
        return cls(found, secret, database)

    @property
    def has_users(self) -> bool:
        return any(self.by_mechanism.values())

    def lookup(self, mechanism: str) -> Lookup:
        """Return the function with which a ScramServer looks up the users of a mechanism."""
        return self.by_mechanism[mechanism].get

    async def put(self, user_name: str, credentials: Mapping[str, ScramCredential]) -> None:
        """Create or replace a user's credentials (KIP-554: upsertion).

        Args:
            user_name: a user name that :func:`check_user_name` allows.
            credentials: the credentials by mechanism.

        Raises:
            DatabaseError: the database cannot be written. Nothing was changed.

        Cancellation: if cancelled, nothing was changed.
        """
        await self._database.transaction(partial(_write, user_name, credentials))
        for mechanism, credential in credentials.items():
            self.by_mechanism[mechanism][user_name] = credential


async def add_scram_user(folder: str, user_name: str, password: str) -> None:
    """Add a user with credentials for all SCRAM mechanisms to a broker's data directory.

    If the user exists, the password is replaced. The broker must not be running.

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
        if not password:
            raise ConfigError(f"the password of {user_name!r} must not be empty")
        made = {
            mechanism: await trio.to_thread.run_sync(partial(salted, mechanism, password))
            for mechanism in HASHES
        }
        await (await ScramCredentials.load(database)).put(user_name, made)


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


_CREDENTIALS: Final = Table(
    "scram_credential",
    2,
    Fields(
        user_name=TEXT,
        mechanism=one_of(HASHES),
        salt=BLOB,
        stored_key=BLOB,
        server_key=BLOB,
        iterations=integer(ITERATIONS_MIN, ITERATIONS_MAX),
    ),
)


def _read(connection: Connection) -> dict[str, dict[str, ScramCredential]]:
    found: dict[str, dict[str, ScramCredential]] = {name: {} for name in HASHES}
    for user_name, mechanism, *credential in _CREDENTIALS.read(connection, lambda *row: row):
        found[mechanism][user_name] = ScramCredential(*credential)
    return found


def _secret(connection: Connection) -> bytes:
    """Return the secret that is stored in the database; create it on first use."""
    secret = read_property(connection, _PROPERTY, bytes.fromhex)
    if secret is None:
        secret = os.urandom(SECRET_BYTES)
        PROPERTIES.put(connection, [(_PROPERTY, secret.hex())])
    return secret


def _write(
    user_name: str, credentials: Mapping[str, ScramCredential], connection: Connection
) -> None:
    _CREDENTIALS.put(
        connection,
        [
            (
                user_name,
                mechanism,
                credential.salt,
                credential.stored_key,
                credential.server_key,
                credential.iterations,
            )
            for mechanism, credential in credentials.items()
        ],
    )
