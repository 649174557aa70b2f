"""One HTTP/1.1 connection without I/O: bytes in, whole requests out; responses in, bytes out.

h11 implements HTTP. This module adds further requirements: the method is GET or HEAD, or POST if
there is a token; there is no body; the request line has a plain path and nothing else; the host is
one of this server's names; and the token matches. Any other request gets an error response, after
which the connection is closed in most cases.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from email.utils import formatdate
from http import HTTPStatus
from urllib.parse import parse_qsl

import attrs
import h11

# More parameters than any page has.
_PARAMETERS_MAX = 16
_TEXT = "text/plain; charset=utf-8"


@attrs.frozen
class HttpRequest:
    """A request that fits.

    Attributes:
        path: as it was sent, from its slash on.
        parameters: of the query; the last one of a name.
        is_head: whether the answer goes without its body.
        is_order: whether something is to be done (POST); only who has the token may ask for that.
    """

    path: str
    parameters: Mapping[str, str]
    is_head: bool
    is_order: bool = False


@attrs.frozen
class HttpAnswer:
    """What a request is answered with.

    Attributes:
        body: the text, in UTF-8.
        content_type: of the body.
        status: 200, or why there is nothing.
        headers: beside those that every answer has.
    """

    body: bytes
    content_type: str = _TEXT
    status: HTTPStatus = HTTPStatus.OK
    headers: tuple[tuple[str, str], ...] = ()


class Refused(Exception):
    """A request does not fit; ``answer`` tells the peer."""

    def __init__(
        self, status: HTTPStatus, why: str, headers: tuple[tuple[str, str], ...] = ()
    ) -> None:
        super().__init__(why)
        self.answer = HttpAnswer(f"{why}\n".encode(), _TEXT, status, headers)


@attrs.frozen
class HttpRules:
    """Who may ask, and how much.

    Attributes:
        token: the bearer token that every request must have; None asks for none.
        host: the name or address that the listener was told to listen on.
        header_bytes_max: of the request line and the headers together.
    """

    token: str | None = attrs.field(default=None, repr=False)
    host: str = "127.0.0.1"
    header_bytes_max: int = 16 * 1024


class HttpExchange:
    """The server's side of one connection.

    Args:
        rules: what is asked of requests.

    Attributes:
        must_close: no other request can follow.
        answers: how many were given.
    """

    def __init__(self, rules: HttpRules) -> None:
        self._rules = rules
        self._connection = h11.Connection(
            h11.SERVER, max_incomplete_event_size=rules.header_bytes_max
        )
        self._is_head = False
        self.must_close = False
        self.answers = 0

    @property
    def has_begun(self) -> bool:
        """Whether a part of a request was received that is not answered yet."""
        return bool(self._connection.trailing_data[0]) or (
            self._connection.their_state is not h11.IDLE
        )

    def receive(self, data: bytes | bytearray) -> None:
        """Take bytes of the peer; ``b""`` is the end of its stream, and comes once."""
        self._connection.receive_data(bytes(data))

    def next_request(self) -> HttpRequest | None:
        """The next whole request; None when it needs more bytes.

        Raises:
            Refused: the peer breaks a rule; answer it, if that is still possible.
            EOFError: the peer has closed.
        """
        connection = self._connection
        self._is_head = False  # as long as nobody knows, and for what is no request at all
        try:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                return None
            if type(event) is h11.ConnectionClosed:
                raise EOFError
            assert isinstance(event, h11.Request), event
            self._is_head = event.method == b"HEAD"
            if not isinstance(connection.next_event(), h11.EndOfMessage):
                self.must_close = True
                raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "a body is not wanted")
            return self._check(event)
        except h11.RemoteProtocolError as error:
            self.must_close = True
            raise Refused(HTTPStatus(error.error_status_hint), "this is no HTTP request") from error

    def too_slow(self) -> Refused:
        """What a peer is told that does not finish its request; ends the connection."""
        self.must_close = True
        return Refused(HTTPStatus.REQUEST_TIMEOUT, "the request took too long")

    def answer(self, answer: HttpAnswer) -> bytes:
        """The bytes of an answer; afterwards the next request can be taken, or ``must_close``."""
        connection = self._connection
        self.answers += 1
        headers = [
            ("Content-Type", answer.content_type),
            ("Content-Length", str(len(answer.body))),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("Date", formatdate(usegmt=True)),
            *answer.headers,
        ]
        if self.must_close:
            headers.append(("Connection", "close"))
        response = h11.Response(
            status_code=answer.status, headers=headers, reason=answer.status.phrase.encode()
        )
        parts = [connection.send(response)]
        if not self._is_head:
            parts.append(connection.send(h11.Data(data=answer.body)))
        parts.append(connection.send(h11.EndOfMessage()))
        if connection.our_state is h11.DONE and connection.their_state is h11.DONE:
            connection.start_next_cycle()
        else:
            self.must_close = True
        return b"".join(filter(None, parts))

    # What fits.

    def _check(self, request: h11.Request) -> HttpRequest:
        self._check_version(request)
        self._check_host([value for name, value in request.headers if name == b"host"])
        self._check_token([value for name, value in request.headers if name == b"authorization"])
        self._check_method(request.method)
        path, _, query = request.target.decode("ascii").partition("?")
        if not path.startswith("/"):
            raise Refused(HTTPStatus.BAD_REQUEST, "a path begins with a slash")
        try:
            parameters = dict(parse_qsl(query, max_num_fields=_PARAMETERS_MAX))
        except ValueError:
            raise Refused(HTTPStatus.BAD_REQUEST, "too many parameters") from None
        return HttpRequest(path, parameters, self._is_head, request.method == b"POST")

    def _check_method(self, method: bytes) -> None:
        allowed, text = "GET, HEAD", "GET and HEAD are served"
        if self._rules.token is not None:
            allowed, text = "GET, HEAD, POST", "GET, HEAD and POST are served"
        if method.decode("latin-1") in allowed.split(", "):
            return
        if method == b"POST":
            text += "; POST needs a server that asks for a token"
        raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, text, (("Allow", allowed),))

    def _check_version(self, request: h11.Request) -> None:
        if request.http_version not in (b"1.0", b"1.1"):
            self.must_close = True
            raise Refused(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "HTTP/1.1 is served")

    def _check_host(self, hosts: list[bytes]) -> None:
        """Only a name of this server's own, or an address.

        A page of another site could otherwise read everything here through its visitor's browser,
        by a name of its own that it lets point to 127.0.0.1 (DNS rebinding).
        """
        if self._rules.token is not None or not hosts:
            return  # who knows the token may call us what he likes; browsers always name a host
        name = hosts[0].decode("ascii", "replace").rpartition("]")[0].removeprefix("[")
        name = name or hosts[0].decode("ascii", "replace").partition(":")[0]
        name = name.rstrip(".").lower()
        if name == "localhost" or name == self._rules.host.lower() or _is_address(name):
            return
        raise Refused(HTTPStatus.MISDIRECTED_REQUEST, "this server does not have that name")

    def _check_token(self, authorizations: list[bytes]) -> None:
        token = self._rules.token
        if token is None:
            return
        scheme, _, given = authorizations[0].partition(b" ") if authorizations else (b"", b"", b"")
        is_right = hmac.compare_digest(given.strip(), token.encode())
        if len(authorizations) != 1 or scheme.lower() != b"bearer" or not is_right:
            self.must_close = True  # each guess has to go through the limits of accepting
            raise Refused(
                HTTPStatus.UNAUTHORIZED, "a token is needed", (("WWW-Authenticate", "Bearer"),)
            )


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
