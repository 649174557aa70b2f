"""SCRAM credentials: kept salted, found again after a restart, changed as a whole or not at all."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path

import pytest

from support.client import connect
from support.sasl import scram
from trionet import open_broker
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


async def test_a_user_gets_in_also_after_a_restart(tmp_path: Path) -> None:
    path = str(tmp_path / DATABASE_NAME)
    async with open_database(path) as database:
        credentials = await ScramCredentials.load(database)
        assert {} == credentials.users()
        await credentials.set_password("alice", "secret")
        assert lets_in(credentials, "alice", "secret")

    async with open_database(path) as database:
        credentials = await ScramCredentials.load(database)
        for mechanism in HASHES:
            assert lets_in(credentials, "alice", "secret", mechanism)
            assert not lets_in(credentials, "alice", "wrong", mechanism)
        assert {"alice": dict.fromkeys(HASHES, 4096)} == credentials.users()


def _content(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


async def test_the_database_holds_nothing_to_log_in_with(tmp_path: Path) -> None:
    async with open_database(str(tmp_path / DATABASE_NAME)) as database:
        credentials = await ScramCredentials.load(database)
        await credentials.set_password("alice", "a very long secret")
        found = credentials.lookup("SCRAM-SHA-256")("alice")

    kept = _content(tmp_path)
    assert found is not None
    assert found.stored_key in kept
    key = hashlib.pbkdf2_hmac("sha256", b"a very long secret", found.salt, found.iterations)
    client_key = hmac.digest(key, b"Client Key", "sha256")
    for secret in (b"a very long secret", key, client_key):
        assert secret not in kept


async def test_a_new_password_replaces_the_old_one() -> None:
    async with open_database(IN_MEMORY) as database:
        credentials = await ScramCredentials.load(database)
        await credentials.set_password("alice", "old")
        await credentials.set_password("alice", "new", ("SCRAM-SHA-256",))

        assert lets_in(credentials, "alice", "new")
        assert not lets_in(credentials, "alice", "old")
        assert lets_in(credentials, "alice", "old", "SCRAM-SHA-512")


async def test_a_user_who_is_removed_gets_in_no_longer() -> None:
    async with open_database(IN_MEMORY) as database:
        credentials = await ScramCredentials.load(database)
        await credentials.set_password("alice", "secret")

        assert await credentials.remove("alice", "SCRAM-SHA-256")
        assert not await credentials.remove("alice", "SCRAM-SHA-256")

        assert not lets_in(credentials, "alice", "secret")
        assert {"alice": {"SCRAM-SHA-512": 4096}} == credentials.users()
        assert ["SCRAM-SHA-512"] == [key[0] for key in (await _rows(credentials))]


async def _rows(credentials: ScramCredentials) -> list[tuple[str]]:
    found: list[tuple[str]] = await credentials._database.transaction(
        lambda connection: connection.execute("SELECT mechanism FROM scram_credential").fetchall()
    )
    return found


async def test_a_change_that_cannot_be_written_changes_nothing() -> None:
    async with open_database(IN_MEMORY) as database:
        credentials = await ScramCredentials.load(database)
        await credentials.set_password("alice", "old")
        await database.transaction(
            lambda connection: connection.execute("DROP TABLE scram_credential")
        )

        with pytest.raises(DatabaseError):
            await credentials.set_password("alice", "new")
        with pytest.raises(DatabaseError):
            await credentials.remove("alice", "SCRAM-SHA-256")

        assert lets_in(credentials, "alice", "old")


@pytest.mark.parametrize("iterations", [4095, 16_385])
async def test_iterations_have_kafkas_bounds(iterations: int) -> None:
    async with open_database(IN_MEMORY) as database:
        credentials = await ScramCredentials.load(database)
        made = salted("SCRAM-SHA-256", "secret", iterations=iterations)

        with pytest.raises(ConfigError, match="4096 to 16384"):
            await credentials.put("alice", {"SCRAM-SHA-256": made})


async def test_an_empty_password_is_refused() -> None:
    async with open_database(IN_MEMORY) as database:
        credentials = await ScramCredentials.load(database)

        with pytest.raises(ConfigError, match="must not be empty"):
            await credentials.set_password("alice", "")


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
    async with open_broker(settings) as broker, connect(broker.bootstrap_servers) as client:
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
