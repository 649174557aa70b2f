"""Retrieval of tokens from an OAuth server with the client credentials grant, or from a file.

(KIP-768; RFC 6749, 4.4. Kafka: ClientCredentialsJwtRetriever, HttpJwtRetriever, FileJwtRetriever.)
The file must be kept up to date by another program.
"""

from __future__ import annotations

import base64
import json
import ssl
from typing import TYPE_CHECKING, Final
from urllib.parse import quote_plus, unquote, urlencode, urlsplit

import trio

from ..._util._regular_file import read_regular_file
from ...errors import AuthenticationError, ConfigError, DisconnectedError
from ...net._network import Network
from ._login import expiry_of, milliseconds
from ._settings import BearerToken, TokenEndpoint

if TYPE_CHECKING:
    import h11

RESPONSE_BYTES_MAX: Final = 1_000_000
"""The maximum size of a response (Kafka: HttpJwtRetriever.MAX_RESPONSE_BODY_LENGTH)."""

_READ_BYTES: Final = 65_536
_WORDS_MAX: Final = 200
_PORTS: Final = {"http": 80, "https": 443}
# Client errors that are worth a retry; Kafka's list is longer.
_RETRIABLE_STATUS: Final = frozenset({408, 425, 429})


async def fetch_token(endpoint: TokenEndpoint, network: Network) -> BearerToken:
    """Fetch a new token.

    Transient failures are retried with backoff, for at most ``endpoint.retry.seconds_max``.

    Args:
        endpoint: the OAuth server (KIP-768), or a file, which has a ``file`` URL.
        network: provides the wall-clock time and the jitter of the backoff.

    Raises:
        AuthenticationError: the server rejected the credentials, or its response is too large or
            contains no token.
        ConfigError: the file cannot be read, or h11 is not installed.
        DisconnectedError: the server could not be reached, did not respond in time, or kept
            responding with an error that may be temporary.

    Cancellation: the server may already have issued a token.
    """
    if urlsplit(endpoint.url).scheme == "file":
        return BearerToken(await _from_file(endpoint.url), extensions=endpoint.extensions)
    began_at = trio.current_time()
    failures = 0
    while True:
        try:
            status, body = await _request(endpoint)
            if status < 500 and status not in _RETRIABLE_STATUS:
                return _token(endpoint, status, body, network.now_ms())
            error = _unreachable(endpoint, f"status {status}")
        except (OSError, trio.BrokenResourceError, trio.TooSlowError) as failure:
            error = _unreachable(
                endpoint, str(failure) or str(failure.__cause__ or "") or "timed out"
            )
        failures += 1
        wait = endpoint.retry.seconds(failures, network.rng)
        if trio.current_time() + wait - began_at > endpoint.retry.seconds_max:
            raise error
        await trio.sleep(wait)


def _unreachable(endpoint: TokenEndpoint, why: str) -> DisconnectedError:
    return DisconnectedError(f"could not get a token from {endpoint.url}: {why}")


async def _from_file(url: str) -> str:
    path = unquote(urlsplit(url).path)
    try:
        data = await trio.to_thread.run_sync(
            read_regular_file, path, RESPONSE_BYTES_MAX, abandon_on_cancel=True
        )
        return data.decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(
            f"sasl.oauthbearer.token.endpoint.url: cannot read {path}: {reason}"
        ) from error


async def _request(endpoint: TokenEndpoint) -> tuple[int, bytes]:
    """Send the token request, and return the status and body of the response."""
    url = urlsplit(endpoint.url)
    host, port = url.hostname or "", url.port or _PORTS[url.scheme]
    stream: trio.abc.Stream
    with trio.fail_after(endpoint.connect_timeout_seconds):
        if url.scheme == "https":
            context = await trio.to_thread.run_sync(
                ssl.create_default_context, abandon_on_cancel=True
            )
            secured = await trio.open_ssl_over_tcp_stream(
                host, port, https_compatible=True, ssl_context=context
            )
            stream = secured
            try:
                await secured.do_handshake()
            except BaseException:
                await trio.aclose_forcefully(secured)
                raise
        else:
            stream = await trio.open_tcp_stream(host, port)
    async with stream:
        with trio.fail_after(endpoint.read_timeout_seconds):
            return await _exchange(stream, endpoint)


async def _exchange(stream: trio.abc.Stream, endpoint: TokenEndpoint) -> tuple[int, bytes]:
    try:
        import h11
    except ImportError:
        raise ConfigError(
            "sasl.oauthbearer.token.endpoint.url requires h11; run: pip install 'trionet[sasl]'"
        ) from None
    connection = h11.Connection(h11.CLIENT)
    head, body = _encode(endpoint)
    for event in (head, h11.Data(data=body), h11.EndOfMessage()):
        await stream.send_all(connection.send(event) or b"")
    status, response = 0, bytearray()
    received = connection.next_event()
    try:
        while not isinstance(received, (h11.EndOfMessage, h11.ConnectionClosed)):
            if received is h11.NEED_DATA:
                connection.receive_data(bytes(await stream.receive_some(_READ_BYTES)))
            elif isinstance(received, h11.Response):
                status = received.status_code
            elif isinstance(received, h11.Data):
                response += received.data
                if len(response) > RESPONSE_BYTES_MAX:
                    raise AuthenticationError(
                        f"the response of the token endpoint {endpoint.url} exceeds"
                        f" {RESPONSE_BYTES_MAX} bytes"
                    )
            received = connection.next_event()
    except h11.RemoteProtocolError as error:
        raise trio.BrokenResourceError(f"not an HTTP response: {error}") from error
    return status, bytes(response)


def _encode(endpoint: TokenEndpoint) -> tuple[h11.Request, bytes]:
    import h11

    url = urlsplit(endpoint.url)
    form = {"grant_type": "client_credentials"}
    if endpoint.scope:
        form["scope"] = endpoint.scope
    body = urlencode(form).encode()
    name, secret = endpoint.client_id, endpoint.client_secret
    if endpoint.has_encoded_header:
        name, secret = quote_plus(name), quote_plus(secret)
    credentials = base64.b64encode(f"{name}:{secret}".encode()).decode()
    headers = [
        ("Host", url.netloc.rpartition("@")[2]),
        ("Accept", "application/json"),
        ("Authorization", f"Basic {credentials}"),
        ("Cache-Control", "no-cache"),
        ("Connection", "close"),
        ("Content-Type", "application/x-www-form-urlencoded"),
        ("Content-Length", str(len(body))),
    ]
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    return h11.Request(method="POST", target=target, headers=headers), body


def _token(endpoint: TokenEndpoint, status: int, body: bytes, now_ms: int) -> BearerToken:
    """Return the token of a response (RFC 6749, 5.1), or raise the reported error (5.2)."""
    try:
        response = json.loads(body)
    except (ValueError, RecursionError):
        response = None
    fields = response if isinstance(response, dict) else {}
    token = fields.get("access_token") or fields.get("id_token")
    if status != 200 or not isinstance(token, str):
        words = ": ".join(
            str(fields[key]) for key in ("error", "error_description") if key in fields
        )
        raise AuthenticationError(
            f"the token endpoint {endpoint.url} returned no token: status {status}"
            f" {words[:_WORDS_MAX]}".rstrip()
        )
    expires_ms = expiry_of(token)
    if expires_ms is None:
        life_ms = milliseconds(fields.get("expires_in"))
        expires_ms = None if life_ms is None else now_ms + life_ms
    return BearerToken(token, expires_ms, endpoint.extensions)
