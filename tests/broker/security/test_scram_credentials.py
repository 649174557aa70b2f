"""SCRAM credentials: kept salted, found again after a restart, changed as a whole or not at all."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path

import pytest

from support.brokers import broker_and_client
from support.sasl import scram
from trionet.broker.security._scram_credentials import (
    ScramCredentials,
    add_scram_user,
    check_user_name,
)
from trionet.broker.storage._database import DATABASE_NAME, IN_MEMORY, DatabaseError, open_database
from trionet.errors import AuthenticationError, ConfigError
from trionet.net.sasl._mechanism import USER_NAME_CHARACTERS_MAX
from trionet.net.sasl._scram import HASHES, ScramServer, salted
from trionet.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from trionet.protocol.messages.sasl_handshake import SaslHandshakeRequest


def lets_in(
    credentials: ScramCredentials, name: str, password: str, mechanism: str = "SCRAM-SHA-256"
) -> bool:
    server = ScramServer(mechanism, credentials.lookup(mechanism))
    client = scram(mechanism, name, password)
    client.set_server_first(server.respond(client.get_client_first().encode(), 0).decode())
    try:
        server.respond(client.get_client_final().encode(), 0)
    except AuthenticationError:
        return False
    return server.is_complete


async def loaded(folder: Path) -> ScramCredentials:
    async with open_database(str(folder / DATABASE_NAME)) as database:
        return await ScramCredentials.load(database)


async def test_a_user_gets_in_after_a_restart_until_its_password_is_replaced(
    tmp_path: Path,
) -> None:
    async with open_database(IN_MEMORY) as database:
        assert not (await ScramCredentials.load(database)).has_users

    for password, other in (("old", "new"), ("new", "old")):
        await add_scram_user(str(tmp_path), "alice", password)
        credentials = await loaded(tmp_path)

        assert credentials.has_users
        for mechanism in HASHES:
            assert lets_in(credentials, "alice", password, mechanism)
            assert not lets_in(credentials, "alice", other, mechanism)
            found = credentials.lookup(mechanism)("alice")
            assert found is not None
            assert 4096 == found.iterations


def _content(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())


async def test_the_database_holds_nothing_to_log_in_with(tmp_path: Path) -> None:
    await add_scram_user(str(tmp_path), "alice", "a very long secret")
    found = (await loaded(tmp_path)).lookup("SCRAM-SHA-256")("alice")

    kept = _content(tmp_path)
    assert found is not None
    assert found.stored_key in kept
    key = hashlib.pbkdf2_hmac("sha256", b"a very long secret", found.salt, found.iterations)
    client_key = hmac.digest(key, b"Client Key", "sha256")
    for secret in (b"a very long secret", key, client_key):
        assert secret not in kept


async def test_a_change_that_cannot_be_written_changes_nothing() -> None:
    async with open_database(IN_MEMORY) as database:
        credentials = await ScramCredentials.load(database)
        await database.transaction(
            lambda connection: connection.execute("DROP TABLE scram_credential")
        )

        with pytest.raises(DatabaseError):
            await credentials.put("alice", {"SCRAM-SHA-256": salted("SCRAM-SHA-256", "new")})

        assert not credentials.has_users


@pytest.mark.parametrize(
    "damage",
    [
        "mechanism = 'SCRAM-MD5'",
        "user_name = x'ff'",
        "salt = 'salt'",
        "server_key = 5",
        "iterations = 0",
        "iterations = 16385",
    ],
)
async def test_an_unreadable_credential_costs_that_one(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    await add_scram_user(str(tmp_path), "alice", "secret")
    async with open_database(str(tmp_path / DATABASE_NAME)) as database:
        statement = f"UPDATE scram_credential SET {damage} WHERE mechanism = 'SCRAM-SHA-512'"
        await database.transaction(lambda connection: connection.execute(statement))

    credentials = await loaded(tmp_path)

    assert lets_in(credentials, "alice", "secret")
    assert credentials.lookup("SCRAM-SHA-512")("alice") is None
    assert "ignoring an unreadable row of the database, in table scram_credential" in caplog.text


async def test_an_unreadable_secret_is_replaced(tmp_path: Path) -> None:
    before = (await loaded(tmp_path)).secret
    async with open_database(str(tmp_path / DATABASE_NAME)) as database:
        statement = "UPDATE property SET value = 'xyz' WHERE name = 'scram.secret'"
        await database.transaction(lambda connection: connection.execute(statement))

    after = (await loaded(tmp_path)).secret

    assert before != after == (await loaded(tmp_path)).secret


async def test_an_empty_password_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="must not be empty"):
        await add_scram_user(str(tmp_path), "alice", "")


@pytest.mark.parametrize("name", ["alice", "a,b=c", "ü", "x" * USER_NAME_CHARACTERS_MAX])
def test_names_that_can_be(name: str) -> None:
    check_user_name(name)


@pytest.mark.parametrize("name", ["", "x" * (USER_NAME_CHARACTERS_MAX + 1), "\0", "ﬁ", "a\u00adb"])
def test_names_that_no_client_could_send_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="invalid user name"):
        check_user_name(name)


async def salt_of(folder: Path, name: str) -> str:
    """The salt that a broker of this folder, started anew, tells who logs in by a name."""
    settings: dict[str, object] = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "log.dirs": str(folder),
    }
    first = scram("SCRAM-SHA-256", name, "wrong").get_client_first().encode()
    async with broker_and_client(settings) as (_, client):
        await client.call(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1)
        response = await client.call(SaslAuthenticateRequest(auth_bytes=first), 2)
        assert 0 == response.error_code
        _, salt, iterations = bytes(response.auth_bytes).decode().split(",")
        assert "i=4096" == iterations
        return str(salt)


async def test_the_salt_of_an_unknown_user_stays_the_same_over_a_restart_as_that_of_a_user(
    tmp_path: Path,
) -> None:
    """Else whoever asks before and after it knows which users there are."""
    await add_scram_user(str(tmp_path / "one"), "alice", "secret")
    await add_scram_user(str(tmp_path / "two"), "bob", "secret")

    for name in ("alice", "nobody"):
        before = await salt_of(tmp_path / "one", name)
        assert before == await salt_of(tmp_path / "one", name)
        # What nobody's salt is made from is another broker's secret there.
        assert before != await salt_of(tmp_path / "two", name)
