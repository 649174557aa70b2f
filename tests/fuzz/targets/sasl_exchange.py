"""Kafka's SASL exchange: frames in any order before, during and after an authentication.

An input is a list of steps, each a number, the length of its argument, and the argument.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from fuzz.issuer import CLAIMS, HEADER, KEY_SET, NOW, NOW_MS, token
from fuzz.scram_proof import ITERATIONS, SALT, ScramUser
from fuzz.script import Script
from support.sasl import api_versions, handshake, respond_to_api_versions
from support.sasl import token as token_request
from trionet.broker.security._sasl_exchange import SaslExchange, SaslSettings, _State
from trionet.errors import AuthenticationError
from trionet.net._authenticator import Gate, Progress, Step
from trionet.net._principal import ANONYMOUS, USER, Principal
from trionet.net.sasl._jwt import KeySet, SignedTokens, TokenRules
from trionet.net.sasl._oauthbearer import OAuthBearerServer
from trionet.net.sasl._plain import PlainServer, verify_with
from trionet.net.sasl._scram import ScramServer
from trionet.protocol import api_keys
from trionet.protocol._codec import lookup
from trionet.protocol._header import decode_response_header

WATCHED = (
    "trionet.broker.security._sasl_exchange",
    "trionet.net.sasl",
    "trionet.protocol._header",
    "trionet.protocol.messages.api_versions",
    "trionet.protocol.messages.sasl_authenticate",
    "trionet.protocol.messages.sasl_handshake",
    "trionet.protocol._wire",
)
WORDS = (
    *(handshake("PLAIN"), handshake("SCRAM-SHA-256", 0), token_request(b"x"), api_versions()),
    *(b"\0\x11", b"\0\x12\0\3", b"\0\x24\0\2", b"\0\x03\0\1", b"PLAIN"),
    *(b"OAUTHBEARER", b"n,,n=alice,r=x"),
)
BYTES_MAX = 512
STEPS_MAX = 40

NAMES = ("alice", "bob", "refused")
# Nobody guesses them: who gets in was given one by a step that says so.
PASSWORDS = {name: hashlib.sha256(name.encode()).hexdigest() for name in NAMES}
SCRAM_USERS = {
    name: ScramUser(
        "SCRAM-SHA-256", hashlib.pbkdf2_hmac("sha256", password.encode(), SALT, ITERATIONS)
    )
    for name, password in PASSWORDS.items()
}
_CREDENTIALS = {name: user.credential for name, user in SCRAM_USERS.items()}
_find = KeySet.parse(KEY_SET).find
SETTINGS = SaslSettings(
    {
        "PLAIN": lambda: PlainServer(verify_with(PASSWORDS)),
        "SCRAM-SHA-256": lambda: ScramServer("SCRAM-SHA-256", _CREDENTIALS.get),
        "OAUTHBEARER": lambda: OAuthBearerServer(SignedTokens(_find, TokenRules())),
    },
    session_ms={"PLAIN": 5000},
)
MECHANISMS = (*SETTINGS.mechanisms, "GSSAPI")
FIRST = b"n,,n=%b,r=own"


def run(data: bytes) -> None:
    script = Script(data)
    peer = Peer()
    for _ in range(STEPS_MAX):
        if script.is_over:
            break
        step = STEPS[script.byte() % len(STEPS)]
        step(peer, script.take(script.byte()))


class Peer:
    """A client that does what its steps say, and what no server may do then."""

    def __init__(self) -> None:
        self.exchange = SaslExchange(SETTINGS, respond_to_api_versions, _make_principal)
        self.now = 100.0
        self.offered: set[str] = set()  # whose secret the server was shown
        self.last_frame = b""
        self.last_answer = b""  # as far as it is one of a mechanism
        self.principal = ANONYMOUS

    # Steps.

    def raw(self, argument: bytes) -> None:
        self._send(argument)

    def api_versions(self, argument: bytes) -> None:
        script = Script(argument)
        version = script.byte() % 5
        self._send(api_versions(version, script.rest().decode("ascii", "replace")))

    def handshake(self, argument: bytes) -> None:
        script = Script(argument)
        mechanism = MECHANISMS[script.byte() % len(MECHANISMS)]
        self._send(handshake(mechanism, script.byte() % 2))

    def token(self, argument: bytes) -> None:
        self._send_token(argument)

    def plain(self, argument: bytes) -> None:
        script = Script(argument)
        name = NAMES[script.byte() % len(NAMES)]
        self.offered.add(name)
        authorization_id = script.rest().decode("utf-8", "replace")
        self._send_token(f"{authorization_id}\0{name}\0{PASSWORDS[name]}".encode())

    def scram_first(self, argument: bytes) -> None:
        self._send_token(FIRST % _name(argument).encode())

    def scram_final(self, argument: bytes) -> None:
        name = _name(argument)
        self.offered.add(name)
        first = FIRST % name.encode()
        self._send_token(SCRAM_USERS[name].final(first, self.last_answer))

    def bearer(self, argument: bytes) -> None:
        script = Script(argument)
        name = _name(script.take(1))
        self.offered.add(name)
        seconds = script.byte()
        claims = json.dumps({**json.loads(CLAIMS), "sub": name, "exp": NOW + seconds})
        signed = token(HEADER, claims.encode()).encode()
        # An odd number of seconds makes the authorization id a long one.
        authorization_id = script.rest() * (1 if seconds % 2 == 0 else 20_000)
        self._send_token(b"n,%b,\x01auth=Bearer %b\x01\x01" % (authorization_id, signed))

    def acknowledge(self, _: bytes) -> None:
        self._send_token(b"\x01")

    def again_changed(self, argument: bytes) -> None:
        """The last frame with other bytes in one place."""
        script = Script(argument)
        position, count = script.byte(), script.byte()
        frame = self.last_frame
        self._send(frame[:position] + script.rest() + frame[position + count :])

    def wait(self, argument: bytes) -> None:
        self.now += Script(argument).byte() / 10

    # What follows from them.

    def _send_token(self, data: bytes) -> None:
        data = data[: SETTINGS.frame_bytes_max // 2]
        is_bare = self._awaits_bare_token()
        self._send(data if is_bare else token_request(data, len(data) % 3))

    def _awaits_bare_token(self) -> bool:
        return self.exchange._state is _State.TOKENS and not self.exchange._has_headers

    def _send(self, frame: bytes) -> None:
        exchange = self.exchange
        if exchange.is_complete and exchange.gate(frame, self.now) is not Gate.AUTHENTICATE:
            return  # a request, or the end of the session: nothing for the exchange
        has_failed = exchange._state is _State.FAILED
        is_bare = self._awaits_bare_token()
        now_ms = NOW_MS + int((self.now - 100) * 1000)
        step = exchange.receive(frame, self.now, now_ms)
        self.last_frame = frame
        self.last_answer = _check_answer(step, frame, is_bare=is_bare)
        assert not has_failed or step.progress is Progress.FAILED, "failed, and then not"
        self._check(step)

    def _check(self, step: Step) -> None:
        exchange = self.exchange
        is_in = step.progress in (Progress.AUTHENTICATED, Progress.REAUTHENTICATED)
        assert is_in == exchange.is_complete
        assert (step.close_reason is not None) == (step.progress is Progress.FAILED)
        assert is_in or self.principal == exchange.principal
        if is_in:
            principal = exchange.principal
            assert principal.name in self.offered, "somebody got in without a secret"
            assert principal.name != "refused"
            assert self.principal in (ANONYMOUS, principal), "a peer became somebody else"
            is_again = step.progress is Progress.REAUTHENTICATED
            assert is_again == (self.principal is not ANONYMOUS)
            expires_at = exchange.session_expires_at
            assert expires_at is None or expires_at >= self.now
            self.principal = principal


def _name(argument: bytes) -> str:
    return NAMES[Script(argument).byte() % len(NAMES)]


def _make_principal(_: str, name: str) -> Principal:
    if name == "refused":
        raise AuthenticationError("a reason that nobody outside learns")
    return Principal(USER, name)


def _check_answer(step: Step, frame: bytes, *, is_bare: bool) -> bytes:
    """A response is a whole frame, of the request's kind; what the mechanism says in it."""
    str(step.detail).encode()
    if step.send is None:
        return b""
    answer = b"".join(map(bytes, step.send._chunks))  # type: ignore[arg-type]
    size, body = int.from_bytes(answer[:4], "big"), answer[4:]
    assert size == len(body)
    for secret in (*PASSWORDS.values(), "a reason that nobody outside learns"):
        assert secret.encode() not in answer, "an answer tells a secret"
    if is_bare:
        return body
    key, version = int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big")
    codec = lookup(key, version) or lookup(api_keys.API_VERSIONS, 0)
    assert codec is not None
    correlation_id, position = decode_response_header(codec, body)
    assert frame[4:8] == correlation_id.to_bytes(4, "big", signed=True)
    response: Any = codec.decode_response(body, position)
    return bytes(getattr(response, "auth_bytes", b""))


STEPS = (
    Peer.raw,
    Peer.api_versions,
    Peer.handshake,
    Peer.token,
    Peer.plain,
    Peer.scram_first,
    Peer.scram_final,
    Peer.bearer,
    Peer.acknowledge,
    Peer.again_changed,
    Peer.wait,
)
