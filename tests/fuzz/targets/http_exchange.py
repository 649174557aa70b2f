"""HTTP of the metrics listener: requests, refusals or the end, in whatever pieces they arrive."""

from __future__ import annotations

from http import HTTPStatus

import attrs
import h11

from fuzz.script import Script
from trionet.server.metrics._http_exchange import (
    HttpExchange,
    HttpRequest,
    HttpResponse,
    HttpRules,
    Refused,
)

WATCHED = ("trionet.server.metrics._http_exchange",)
WORDS = (
    *(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"HEAD ", b"POST ", b"CONNECT "),
    *(b"PRI * ", b"GET / HTTP/1.0\r\n\r\n", b"\r\n", b"Host: localhost\r\n"),
    *(b"Host: [::1]:1\r\n", b"Host: x\r\n", b"Content-Length: 3\r\n"),
    *(b"Transfer-Encoding: chunked\r\n", b"5\r\nabcde\r\n", b"0\r\n\r\n"),
    *(b"Connection: close\r\n", b"Connection: keep-alive\r\n", b"Expect: 100-continue\r\n"),
    *(b"?a=b&c", b"Upgrade: h2c\r\n", b"Authorization: Bearer token\r\n", b"\x16\x03\x01"),
    *(b" HTTP/1.1", b"%ff"),
)
BYTES_MAX = 1024

SMALL_BYTES = 128
RULES = (
    HttpRules(host="metrics.example"),
    HttpRules(token="token"),
    HttpRules(header_bytes_max=SMALL_BYTES),
)
PAGE = b"page"
REQUESTS_MAX = 200


@attrs.frozen
class Told:
    """What came of one request.

    Attributes:
        request: the request; None for a refusal.
        is_last: whether nothing can follow.
    """

    request: HttpRequest | None
    is_last: bool


def run(data: bytes) -> None:
    script = Script(data)
    rules = RULES[script.byte() % len(RULES)]
    pieces = script.pieces()

    found = answered(pieces, rules)

    if rules.header_bytes_max > len(data):
        # Where no limit comes into it, it makes no difference how the bytes arrive.
        assert found == answered(list(filter(None, [b"".join(pieces)])), rules)


def answered(pieces: list[bytes], rules: HttpRules) -> list[Told]:
    """Do what the listener does with a connection: everything it tells a peer."""
    exchange = HttpExchange(rules)
    told: list[Told] = []
    for piece in [*pieces, b""]:
        exchange.receive(piece)
        while True:
            assert len(told) < REQUESTS_MAX, "more responses than there can be requests"
            try:
                request = exchange.next_request()
            except EOFError:
                return told
            except Refused as refused:
                request, response = None, refused.response
            else:
                if request is None:
                    break
                response = HttpResponse(PAGE, "text/x")
            data = exchange.send(response)
            _check(request, response, data, is_head=exchange._is_head)
            told.append(Told(request, exchange.must_close))
            if exchange.must_close:
                return told
        held = len(exchange._connection.trailing_data[0])
        assert held <= rules.header_bytes_max, held
    raise AssertionError("neither a response nor an end behind the end of the stream")


def _check(
    request: HttpRequest | None, response: HttpResponse, data: bytes, *, is_head: bool
) -> None:
    """The bytes are one whole response, as a client reads it."""
    assert (request is not None) == (response.status is HTTPStatus.OK)
    if request is not None:
        assert request.path.startswith("/")
        (request.path + "".join(request.parameters)).encode()
    # A refusal may belong to a HEAD; it has a body unless it does.
    for method in ("HEAD",) if request is not None and is_head else ("GET", "HEAD"):
        if _is_response(method, response, data):
            return
    raise AssertionError(data)


def _is_response(method: str, response: HttpResponse, data: bytes) -> bool:
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method=method, target="/", headers=[("Host", "x")]))
    client.send(h11.EndOfMessage())
    client.receive_data(data)
    head = client.next_event()
    assert isinstance(head, h11.Response), head
    assert response.status == head.status_code
    body = b""
    while isinstance(event := client.next_event(), h11.Data):
        body += bytes(event.data)
    is_whole = isinstance(event, h11.EndOfMessage) and not client.trailing_data[0]
    return is_whole and body == (b"" if method == "HEAD" else response.body)
