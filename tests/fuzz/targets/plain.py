"""SASL/PLAIN: the right names and passwords get in, and nothing else does."""

from __future__ import annotations

from fuzz.script import SEPARATOR
from trionet.errors import AuthenticationError
from trionet.net.sasl._mechanism import CredentialsError
from trionet.net.sasl._plain import PlainServer, verify_with

WATCHED = ("trionet.net.sasl",)
WORDS = (
    *(b"\0", b"alice", b"secret", b"\0alice\0secret", "bøb\0pässword".encode()),
    *(b"\xc3", SEPARATOR),
)
BYTES_MAX = 256

USERS = {"alice": "secret", "bøb": "pässword"}
RIGHT = {
    f"{authorization_id}\0{name}\0{password}".encode(): name
    for name, password in USERS.items()
    for authorization_id in ("", name)
}
TOLD = frozenset(
    f"Authentication failed: {what}"
    for what in (
        "username not specified",
        "password not specified",
        "Invalid username or password",
        "Client requested an authorization id that is different from username",
    )
)


def run(data: bytes) -> None:
    server = PlainServer(verify_with(USERS))
    first, _, second = data.partition(SEPARATOR)
    _send(server, first)
    assert server.is_complete == (first in RIGHT)
    if server.is_complete:
        assert RIGHT[first] == server.authorization_id
        assert _send(server, second), "a message after the end was taken"


def _send(server: PlainServer, message: bytes) -> bool:
    """Whether the message was refused."""
    try:
        answer = server.respond(message, 0)
    except AuthenticationError as error:
        _check_error(error)
        return True
    assert b"" == answer
    return False


def _check_error(error: AuthenticationError) -> None:
    """What the client learns is one of Kafka's texts; the others are for the log."""
    assert isinstance(error, CredentialsError) or str(error) in TOLD, error
