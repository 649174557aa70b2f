"""Kafka's way of carrying SASL, from the client's side: versions, handshake, tokens, and once more.

(Kafka: SaslClientAuthenticator; KIP-43, KIP-152, KIP-368.) The broker is asked for its versions
first, in version 0, which all of them can read. One that knows SaslAuthenticate tells in it why it
refuses us, and how long a session lives; one that does not is sent bare tokens after a handshake of
version 0. Before a session ends the exchange is begun again on the same connection, with the
handshake; answers to earlier requests may come before that is answered.

Correlation ids are from a range of their own, which no other request takes: an answer of the
exchange is known by it (KAFKA-9854).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from enum import Enum
from struct import Struct
from typing import Any, Final, cast

from ...errors import AuthenticationError, WireFormatError
from ...net._authenticator import Gate, Progress, Step
from ...net._principal import ANONYMOUS
from ...net.sasl._mechanism import SaslClient
from ...net.wire._close_reason import CloseReason
from ...net.wire._framing import Frame
from ...net.wire._transmission import Send
from ...protocol import api_keys, error_codes
from ...protocol._codec import ApiVersionCodec, lookup, schema_versions
from ...protocol._header import decode_response_header, encode_request_header, frame
from ...protocol._wire import Chunk, Message
from ...protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ...protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ...protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

RESERVED_IDS: Final = range(2**31 - 8, 2**31)
"""The correlation ids of the exchange; it takes one after the other, and then the first again."""

NOT_FOR_SASL: Final = "the broker's listener is not one for SASL"

# What a broker says before it knows us is short (Kafka: sasl.server.max.receive.size).
FRAME_BYTES_MAX: Final = 524_288
# After what part of its life a session is renewed: from this, and so much later by chance.
_RENEWAL_SHARE: Final = 0.85
_RENEWAL_JITTER: Final = 0.10

_size = Struct(">i").pack
_correlation_id = Struct(">i").unpack_from
_CORRELATION_ID_BYTES: Final = 4


class _State(Enum):
    FIRST = "nothing was said"
    VERSIONS = "the answer to ApiVersions is awaited"
    HANDSHAKE = "the answer to SaslHandshake is awaited"
    TOKENS = "the mechanism's next message is awaited"
    COMPLETE = "the broker has let us in"
    FAILED = "nothing more"


class SaslClientExchange:
    """The exchange on one connection; see :class:`trionet.net._authenticator.Initiator`.

    Args:
        mechanism: its name.
        begin_mechanism: begins an authentication by it.
        client_id: what the client calls itself.
        chance: when exactly a session is renewed.

    Attributes:
        renew_at: from when on a request has to wait until we have authenticated once more, in
            seconds of the loop's clock; ``math.inf`` for never.
    """

    __slots__ = (
        "_authenticate",
        "_begin_mechanism",
        "_begun_at",
        "_chance",
        "_client",
        "_client_id",
        "_expected",
        "_handshake",
        "_last_correlation_id",
        "_mechanism",
        "_state",
        "can_reauthenticate",
        "frame_bytes_max",
        "is_complete",
        "is_reauthenticating",
        "principal",
        "reauthentication_seconds",
        "renew_at",
        "session_expires_at",
    )

    def __init__(
        self,
        mechanism: str,
        begin_mechanism: Callable[[], SaslClient],
        client_id: str,
        chance: random.Random,
    ) -> None:
        self._mechanism = mechanism
        self._begin_mechanism = begin_mechanism
        self._client_id = client_id
        self._chance = chance
        self._state = _State.FIRST
        self._client: SaslClient | None = None
        self._begun_at = 0.0
        self._handshake = self._authenticate = _codec(api_keys.API_VERSIONS, 0)
        self._expected = self._handshake  # of the request that is not answered yet
        self._last_correlation_id = RESERVED_IDS[-1]
        self.frame_bytes_max = FRAME_BYTES_MAX
        self.is_complete = self.is_reauthenticating = self.can_reauthenticate = False
        self.principal = ANONYMOUS
        self.session_expires_at: float | None = None
        self.reauthentication_seconds = 0.0
        self.renew_at = math.inf

    @property
    def _has_headers(self) -> bool:
        return self._authenticate.api_key == api_keys.SASL_AUTHENTICATE

    # What we say.

    def begin(self, now: float) -> Step:
        """See :meth:`trionet.net._authenticator.Initiator.begin`."""
        self._begun_at = now
        if self._state is _State.COMPLETE:
            self.is_complete = False
            self.is_reauthenticating = True
            return self._shake_hands()
        self._state = _State.VERSIONS
        return self._ask(_codec(api_keys.API_VERSIONS, 0), ApiVersionsRequest())

    def _shake_hands(self) -> Step:
        self._state = _State.HANDSHAKE
        return self._ask(self._handshake, SaslHandshakeRequest(mechanism=self._mechanism))

    def _say(self, token: bytes) -> Step:
        self._state = _State.TOKENS
        if self._has_headers:
            return self._ask(self._authenticate, SaslAuthenticateRequest(auth_bytes=token))
        return Step(send=Send([_size(len(token)) + token]))

    def _ask(self, codec: ApiVersionCodec, body: Message) -> Step:
        last = self._last_correlation_id
        correlation_id = RESERVED_IDS[0] if last == RESERVED_IDS[-1] else last + 1
        self._last_correlation_id = correlation_id
        self._expected = codec
        chunks: list[Chunk] = [encode_request_header(codec, correlation_id, self._client_id)]
        codec.encode_request(body, chunks)
        return Step(send=Send(cast(Any, frame(chunks))))

    # What comes.

    def gate(self, payload: Frame, now: float) -> Gate:  # noqa: ARG002 - answers come at any time
        """All that comes while nothing of the exchange is awaited answers requests."""
        return Gate.PASS

    def lets_pass(self, payload: Frame) -> bool:
        """See :meth:`trionet.net._authenticator.Initiator.lets_pass`."""
        if not self.is_reauthenticating or self._state is not _State.HANDSHAKE:
            return False
        if len(payload) < _CORRELATION_ID_BYTES:
            return False
        found: int = _correlation_id(payload)[0]
        return found not in RESERVED_IDS

    def receive(self, payload: Frame, now: float, now_ms: int) -> Step:  # noqa: ARG002 - no dates
        """Take the next frame; see :meth:`trionet.net._authenticator.Authenticator.receive`."""
        try:
            if self._state is _State.TOKENS and not self._has_headers:
                step = self._hear(bytes(payload), 0, now)
            else:
                step = self._take(self._decode(payload), now)
        except WireFormatError as error:
            step = Step.failed(CloseReason.INVALID_RECEIVE, str(error))
        except AuthenticationError as error:
            step = Step.failed(CloseReason.AUTHENTICATION_FAILED, str(error))
        if step.progress is Progress.FAILED:
            self._state = _State.FAILED
            self._client = None
        return step

    def _decode(self, payload: Frame) -> Any:
        codec = self._expected
        correlation_id, position = decode_response_header(codec, payload)
        if correlation_id != self._last_correlation_id:
            raise WireFormatError(
                f"the answer is to request {correlation_id}, where {codec.name}"
                f" {self._last_correlation_id} is awaited"
            )
        return codec.decode_response(payload, position)

    def _take(self, body: Any, now: float) -> Step:
        if self._state is _State.VERSIONS:
            return self._take_versions(body)
        if self._state is _State.HANDSHAKE:
            return self._take_handshake(body)
        return self._take_token(body, now)

    def _take_versions(self, body: ApiVersionsResponse) -> Step:
        if body.error_code:
            name = error_codes.name_of(body.error_code)
            return Step.failed(CloseReason.UNSUPPORTED_VERSION, f"ApiVersions is refused: {name}")
        newest = {each.api_key: each.max_version for each in body.api_keys}
        if api_keys.SASL_HANDSHAKE not in newest:
            raise AuthenticationError("the broker does not know SASL")
        if api_keys.SASL_AUTHENTICATE in newest:
            self._handshake = _newest(api_keys.SASL_HANDSHAKE, newest)
            self._authenticate = _newest(api_keys.SASL_AUTHENTICATE, newest)
        else:
            self._handshake = _codec(api_keys.SASL_HANDSHAKE, 0)
        return self._shake_hands()

    def _take_handshake(self, body: SaslHandshakeResponse) -> Step:
        code = body.error_code
        if code == error_codes.UNSUPPORTED_SASL_MECHANISM:
            raise AuthenticationError(
                f"the broker does not have sasl.mechanism = {self._mechanism!r} enabled; allowed:"
                f" {', '.join(body.mechanisms)}"
            )
        if code == error_codes.ILLEGAL_SASL_STATE:
            raise AuthenticationError(NOT_FOR_SASL)
        if code:
            raise AuthenticationError(f"SaslHandshake is refused: {error_codes.name_of(code)}")
        self._client = self._begin_mechanism()
        return self._say(self._client.first())

    def _take_token(self, body: SaslAuthenticateResponse, now: float) -> Step:
        if body.error_code:
            name = error_codes.name_of(body.error_code)
            raise AuthenticationError(f"SASL {self._mechanism}: {body.error_message or name}")
        return self._hear(bytes(body.auth_bytes), body.session_lifetime_ms, now)

    def _hear(self, challenge: bytes, session_ms: int, now: float) -> Step:
        """Let the mechanism take the broker's message."""
        client = self._client
        assert client is not None
        answer = client.respond(challenge)
        if not client.is_complete:
            return self._say(answer)
        return self._finish(session_ms, now)

    def _finish(self, session_ms: int, now: float) -> Step:
        self._client = None
        self._state = _State.COMPLETE
        self.is_complete = True
        self.can_reauthenticate = self._has_headers
        share = _RENEWAL_SHARE + self._chance.random() * _RENEWAL_JITTER
        self.renew_at = now + share * session_ms / 1000 if session_ms > 0 else math.inf
        if not self.is_reauthenticating:
            return Step(Progress.AUTHENTICATED)
        self.is_reauthenticating = False
        self.reauthentication_seconds = now - self._begun_at
        return Step(Progress.REAUTHENTICATED)


def _codec(api_key: int, version: int) -> ApiVersionCodec:
    codec = lookup(api_key, version)
    assert codec is not None
    return codec


def _newest(api_key: int, theirs: dict[int, int]) -> ApiVersionCodec:
    return _codec(api_key, min(theirs[api_key], schema_versions(api_key)[-1]))
