"""The client side of SASL authentication in Kafka's protocol, with re-authentication.

(Kafka: SaslClientAuthenticator; KIP-43, KIP-152, KIP-368.) The client first sends ApiVersions in
version 0, which all brokers can read. Brokers that support SaslAuthenticate use its response to
report the session lifetime, or why they reject the client. Older brokers are sent bare tokens after
a SaslHandshake of version 0. Before a session expires, the client re-authenticates on the same
connection, starting with the handshake; responses to earlier requests may arrive before the
handshake response.

The correlation ids come from a reserved range that no other request uses, so that they identify the
responses of the exchange (KAFKA-9854).
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
from ...net._principal import ANONYMOUS, Principal
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
"""The correlation ids of the exchange, used cyclically."""

NOT_FOR_SASL: Final = "the broker's listener does not use SASL"

# Responses before authentication are short (Kafka: sasl.server.max.receive.size).
FRAME_BYTES_MAX: Final = 524_288
# The share of the session lifetime after which the client re-authenticates, and its jitter.
_RENEWAL_SHARE: Final = 0.85
_RENEWAL_JITTER: Final = 0.10

_size = Struct(">i").pack
_correlation_id = Struct(">i").unpack_from
_CORRELATION_ID_BYTES: Final = 4


class _State(Enum):
    INITIAL = "nothing sent yet"
    VERSIONS = "waiting for the ApiVersions response"
    HANDSHAKE = "waiting for the SaslHandshake response"
    TOKENS = "waiting for the mechanism's next message"
    COMPLETE = "authenticated"
    FAILED = "failed"


class SaslClientAuthenticator:
    """The SASL exchange on a connection; a :class:`trionet.net._authenticator.Initiator`.

    Args:
        mechanism: the mechanism's name.
        begin_mechanism: creates the mechanism's client side.
        client_id: the client id in request headers.
        rng: the source of the re-authentication jitter.

    Attributes:
        renew_at: when the next request must wait for re-authentication, on the event loop's clock
            in seconds; ``math.inf`` for never.
    """

    def __init__(
        self,
        mechanism: str,
        begin_mechanism: Callable[[], SaslClient],
        client_id: str,
        rng: random.Random,
    ) -> None:
        self._mechanism = mechanism
        self._begin_mechanism = begin_mechanism
        self._client_id = client_id
        self._rng = rng
        self._state = _State.INITIAL
        self._client: SaslClient | None = None
        self._began_at = 0.0
        self._handshake = self._authenticate = _codec(api_keys.API_VERSIONS, 0)
        self._expected = self._handshake  # the codec of the next response
        self._last_correlation_id = RESERVED_IDS[-1]
        self.frame_bytes_max: int = FRAME_BYTES_MAX
        self.is_complete: bool = False
        self.is_reauthenticating: bool = False
        self.can_reauthenticate: bool = False
        self.principal: Principal = ANONYMOUS
        self.session_expires_at: float | None = None
        self.reauthentication_seconds: float = 0.0
        self.renew_at: float = math.inf

    @property
    def _has_headers(self) -> bool:
        return self._authenticate.api_key == api_keys.SASL_AUTHENTICATE

    # Requests.

    def begin(self, now: float) -> Step:
        """See :meth:`trionet.net._authenticator.Initiator.begin`."""
        self._began_at = now
        if self._state is _State.COMPLETE:
            self.is_complete = False
            self.is_reauthenticating = True
            return self._send_handshake()
        self._state = _State.VERSIONS
        return self._send(_codec(api_keys.API_VERSIONS, 0), ApiVersionsRequest())

    def _send_handshake(self) -> Step:
        self._state = _State.HANDSHAKE
        return self._send(self._handshake, SaslHandshakeRequest(mechanism=self._mechanism))

    def _send_token(self, token: bytes) -> Step:
        self._state = _State.TOKENS
        if self._has_headers:
            return self._send(self._authenticate, SaslAuthenticateRequest(auth_bytes=token))
        return Step(send=Send([_size(len(token)) + token]))

    def _send(self, codec: ApiVersionCodec, body: Message) -> Step:
        last = self._last_correlation_id
        correlation_id = RESERVED_IDS[0] if last == RESERVED_IDS[-1] else last + 1
        self._last_correlation_id = correlation_id
        self._expected = codec
        chunks: list[Chunk] = [encode_request_header(codec, correlation_id, self._client_id)]
        codec.encode_request(body, chunks)
        return Step(send=Send(cast(Any, frame(chunks))))

    # Responses.

    def gate(self, payload: Frame, now: float) -> Gate:  # noqa: ARG002 - the interface's signature
        """Accept every frame; outside the exchange, all frames are responses to requests."""
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
        """Handle the next frame; see :meth:`trionet.net._authenticator.Authenticator.receive`."""
        try:
            if self._state is _State.TOKENS and not self._has_headers:
                step = self._handle_challenge(bytes(payload), 0, now)
            else:
                step = self._handle(self._decode(payload), now)
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
                f"received a response to request {correlation_id}, expected {codec.name}"
                f" {self._last_correlation_id}"
            )
        return codec.decode_response(payload, position)

    def _handle(self, body: Any, now: float) -> Step:
        if self._state is _State.VERSIONS:
            return self._handle_versions(body)
        if self._state is _State.HANDSHAKE:
            return self._handle_handshake(body)
        return self._handle_token(body, now)

    def _handle_versions(self, body: ApiVersionsResponse) -> Step:
        if body.error_code:
            name = error_codes.name_of(body.error_code)
            return Step.failed(CloseReason.UNSUPPORTED_VERSION, f"ApiVersions failed: {name}")
        newest = {each.api_key: each.max_version for each in body.api_keys}
        if api_keys.SASL_HANDSHAKE not in newest:
            raise AuthenticationError("the broker does not support SASL")
        if api_keys.SASL_AUTHENTICATE in newest:
            self._handshake = _newest(api_keys.SASL_HANDSHAKE, newest)
            self._authenticate = _newest(api_keys.SASL_AUTHENTICATE, newest)
        else:
            self._handshake = _codec(api_keys.SASL_HANDSHAKE, 0)
        return self._send_handshake()

    def _handle_handshake(self, body: SaslHandshakeResponse) -> Step:
        code = body.error_code
        if code == error_codes.UNSUPPORTED_SASL_MECHANISM:
            raise AuthenticationError(
                f"sasl.mechanism = {self._mechanism!r} is not enabled on the broker; enabled:"
                f" {', '.join(body.mechanisms)}"
            )
        if code == error_codes.ILLEGAL_SASL_STATE:
            raise AuthenticationError(NOT_FOR_SASL)
        if code:
            raise AuthenticationError(f"SaslHandshake failed: {error_codes.name_of(code)}")
        self._client = self._begin_mechanism()
        return self._send_token(self._client.first())

    def _handle_token(self, body: SaslAuthenticateResponse, now: float) -> Step:
        if body.error_code:
            name = error_codes.name_of(body.error_code)
            raise AuthenticationError(f"SASL {self._mechanism}: {body.error_message or name}")
        return self._handle_challenge(bytes(body.auth_bytes), body.session_lifetime_ms, now)

    def _handle_challenge(self, challenge: bytes, session_ms: int, now: float) -> Step:
        """Pass the broker's message to the mechanism, and send the mechanism's response."""
        client = self._client
        assert client is not None
        response = client.respond(challenge)
        if not client.is_complete:
            return self._send_token(response)
        return self._finish(session_ms, now)

    def _finish(self, session_ms: int, now: float) -> Step:
        self._client = None
        self._state = _State.COMPLETE
        self.is_complete = True
        self.can_reauthenticate = self._has_headers
        share = _RENEWAL_SHARE + self._rng.random() * _RENEWAL_JITTER
        self.renew_at = now + share * session_ms / 1000 if session_ms > 0 else math.inf
        if not self.is_reauthenticating:
            return Step(Progress.AUTHENTICATED)
        self.is_reauthenticating = False
        self.reauthentication_seconds = now - self._began_at
        return Step(Progress.REAUTHENTICATED)


def _codec(api_key: int, version: int) -> ApiVersionCodec:
    codec = lookup(api_key, version)
    assert codec is not None
    return codec


def _newest(api_key: int, theirs: dict[int, int]) -> ApiVersionCodec:
    codec = lookup(api_key, min(theirs[api_key], schema_versions(api_key)[-1]))
    if codec is None:
        raise AuthenticationError(
            f"this client supports no version of {api_keys.name_of(api_key)} up to the broker's"
            f" newest, {theirs[api_key]}"
        )
    return codec
