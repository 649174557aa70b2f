"""A Kafka client's side of SASL: its requests, and what it reads in the responses."""

from __future__ import annotations

from typing import Any, cast

from scramp import ScramClient

from support.tokens import RSA_KEY, jwk, key_set
from trionet.broker.security._sasl_exchange import SaslExchange, SaslSettings
from trionet.net._authenticator import Progress, Step
from trionet.net._principal import USER, Principal
from trionet.net.sasl._jwt import KeySet, SignedTokens, TokenRules
from trionet.net.sasl._oauthbearer import OAuthBearerServer
from trionet.net.sasl._plain import PlainServer, verify_with
from trionet.net.sasl._scram import ScramServer, salted
from trionet.protocol import api_keys, error_codes
from trionet.protocol._codec import lookup
from trionet.protocol._header import decode_response_header, encode_request_header
from trionet.protocol._wire import Chunk
from trionet.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from trionet.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from trionet.protocol.messages.sasl_handshake import SaslHandshakeRequest

CORRELATION_ID = 7


def request(key: int, version: int, message: Any) -> bytes:
    """A request without its size prefix."""
    codec = lookup(key, version)
    assert codec is not None
    chunks: list[Chunk] = []
    codec.encode_request(message, chunks)
    body = b"".join(cast("list[bytes]", chunks))
    return encode_request_header(codec, CORRELATION_ID, "client") + body


def handshake(mechanism: str, version: int = 1) -> bytes:
    return request(api_keys.SASL_HANDSHAKE, version, SaslHandshakeRequest(mechanism=mechanism))


def token(data: bytes, version: int = 2) -> bytes:
    message = SaslAuthenticateRequest(auth_bytes=data)
    return request(api_keys.SASL_AUTHENTICATE, version, message)


def api_versions(version: int = 3, name: str = "client", software_version: str = "1.0") -> bytes:
    message = ApiVersionsRequest()
    if version >= 3:
        message.client_software_name = name
        message.client_software_version = software_version
    return request(api_keys.API_VERSIONS, version, message)


def sent(step: Step) -> bytes:
    """What a step sends, without the size prefix; empty for nothing."""
    if step.send is None:
        return b""
    data = b"".join(step.send._chunks)  # type: ignore[arg-type]
    assert len(data) - 4 == int.from_bytes(data[:4], "big")
    return data[4:]


def response(step: Step, key: int, version: int) -> Any:
    """The response that a step sends."""
    return decoded(sent(step), key, version)


def decoded(data: bytes, key: int, version: int) -> Any:
    """A response without its size prefix."""
    codec = lookup(key, version)
    assert codec is not None
    correlation_id, position = decode_response_header(codec, data)
    assert CORRELATION_ID == correlation_id
    return codec.decode_response(data, position)


def plain(name: str, password: str) -> bytes:
    return f"\0{name}\0{password}".encode()


def scram(mechanism: str, name: str, password: str) -> Any:
    """The library's client."""
    return ScramClient([mechanism], name, password)


NOW_MS = 1_700_000_000_000
PASSWORDS = {"alice": "secret", "bob": "hunter2"}
ODD_NAME = "a,l=ice ø"
CREDENTIALS = {name: salted("SCRAM-SHA-256", "secret") for name in ("alice", ODD_NAME)}
CREDENTIALS_512 = {"alice": salted("SCRAM-SHA-512", "secret")}
RANGES = [ApiVersion(api_key=18, min_version=0, max_version=4)]


def respond_to_api_versions(asked: ApiVersionsRequest | None, version: int) -> ApiVersionsResponse:
    if asked is None:
        return ApiVersionsResponse(error_code=error_codes.UNSUPPORTED_VERSION, api_keys=RANGES)
    if version >= 3 and not asked.client_software_name.isalnum():
        return ApiVersionsResponse(error_code=error_codes.INVALID_REQUEST)
    return ApiVersionsResponse(api_keys=RANGES)


def settings(**changes: Any) -> SaslSettings:
    keys = KeySet.parse(key_set(jwk(RSA_KEY, kid="rsa")))
    given: dict[str, Any] = {
        "mechanisms": {
            "PLAIN": lambda: PlainServer(verify_with(PASSWORDS)),
            "SCRAM-SHA-256": lambda: ScramServer("SCRAM-SHA-256", CREDENTIALS.get),
            "OAUTHBEARER": lambda: OAuthBearerServer(SignedTokens(keys.find, TokenRules())),
        },
        "session_ms": {},
        "failure_delay_seconds": 0.25,
    }
    return SaslSettings(**{**given, **changes})


def exchange(**changes: Any) -> SaslExchange:
    return SaslExchange(
        settings(**changes), respond_to_api_versions, lambda _, name: Principal(USER, name)
    )


def step(begun: SaslExchange, payload: bytes, now: float = 100.0) -> Step:
    return begun.receive(payload, now, NOW_MS)


def authenticated(*, now: float = 100.0, **changes: Any) -> SaslExchange:
    """After a handshake and PLAIN as alice."""
    begun = exchange(**changes)
    step(begun, handshake("PLAIN"), now)
    assert Progress.AUTHENTICATED is step(begun, token(plain("alice", "secret")), now).progress
    return begun
