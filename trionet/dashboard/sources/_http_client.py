"""A minimal HTTP/1.1 client for metrics listeners, with one persistent connection."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import urlsplit

import trio

from ...errors import ConfigError, TrionetError

if TYPE_CHECKING:
    import h11

#: The time limit for connecting and reading a response, in seconds.
RESPONSE_SECONDS_MAX: Final = 10.0
#: The maximum size of a response in bytes.
RESPONSE_BYTES_MAX: Final = 64 * 1024 * 1024
_READ_BYTES: Final = 64 * 1024
#: The number of chunks of a response to decode before other tasks run: there may be 10,000 of a
#: byte in one read.
_CHUNKS_PER_STEP: Final = 100


class HttpError(TrionetError):
    """Raised when no response arrives in time, or the response is invalid or too large."""


class ResponseTooLargeError(HttpError):
    """Raised when a response exceeds the requested maximum."""


class HttpClient:
    """An HTTP client that sends requests without a body, one at a time.

    Args:
        url: the server, as ``http://HOST:PORT`` or ``https://HOST:PORT``.
        token: the bearer token to send; None to send no token.
        tls: the TLS context for https; by default, the system's certificate authorities are
            trusted.
        connect: opens a connection to the server, instead of one to the host of ``url``.

    Raises:
        ConfigError: the URL or the token is invalid.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        tls: ssl.SSLContext | None = None,
        connect: Callable[[], Awaitable[trio.abc.Stream]] | None = None,
    ) -> None:
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = None
        if parts.scheme not in ("http", "https") or not parts.hostname or port is None:
            raise ConfigError(
                f"invalid metrics listener URL {url!r}: expected http://HOST:PORT or"
                " https://HOST:PORT"
            )
        self.url = url
        self._host, self._port = parts.hostname, port
        self._tls = None
        if parts.scheme == "https":
            self._tls = tls or ssl.create_default_context()
        self._headers = [("Host", parts.netloc.rpartition("@")[2])]
        if token is not None:
            if not token or not (token.isascii() and token.isprintable()):
                raise ConfigError(
                    "invalid metrics listener token: expected printable ASCII characters"
                )
            self._headers.append(("Authorization", f"Bearer {token}"))
        self._open = self._connect if connect is None else connect
        self._stream: trio.abc.Stream | None = None
        self._connection: h11.Connection | None = None
        self._lock = trio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        type: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connection."""
        stream, self._stream = self._stream, None
        if stream is None:
            await trio.lowlevel.checkpoint()
        else:
            await trio.aclose_forcefully(stream)

    async def request(
        self, method: str, target: str, bytes_max: int = RESPONSE_BYTES_MAX
    ) -> tuple[int, bytes]:
        """Send a request, and return the status and the body of the response.

        Args:
            method: the HTTP method.
            target: the path and the query.
            bytes_max: the maximum size of the body in bytes.

        Raises:
            ResponseTooLargeError: the body exceeds ``bytes_max``.
            HttpError: no response arrived in time, or the response is invalid.
            OSError: the server could not be reached.

        Cancellation: the connection is closed. The server may have processed the request.
        """
        async with self._lock:
            is_done = False
            try:
                with trio.fail_after(RESPONSE_SECONDS_MAX):
                    found = await self._exchange(method, target, bytes_max)
                is_done = True
                return found
            except trio.TooSlowError:
                raise HttpError(f"no response within {RESPONSE_SECONDS_MAX:g} s") from None
            finally:
                if not is_done:
                    await self.aclose()

    async def _exchange(self, method: str, target: str, bytes_max: int) -> tuple[int, bytes]:
        was_open = self._stream is not None
        try:
            return await self._send(method, target, bytes_max)
        except (trio.BrokenResourceError, EOFError) as error:
            await self.aclose()
            # Servers close connections that were idle for a while; then a new one is opened.
            if not was_open:
                raise HttpError(f"connection closed: {error.__cause__ or error}") from error
        try:
            return await self._send(method, target, bytes_max)
        except (trio.BrokenResourceError, EOFError) as error:
            raise HttpError(f"connection closed: {error.__cause__ or error}") from error

    async def _send(self, method: str, target: str, bytes_max: int) -> tuple[int, bytes]:
        import h11  # loaded with the first request, not before the first frame

        if self._stream is None:
            self._stream = await self._open()
            self._connection = h11.Connection(h11.CLIENT)
        stream, connection = self._stream, self._connection
        assert connection is not None
        request = h11.Request(method=method, target=target, headers=self._headers)
        await stream.send_all(
            (connection.send(request) or b"") + (connection.send(h11.EndOfMessage()) or b"")
        )
        status, body, chunks = 0, bytearray(), 0
        try:
            while True:
                event = connection.next_event()
                if event is h11.NEED_DATA:
                    connection.receive_data(bytes(await stream.receive_some(_READ_BYTES)))
                elif isinstance(event, h11.Response):
                    status = event.status_code
                elif isinstance(event, h11.Data):
                    body += event.data
                    if len(body) > bytes_max:
                        raise ResponseTooLargeError(f"response exceeds {bytes_max} bytes")
                    chunks += 1
                    if chunks % _CHUNKS_PER_STEP == 0:
                        await trio.lowlevel.checkpoint()
                elif isinstance(event, h11.EndOfMessage):
                    break
                else:
                    raise EOFError("closed by the server")
        except h11.RemoteProtocolError as error:
            if status == 0 and not body:
                raise EOFError(str(error)) from error
            raise HttpError(f"not an HTTP response: {error}") from error
        if connection.our_state is h11.DONE and connection.their_state is h11.DONE:
            connection.start_next_cycle()
        else:
            await self.aclose()
        return status, bytes(body)

    async def _connect(self) -> trio.abc.Stream:
        stream = await trio.open_tcp_stream(self._host, self._port)
        if self._tls is None:
            return stream
        secured = trio.SSLStream(
            stream, self._tls, server_hostname=self._host, https_compatible=True
        )
        try:
            await secured.do_handshake()
        except trio.BrokenResourceError as error:
            await trio.aclose_forcefully(stream)
            raise HttpError(f"TLS handshake failed: {error.__cause__ or error}") from error
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise
        return secured
