"""OAUTHBEARER tokens: when they are obtained and refreshed, and the requests to a token endpoint.

(Kafka: ExpiringCredentialRefreshingLogin; KIP-255.) Authentication uses the current token, and
never waits for a new one. A token comes from the user's function, from an OAuth server with the
client credentials grant (KIP-768; RFC 6749, 4.4; Kafka: ClientCredentialsJwtRetriever,
HttpJwtRetriever), or from a file that another program keeps up to date (FileJwtRetriever).
"""

from __future__ import annotations

import base64
import binascii
import inspect
import json
import random
import ssl
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote_plus, unquote, urlencode, urlsplit

import attrs
import trio

from ..._util._logging import get_logger
from ..._util.files._regular_file import read_regular_file
from ...errors import AuthenticationError, ConfigError, DisconnectedError, TrionetError
from ...net._network import Network
from ...net.sasl._oauthbearer import check_token
from ._settings import BearerToken, RefreshSettings, TokenEndpoint, TokenProvider

if TYPE_CHECKING:
    import h11


logger = get_logger("trionet.client")

# The wait after a provider has failed (Kafka: ExpiringCredentialRefreshingLogin).
RETRY_SECONDS: Final = 10.0


def refresh_at_ms(
    obtained_ms: int, expires_ms: int, refresh: RefreshSettings, rng: random.Random
) -> int:
    """Return the time at which to refresh a token, in ms since the epoch.

    Args:
        obtained_ms: when the token was obtained, in ms since the epoch.
        expires_ms: when the token expires, in ms since the epoch.
        refresh: the settings.
        rng: the source of the jitter.
    """
    share = refresh.window_factor + refresh.window_jitter * rng.random()
    wanted = obtained_ms + int((expires_ms - obtained_ms) * share)
    earliest = obtained_ms + int(refresh.min_period_seconds * 1000)
    latest = expires_ms - int(refresh.buffer_seconds * 1000)
    if earliest > latest:
        return wanted  # the lifetime is too short for both limits
    return min(max(wanted, earliest), latest)


def expiry_of(token: str) -> int | None:
    """Return the ``exp`` claim of a JSON Web Token in ms since the epoch; None if it has none.

    The token is not verified; only the broker can do that.
    """
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        return None
    return milliseconds(claims.get("exp")) if isinstance(claims, dict) else None


def milliseconds(seconds: Any) -> int | None:
    """Convert seconds (a string in some servers' responses) to ms; None if not a number."""
    try:
        return int(float(seconds) * 1000)
    except (TypeError, ValueError, OverflowError):
        return None


class TokenLogin:
    """The OAUTHBEARER login of a client: obtains and refreshes the token.

    Args:
        provider: returns a new token.
        refresh: when to refresh.
        network: provides the wall-clock time.
    """

    def __init__(self, provider: TokenProvider, refresh: RefreshSettings, network: Network) -> None:
        self._provider = provider
        self._refresh = refresh
        self._network = network
        self._token: BearerToken | None = None
        self._obtained_ms = 0

    @property
    def token(self) -> BearerToken:
        """The current token."""
        assert self._token is not None, "not logged in"
        return self._token

    async def log_in(self) -> None:
        """Obtain a new token from the provider.

        Raises:
            ConfigError: the provider returned an invalid or expired token, or no token.
            Exception: the provider raised it.

        Cancellation: a synchronous provider keeps running in its thread, and the token that it
        returns is discarded.
        """
        provided: object = await self._call_provider()
        token = BearerToken(provided) if isinstance(provided, str) else provided
        if not isinstance(token, BearerToken):
            kind = type(token).__name__
            raise ConfigError(
                f"the token provider returned a {kind}; expected a str or a BearerToken"
            )
        check_token(token.value, token.extensions)
        if token.expires_ms is None:
            token = attrs.evolve(token, expires_ms=expiry_of(token.value))
        now_ms = self._network.now_ms()
        if token.expires_ms is not None and token.expires_ms <= now_ms:
            raise ConfigError("the token provider returned a token that has already expired")
        self._token, self._obtained_ms = token, now_ms

    async def _call_provider(self) -> BearerToken | str:
        provider = self._provider
        if self._network.is_virtual or inspect.iscoroutinefunction(provider):
            await trio.lowlevel.checkpoint()
            provided = provider()
        else:
            provided = await trio.to_thread.run_sync(provider, abandon_on_cancel=True)
        return await provided if inspect.isawaitable(provided) else provided

    async def keep_token_fresh(self) -> None:
        """Refresh the token before each expiry until cancelled; return if a token never expires."""
        await trio.lowlevel.checkpoint()
        while (expires_ms := self.token.expires_ms) is not None:
            rng = self._network.rng
            at_ms = refresh_at_ms(self._obtained_ms, expires_ms, self._refresh, rng)
            await trio.sleep(max(0, at_ms - self._network.now_ms()) / 1000)
            await self._replace()

    async def _replace(self) -> None:
        while True:
            try:
                await self.log_in()
            except TrionetError as error:
                logger.warning("could not refresh the OAUTHBEARER token: %s", error)
            except Exception:  # boundary: a provider
                logger.exception("the OAUTHBEARER token provider failed")
            else:
                return
            await trio.sleep(RETRY_SECONDS)


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
        ConfigError: the file cannot be read.
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
    import h11

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
