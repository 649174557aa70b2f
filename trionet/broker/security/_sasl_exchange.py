"""SASL over Kafka's protocol: handshake, tokens and re-authentication.

(Kafka: SaslServerAuthenticator; KIP-43, KIP-152, KIP-368.) A client may first send ApiVersions. It
then selects a mechanism with SaslHandshake and sends its tokens: in SaslAuthenticate requests if
the version of SaslHandshake is 1, or in bare frames if it is 0. Any other request closes the
connection.

The states are ``FIRST`` (ApiVersions or handshake), ``HANDSHAKE`` (handshake only), ``TOKENS``,
``COMPLETE``, and ``FAILED``. A SaslHandshake in the state ``COMPLETE`` starts a re-authentication
in the state ``HANDSHAKE``, which must end with the same principal and mechanism.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from struct import Struct
from typing import Any, Final, cast

import attrs

from ...errors import AuthenticationError, WireFormatError
from ...net._authenticator import Gate, Progress, Step
from ...net._principal import ANONYMOUS, Principal
from ...net.sasl._mechanism import CredentialsError, Mechanism, SaslServer
from ...net.wire._close_reason import CloseReason
from ...net.wire._framing import Frame
from ...net.wire._transmission import Chunk, Send
from ...protocol import api_keys, error_codes
from ...protocol._codec import ApiVersionCodec, lookup
from ...protocol._header import decode_request_header, encode_response_header, frame, skip_tags
from ...protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ...protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ...protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from ...server._connection import SOFTWARE_CHARS_MAX

# The minimum interval between re-authentications; earlier handshakes are rejected (KIP-368).
REAUTHENTICATION_SECONDS_MIN = 1.0
# The first version of SaslAuthenticate that returns the session lifetime.
_FIRST_WITH_SESSIONS = 1

# The requests of an exchange have no arrays and, from Kafka clients, no tagged fields.
_ELEMENTS_MAX = 1000

# The oldest response version allows 32,767 bytes, and a character has at most four bytes.
_MESSAGE_CHARS_MAX = 8000

_size = Struct(">i").pack

_REJECTIONS: Final = {
    api_keys.API_VERSIONS: ApiVersionsResponse,
    api_keys.SASL_HANDSHAKE: SaslHandshakeResponse,
}

RespondToApiVersions = Callable[[ApiVersionsRequest | None, int], ApiVersionsResponse]
"""``(request, version) -> response``; the request is None if its version is not served."""


@attrs.frozen
class SaslSettings:
    """The SASL settings of a listener.

    Attributes:
        mechanisms: the enabled mechanisms by name, in the order in which they are advertised.
        session_ms: the maximum session lifetime by mechanism, in milliseconds
            (``connections.max.reauth.ms``). If it is 0 or missing, a session expires only when its
            credential does.
        frame_bytes_max: the maximum frame size until authentication completes
            (``sasl.server.max.receive.size``).
        failure_delay_seconds: the delay before the response to a failed authentication
            (``connection.failed.authentication.delay.ms``).
        failure_linger_seconds: how long the connection stays open after that response, unless the
            client closes it earlier.
    """

    mechanisms: Mapping[str, Mechanism] = attrs.field(repr=False)  # SCRAM's contain a secret
    session_ms: Mapping[str, int]
    frame_bytes_max: int = 65_536
    failure_delay_seconds: float = 0.1
    failure_linger_seconds: float = 0.0


class _State(Enum):
    FIRST = "SaslHandshake or ApiVersions"
    HANDSHAKE = "SaslHandshake"
    TOKENS = "SaslAuthenticate"
    COMPLETE = "requests"
    FAILED = "no request"


class _RequestHead:
    """A decoded request header, with methods to decode the request body and encode a response."""

    def __init__(self, payload: Frame) -> None:
        key, version, correlation_id, _, position = decode_request_header(payload)
        self.key = key
        self.version = version
        self.correlation_id = correlation_id
        self.codec = lookup(key, version)
        self.position = position

    def decode(self, payload: Frame, codec: ApiVersionCodec) -> Any:
        position = self.position
        if codec.request_header_version == 2:
            position = skip_tags(payload, position)
        return codec.decode_request(payload, position, _ELEMENTS_MAX)

    def encode(self, codec: ApiVersionCodec, message: Any) -> Send:
        chunks: list[Any] = [encode_response_header(codec, self.correlation_id)]
        codec.encode_response(message, chunks)
        return Send(cast("list[Chunk]", frame(chunks)))


@attrs.define(eq=False)
class SaslExchange:
    """The :class:`.Authenticator` of one connection.

    Args:
        settings: the SASL settings of the listener.
        respond_to_api_versions: returns the response to an ApiVersions request.
        make_principal: ``(mechanism, authorization id) -> principal``; raises AuthenticationError
            to reject the peer.

    Attributes:
        client_software: the software name and version in the client's ApiVersions request.
        mechanism: the mechanism that the last handshake selected; empty before the first one.
    """

    _settings: SaslSettings
    _respond_to_api_versions: RespondToApiVersions
    _make_principal: Callable[[str, str], Principal]
    frame_bytes_max: int = attrs.field(init=False)
    is_complete: bool = attrs.field(default=False, init=False)
    principal: Principal = attrs.field(default=ANONYMOUS, init=False)
    session_expires_at: float | None = attrs.field(default=None, init=False)
    can_reauthenticate: bool = attrs.field(default=False, init=False)
    reauthentication_seconds: float = attrs.field(default=0.0, init=False)
    client_software: tuple[str, str] = attrs.field(default=("", ""), init=False)
    mechanism: str = attrs.field(default="", init=False)
    _state: _State = attrs.field(default=_State.FIRST, init=False)
    _server: SaslServer | None = attrs.field(default=None, init=False)
    _has_headers: bool = attrs.field(default=False, init=False)
    # When the last re-authentication began.
    _begun_at: float | None = attrs.field(default=None, init=False)
    # The mechanism and the principal before a re-authentication, during it.
    _previous: tuple[str, Principal] | None = attrs.field(default=None, init=False)
    _is_mechanism_changed: bool = attrs.field(default=False, init=False)

    @frame_bytes_max.default
    def _frame_bytes_max(self) -> int:
        return self._settings.frame_bytes_max

    @property
    def is_reauthenticating(self) -> bool:
        """Whether a re-authentication is in progress or has failed."""
        return self._previous is not None

    def gate(self, payload: Frame, now: float) -> Gate:
        """Return how to handle a frame that is received after authentication."""
        is_handshake = (
            len(payload) > 1 and payload[0] == 0 and payload[1] == api_keys.SASL_HANDSHAKE
        )
        if is_handshake and (
            self._begun_at is None or now - self._begun_at >= REAUTHENTICATION_SECONDS_MIN
        ):
            return Gate.AUTHENTICATE
        if self.session_expires_at is not None and now > self.session_expires_at:
            return Gate.EXPIRED
        return Gate.PASS

    def receive(self, payload: Frame, now: float, now_ms: int) -> Step:
        """Process the next frame; see :meth:`.Authenticator.receive`."""
        if self._state is _State.COMPLETE:
            self._begin_again(now)
        try:
            if self._state is _State.TOKENS and not self._has_headers:
                step = self._receive_bare_token(bytes(payload), now, now_ms)
            else:
                step = self._receive_request(payload, now, now_ms)
        except WireFormatError as error:
            step = Step.failed(CloseReason.INVALID_REQUEST, str(error))
        if step.progress is Progress.FAILED:
            self._state = _State.FAILED
            self._server = None
        return step

    def _begin_again(self, now: float) -> None:
        """Start a re-authentication."""
        self._previous = (self.mechanism, self.principal)
        self._begun_at = now
        self._has_headers = False
        self._state = _State.HANDSHAKE
        self.is_complete = False

    def _receive_request(self, payload: Frame, now: float, now_ms: int) -> Step:
        head = _RequestHead(payload)
        key, state = head.key, self._state
        is_expected = (
            (key == api_keys.API_VERSIONS and state is _State.FIRST)
            or (key == api_keys.SASL_HANDSHAKE and state in (_State.FIRST, _State.HANDSHAKE))
            or (key == api_keys.SASL_AUTHENTICATE and state is _State.TOKENS)
        )
        if not is_expected:
            # Checked before the body is decoded, so that unauthenticated peers cannot use other
            # decoders.
            return self._failed(
                CloseReason.ILLEGAL_SASL_STATE,
                f"unexpected {api_keys.name_of(key)}, expected {state.value}",
                self._illegal_state(head),
            )
        if key == api_keys.API_VERSIONS:
            return self._receive_api_versions(head, payload)
        if head.codec is None:
            return Step.failed(
                CloseReason.UNSUPPORTED_VERSION,
                f"{api_keys.name_of(key)} version {head.version} is not served",
            )
        message = head.decode(payload, head.codec)
        if key == api_keys.SASL_HANDSHAKE:
            return self._receive_handshake(head, head.codec, message)
        return self._receive_token(head, head.codec, message, now, now_ms)

    def _illegal_state(self, head: _RequestHead) -> Send | None:
        """Return the response to a request that came in place of a token; None if there is none.

        Kafka responds to every API. Here only those do that a client may send before it is
        authenticated.
        """
        kind = _REJECTIONS.get(head.key)
        codec = head.codec
        if codec is None and head.key == api_keys.API_VERSIONS:
            codec = lookup(head.key, 0)  # every client can decode it (KIP-511)
        if self._state is not _State.TOKENS or kind is None or codec is None:
            return None
        return head.encode(codec, kind(error_code=error_codes.ILLEGAL_SASL_STATE))

    def _receive_api_versions(self, head: _RequestHead, payload: Frame) -> Step:
        codec = head.codec
        request: ApiVersionsRequest | None = None
        if codec is None:
            codec = lookup(api_keys.API_VERSIONS, 0)  # every client can decode it (KIP-511)
            assert codec is not None
        else:
            request = cast(ApiVersionsRequest, head.decode(payload, codec))
        response = self._respond_to_api_versions(request, head.version)
        if request is not None and response.error_code == error_codes.NONE:
            self.client_software = (
                request.client_software_name[:SOFTWARE_CHARS_MAX],
                request.client_software_version[:SOFTWARE_CHARS_MAX],
            )
            self._state = _State.HANDSHAKE
        return Step(send=head.encode(codec, response))

    def _receive_handshake(
        self, head: _RequestHead, codec: ApiVersionCodec, request: SaslHandshakeRequest
    ) -> Step:
        names = list(self._settings.mechanisms)
        begin = self._settings.mechanisms.get(request.mechanism)
        if begin is None:
            rejection = SaslHandshakeResponse(
                error_code=error_codes.UNSUPPORTED_SASL_MECHANISM, mechanisms=names
            )
            return self._failed(
                CloseReason.AUTHENTICATION_FAILED,
                f"unsupported SASL mechanism {request.mechanism!r}",
                head.encode(codec, rejection),
            )
        self._has_headers = head.version >= 1
        self._is_mechanism_changed = (
            self._previous is not None and self._previous[0] != request.mechanism
        )
        self.mechanism = request.mechanism
        self._server = begin()
        self._state = _State.TOKENS
        return Step(send=head.encode(codec, SaslHandshakeResponse(mechanisms=names)))

    def _receive_token(
        self,
        head: _RequestHead,
        codec: ApiVersionCodec,
        request: SaslAuthenticateRequest,
        now: float,
        now_ms: int,
    ) -> Step:
        try:
            server_token = self._evaluate(bytes(request.auth_bytes), now_ms)
        except AuthenticationError as error:
            response = SaslAuthenticateResponse(
                error_code=error_codes.SASL_AUTHENTICATION_FAILED,
                error_message=self._client_message(error),
            )
            send = head.encode(codec, response)
            return self._failed(CloseReason.AUTHENTICATION_FAILED, _detail(error), send)
        self.can_reauthenticate = head.version >= _FIRST_WITH_SESSIONS
        progress, session_ms = self._finish_if_complete(now, now_ms)
        response = SaslAuthenticateResponse(auth_bytes=server_token, session_lifetime_ms=session_ms)
        return Step(progress, head.encode(codec, response))

    def _receive_bare_token(self, token: bytes, now: float, now_ms: int) -> Step:
        try:
            server_token = self._evaluate(token, now_ms)
        except AuthenticationError as error:
            return self._failed(CloseReason.AUTHENTICATION_FAILED, _detail(error))
        self.can_reauthenticate = False
        progress, _ = self._finish_if_complete(now, now_ms)
        return Step(progress, Send([_size(len(server_token)) + server_token]))

    def _evaluate(self, token: bytes, now_ms: int) -> bytes:
        """Pass a token to the mechanism, check the resulting principal, and return the response.

        Raises:
            AuthenticationError: the mechanism rejects the token, or a re-authentication would
                change the principal or the mechanism.
        """
        previous, server = self._previous, self._server
        assert server is not None
        if self._is_mechanism_changed and previous is not None:
            raise AuthenticationError(
                f"SASL mechanism '{self.mechanism}' requested by client is not supported for"
                f" re-authentication of mechanism '{previous[0]}'"
            )
        server_token = server.respond(token, now_ms)
        if server.is_complete:
            try:
                principal = self._make_principal(self.mechanism, server.authorization_id)
            except AuthenticationError as error:
                raise CredentialsError(str(error)) from error
            except Exception as error:  # boundary: user code; a failure rejects the peer
                name = type(error).__name__
                raise CredentialsError(f"the principal builder failed with {name}") from error
            if previous is not None and principal != previous[1]:
                raise AuthenticationError(
                    "Cannot change principals during re-authentication from"
                    f" {previous[1].type}.{previous[1].name}: {principal.type}.{principal.name}"
                )
            self.principal = principal
        return server_token

    def _finish_if_complete(self, now: float, now_ms: int) -> tuple[Progress, int]:
        """Return the progress after a valid token, and the session lifetime in ms."""
        server = self._server
        assert server is not None
        if not server.is_complete:
            return Progress.GOES_ON, 0
        lives = []
        if server.expires_ms is not None:
            lives.append(max(0, server.expires_ms - now_ms))
        longest_ms = self._settings.session_ms.get(self.mechanism, 0)
        if longest_ms > 0:
            lives.append(longest_ms)
        session_ms = min(lives, default=0)
        self.session_expires_at = now + session_ms / 1000 if lives else None
        self._server = None
        self._state = _State.COMPLETE
        self.is_complete = True
        if self._previous is None:
            return Progress.AUTHENTICATED, session_ms
        self._previous = None
        assert self._begun_at is not None
        self.reauthentication_seconds = now - self._begun_at
        return Progress.REAUTHENTICATED, session_ms

    def _client_message(self, error: AuthenticationError) -> str:
        """Return a short error message for the client, which does not reveal credentials."""
        if not isinstance(error, CredentialsError):
            return str(error)[:_MESSAGE_CHARS_MAX].encode("utf-8", "replace").decode()
        during = "authentication" if self._previous is None else "re-authentication"
        return (
            f"Authentication failed during {during} due to invalid credentials with SASL mechanism"
            f" {self.mechanism}"
        )

    def _failed(self, reason: CloseReason, detail: str, send: Send | None = None) -> Step:
        delay, linger = self._settings.failure_delay_seconds, self._settings.failure_linger_seconds
        return Step.failed(reason, detail, send=send, delay_seconds=delay, linger_seconds=linger)


def _detail(error: AuthenticationError) -> str:
    return f"{error} ({error.__cause__})" if error.__cause__ is not None else str(error)
