"""The server side of an HTTP/1.1 connection, without I/O.

The library h11 implements HTTP. This module adds requirements for requests: the method is GET or
HEAD, or POST where actions are allowed; the request has no body; the request target is a plain
path; the host is one of this server's names; and the token matches. Any other request gets an error
response, after which the connection is closed in most cases.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Collection, Iterable, Mapping
from email.utils import formatdate
from http import HTTPStatus
from urllib.parse import parse_qsl

import attrs
import h11

# More parameters than any page has.
_PARAMETERS_MAX = 16
_TEXT = "text/plain; charset=utf-8"

Headers = tuple[tuple[str, str], ...]


@attrs.frozen
class HttpRequest:
    """A valid request.

    Attributes:
        path: the path as sent, starting with a slash.
        parameters: the query parameters; if a name is repeated, the last value is used.
        is_order: whether the request asks for an action (POST), which requires a token or
            :attr:`HttpRules.allows_orders`.
        takes_gzip: whether the client accepts a response compressed with gzip.
        takes_openmetrics: whether the client prefers OpenMetrics to other kinds of text.
    """

    path: str
    parameters: Mapping[str, str]
    is_order: bool = False
    takes_gzip: bool = False
    takes_openmetrics: bool = False


@attrs.frozen
class HttpResponse:
    """The response to a request.

    Attributes:
        body: the text, in UTF-8.
        content_type: the media type of the body.
        status: 200, or the status of an error.
        headers: additional headers.
    """

    body: bytes
    content_type: str = _TEXT
    status: HTTPStatus = HTTPStatus.OK
    headers: Headers = ()


class Refused(Exception):
    """Raised when a request is rejected; ``response`` is the error response to send."""

    def __init__(self, status: HTTPStatus, why: str, headers: Headers = ()) -> None:
        super().__init__(why)
        self.response = HttpResponse(f"{why}\n".encode(), _TEXT, status, headers)


@attrs.frozen
class HttpRules:
    """The requirements that every request must meet.

    Attributes:
        token: the bearer token that every request must have; None if no token is required.
        host: the configured host name or address of the listener.
        allows_orders: whether requests may ask for actions without a token, since only those who
            may do so can connect.
        open_paths: the paths that need no token, since their pages reveal nothing.
        header_bytes_max: the maximum size of the request line and the headers together.
    """

    token: str | None = attrs.field(default=None, repr=False)
    host: str = "127.0.0.1"
    allows_orders: bool = False
    open_paths: Collection[str] = ()
    header_bytes_max: int = 16 * 1024


class HttpExchange:
    """The protocol state of one connection, on the server side.

    Args:
        rules: the requirements for requests.

    Attributes:
        must_close: whether to close the connection once the pending response has been sent.
        responses: the number of responses encoded so far.
    """

    def __init__(self, rules: HttpRules) -> None:
        self._rules = rules
        self._connection = h11.Connection(h11.SERVER, rules.header_bytes_max)
        self._is_head = False
        self.must_close = False
        self.responses = 0

    @property
    def has_begun(self) -> bool:
        """Whether part of a request has been received, and no response to it has been sent."""
        return bool(self._connection.trailing_data[0]) or (
            self._connection.their_state is not h11.IDLE
        )

    def receive(self, data: bytes | bytearray) -> None:
        """Add received bytes; pass ``b""`` once, at the end of the peer's stream."""
        self._connection.receive_data(bytes(data))

    def next_request(self) -> HttpRequest | None:
        """Return the next complete request; None if more bytes are needed.

        Raises:
            Refused: the request is rejected; send the error response if that is still possible.
            EOFError: the peer has closed the connection.
        """
        connection = self._connection
        self._is_head = False  # until it is known, and for malformed requests
        try:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                return None
            if type(event) is h11.ConnectionClosed:
                raise EOFError
            assert isinstance(event, h11.Request), event
            self._is_head = event.method == b"HEAD"
            has_body = any(name == b"transfer-encoding" for name, _ in event.headers)
            # A proxy may take the end of a chunked body elsewhere (RFC 9112, 6.1), above all beside
            # Content-Length, and what follows for another client's request.
            if has_body or not isinstance(connection.next_event(), h11.EndOfMessage):
                self.must_close = True
                raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "a request body is not allowed")
            return self._check(event)
        except h11.RemoteProtocolError as error:
            self.must_close = True
            status = HTTPStatus(error.error_status_hint)
            # h11's traceback leads back to the error: only a collection of cycles would free both,
            # and this exchange.
            raise Refused(status, "malformed HTTP request") from error.with_traceback(None)

    def too_slow(self) -> Refused:
        """Return the error for a peer whose request takes too long, and set ``must_close``."""
        self.must_close = True
        return Refused(HTTPStatus.REQUEST_TIMEOUT, "the request was not complete in time")

    def send(self, response: HttpResponse) -> bytes:
        """Encode a response. The next request can then be read, unless ``must_close`` is true."""
        connection = self._connection
        self.responses += 1
        headers = [
            ("Content-Type", response.content_type),
            ("Content-Length", str(len(response.body))),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("Date", formatdate(usegmt=True)),
            *response.headers,
        ]
        if self.must_close:
            headers.append(("Connection", "close"))
        head = h11.Response(
            status_code=response.status, headers=headers, reason=response.status.phrase.encode()
        )
        parts = [connection.send(head)]
        if not self._is_head:
            parts.append(connection.send(h11.Data(data=response.body)))
        parts.append(connection.send(h11.EndOfMessage()))
        if connection.our_state is h11.DONE and connection.their_state is h11.DONE:
            connection.start_next_cycle()
        else:
            self.must_close = True
        return b"".join(filter(None, parts))

    # Validation.

    def _check(self, request: h11.Request) -> HttpRequest:
        if request.http_version not in (b"1.0", b"1.1"):
            self.must_close = True
            raise Refused(
                HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "unsupported HTTP version; use HTTP/1.1"
            )
        path, _, query = request.target.decode("ascii").partition("?")
        self._check_host(_values(request, b"host"))
        if path not in self._rules.open_paths:
            self._check_token(_values(request, b"authorization"))
        self._check_method(request.method)
        if not path.startswith("/"):
            raise Refused(
                HTTPStatus.BAD_REQUEST,
                "invalid request target: expected a path that begins with a slash",
            )
        try:
            parameters = dict(parse_qsl(query, max_num_fields=_PARAMETERS_MAX))
        except ValueError:
            raise Refused(
                HTTPStatus.BAD_REQUEST,
                f"too many query parameters; at most {_PARAMETERS_MAX} are allowed",
            ) from None
        return HttpRequest(
            path,
            parameters,
            request.method == b"POST",
            _takes_gzip(_weights(_values(request, b"accept-encoding"))),
            _takes_openmetrics(_weights(_values(request, b"accept"))),
        )

    def _check_method(self, method: bytes) -> None:
        allowed, text = "GET, HEAD", "method not allowed; allowed: GET and HEAD"
        if self._rules.token is not None or self._rules.allows_orders:
            allowed, text = "GET, HEAD, POST", "method not allowed; allowed: GET, HEAD and POST"
        if method.decode("latin-1") in allowed.split(", "):
            return
        if method == b"POST":
            text += "; POST needs a listener with a token"
        raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, text, (("Allow", allowed),))

    def _check_host(self, hosts: list[bytes]) -> None:
        """Accept only this server's own names and addresses in the Host header.

        Otherwise, a web page of another site could read all pages through its visitor's browser,
        with a host name that resolves to 127.0.0.1 (DNS rebinding).
        """
        if self._rules.token is not None or not hosts:
            return  # a foreign page does not know the token; browsers always send a Host
        name = hosts[0].decode("ascii", "replace").rpartition("]")[0].removeprefix("[")
        name = name or hosts[0].decode("ascii", "replace").partition(":")[0]
        name = name.rstrip(".").lower()
        if name == "localhost" or name == self._rules.host.lower() or _is_address(name):
            return
        raise Refused(
            HTTPStatus.MISDIRECTED_REQUEST,
            "unknown Host; allowed: an IP address, localhost or the listener's own host name",
        )

    def _check_token(self, authorizations: list[bytes]) -> None:
        token = self._rules.token
        if token is None:
            return
        scheme, _, given = authorizations[0].partition(b" ") if authorizations else (b"", b"", b"")
        is_right = hmac.compare_digest(given.strip(), token.encode())
        if len(authorizations) != 1 or scheme.lower() != b"bearer" or not is_right:
            self.must_close = True  # so that the limits of accepting apply to each guess
            raise Refused(
                HTTPStatus.UNAUTHORIZED,
                "missing or wrong token; send it as Authorization: Bearer TOKEN",
                (("WWW-Authenticate", "Bearer"),),
            )


def _values(request: h11.Request, name: bytes) -> list[bytes]:
    return [value for found, value in request.headers if found == name]


def _weights(values: Iterable[bytes]) -> dict[str, float]:
    """Return what the values of an Accept header ask for, with their weights (RFC 9110, 12.4.2).

    Of the versions of a media type, the one with the largest weight counts.
    """
    weights: dict[str, float] = {}
    for each in b",".join(values).decode("latin-1").lower().split(","):
        name, *parameters = (part.strip() for part in each.split(";"))
        weight = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                try:
                    weight = float(parameter[2:])
                except ValueError:
                    weight = 0.0
        weights[name] = max(weight, weights.get(name, 0.0))
    return weights


def _takes_gzip(weights: Mapping[str, float]) -> bool:
    return weights.get("gzip", weights.get("*", 0.0)) > 0


def _takes_openmetrics(weights: Mapping[str, float]) -> bool:
    text = weights.get("text/plain", weights.get("text/*", weights.get("*/*", 0.0)))
    weight = weights.get("application/openmetrics-text", 0.0)
    return weight > 0 and weight >= text


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
