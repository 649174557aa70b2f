"""SASL/SCRAM: both messages of a client, of which only a right proof gets it in.

An input is the number of a mechanism and two messages. In the second, ``%N`` is the nonce
of the server, ``%C`` the client's own part of it, and ``%P`` the proof that a client would send.
"""

from __future__ import annotations

import base64
import hashlib

from fuzz.scram_proof import ITERATIONS, SALT, ScramUser, all_said, bare
from fuzz.script import SEPARATOR
from trionet.net.sasl._mechanism import CredentialsError
from trionet.net.sasl._scram import HASHES, ScramServer

WATCHED = ("trionet.net.sasl",)
WORDS = (
    *(b"n,,n=alice,r=abc", b"c=biws,r=%N,p=%P", b"c=biws,r=%C%N,p=%P", SEPARATOR, b"%N", b"%C"),
    *(b"%P", b"y,,", b"p=tls-unique,,", b"a=alice,", b"n=", b",r=", b"m=", b"=2C", b"=3D"),
    *(b",x=1", b"eSws", "ª".encode(), "\u200b".encode(), "\u0627".encode()),
    *("\u00ad".encode(), "bøb".encode()),
)
BYTES_MAX = 512

MECHANISMS = tuple(HASHES)
NAMES = ("alice", "bøb", "a,b=c")
USERS = {
    mechanism: {
        name: ScramUser(
            mechanism,
            hashlib.pbkdf2_hmac(HASHES[mechanism], name.encode(), SALT, ITERATIONS),
        )
        for name in NAMES
    }
    for mechanism in MECHANISMS
}
CREDENTIALS = {
    mechanism: {name: user.credential for name, user in users.items()}
    for mechanism, users in USERS.items()
}


def run(data: bytes) -> None:
    mechanism = MECHANISMS[data[0] % 2 if data else 0]
    server = ScramServer(mechanism, CREDENTIALS[mechanism].get)
    first, *others = data[1:].split(SEPARATOR, 2)[:2]
    try:
        server_first = _first(server, first)
        for message in others:
            final = _filled(message, server, first, server_first)
            answer = server.respond(final, 0)
            assert server.is_complete
            user = USERS[mechanism].get(server.authorization_id)
            _check(user, first, server_first, final, answer)
            _check_end(server, final)
    except CredentialsError as error:
        assert not server.is_complete
        str(error).encode()


def _first(server: ScramServer, first: bytes) -> bytes:
    answer = server.respond(first, 0)
    assert answer.startswith(b"r=" + _own_nonce(first)), answer
    assert not server.is_complete, "nobody has proved anything yet"
    return answer


def _check_end(server: ScramServer, final: bytes) -> None:
    """Nothing follows, not even the same once more."""
    try:
        server.respond(final, 0)
    except CredentialsError:
        return
    raise AssertionError("a message after the end was taken")


def _own_nonce(first: bytes) -> bytes:
    parts = bare(first).split(b",")
    return next((part[2:] for part in parts if part.startswith(b"r=")), b"")


def _filled(message: bytes, server: ScramServer, first: bytes, server_first: bytes) -> bytes:
    nonce = server_first.partition(b",")[0][2:]
    message = message.replace(b"%N", nonce).replace(b"%C", _own_nonce(first))
    user = USERS[server._mechanism].get(server.authorization_id)
    if user is None or b"%P" not in message:
        return message
    said = all_said(first, server_first, message.partition(b",p=")[0])
    return message.replace(b"%P", user.proof(said))


def _check(
    user: ScramUser | None, first: bytes, server_first: bytes, final: bytes, answer: bytes
) -> None:
    """Who gets in has proved to know the password, of this exchange, and is proved it in turn."""
    assert user is not None, "somebody unknown got in"
    without_proof, _, proof = final.rpartition(b",p=")
    said = all_said(first, server_first, without_proof)
    assert base64.b64decode(user.proof(said)) == base64.b64decode(proof)
    assert b"v=" + user.signature(said) == answer
    parts = dict(part.split(b"=", 1) for part in without_proof.split(b","))
    nonce = server_first.partition(b",")[0][2:]
    assert parts[b"r"] in (nonce, _own_nonce(first) + nonce)
    assert base64.b64decode(parts[b"c"]) == first[: -len(bare(first))]
