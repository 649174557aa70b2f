"""HTTP without I/O: what is asked of a request, and what the others learn."""

from __future__ import annotations

import gc
import weakref
from contextlib import suppress
from http import HTTPStatus

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.server.metrics._http_exchange import (
    HttpExchange,
    HttpRequest,
    HttpResponse,
    HttpRules,
    Refused,
)

RULES = HttpRules(host="metrics.example")


def ask(data: bytes, rules: HttpRules = RULES) -> HttpRequest | None:
    """The request in these bytes.

    Raises:
        Refused: it does not fit.
    """
    exchange = HttpExchange(rules)
    exchange.receive(data)
    return exchange.next_request()


def get(target: str = "/", *headers: str, method: str = "GET", version: str = "1.1") -> bytes:
    lines = [f"{method} {target} HTTP/{version}", *(headers or ["Host: 127.0.0.1:9404"])]
    return "".join(f"{line}\r\n" for line in [*lines, ""]).encode()


def refusal(data: bytes, rules: HttpRules = RULES) -> HTTPStatus:
    with pytest.raises(Refused) as refused:
        ask(data, rules)
    return refused.value.response.status


def read(data: bytes, method: str = "GET") -> tuple[h11.Response, bytes]:
    """A response as a client understands it."""
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method=method, target="/", headers=[("Host", "x")]))
    client.send(h11.EndOfMessage())
    client.receive_data(data)
    client.receive_data(b"")
    response = client.next_event()
    assert isinstance(response, h11.Response)
    body = b""
    while isinstance(event := client.next_event(), h11.Data):
        body += bytes(event.data)
    assert isinstance(event, h11.EndOfMessage)
    return response, body


# What fits.


def test_a_request_is_a_path_and_parameters() -> None:
    assert HttpRequest("/snapshot/log", {"limit": "5", "before": "7"}) == ask(
        get("/snapshot/log?limit=5&before=7")
    )


# What Prometheus 3 sends.
PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
    "application/openmetrics-text;version=0.0.1;q=0.4,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)


@pytest.mark.parametrize(
    ("headers", "takes"),
    [
        ((), (False, False)),
        (("Accept-Encoding: gzip",), (True, False)),
        (("Accept-Encoding: deflate, GZIP;q=0.5",), (True, False)),
        (("Accept-Encoding: deflate", "Accept-Encoding: gzip"), (True, False)),
        (("Accept-Encoding: *",), (True, False)),
        (("Accept-Encoding: identity",), (False, False)),
        (("Accept-Encoding: gzip;q=0, *",), (False, False)),
        (("Accept-Encoding: gzip;q=much",), (False, False)),
        ((f"Accept: {PROMETHEUS}", "Accept-Encoding: gzip"), (True, True)),
        (("Accept: application/openmetrics-text",), (False, True)),
        (("Accept: application/openmetrics-text;q=0.2, text/plain",), (False, False)),
        (("Accept: application/openmetrics-text;q=0",), (False, False)),
        (("Accept: */*",), (False, False)),
        (("Accept: text/html, */*;q=0.8",), (False, False)),
    ],
)
def test_a_request_says_what_its_client_accepts(
    headers: tuple[str, ...], takes: tuple[bool, bool]
) -> None:
    request = ask(get("/metrics", "Host: 127.0.0.1", *headers))

    assert request is not None
    assert takes == (request.takes_gzip, request.takes_openmetrics)


def test_a_page_that_reveals_nothing_needs_no_token() -> None:
    rules = HttpRules(token="secret-secret-secret", open_paths={"/health"})

    assert HttpRequest("/health", {}) == ask(get("/health"), rules)
    assert HttpRequest("/health", {"a": "1"}) == ask(get("/health?a=1"), rules)
    assert HTTPStatus.UNAUTHORIZED == refusal(get("/healthy"), rules)
    assert HTTPStatus.UNAUTHORIZED == refusal(get("/health/"), rules)


def test_it_may_come_in_any_pieces() -> None:
    exchange = HttpExchange(RULES)
    data = get("/metrics")

    for index in range(len(data) - 1):
        exchange.receive(data[index : index + 1])
        assert None is exchange.next_request()
        assert exchange.has_begun
    exchange.receive(data[-1:])

    assert HttpRequest("/metrics", {}) == exchange.next_request()


def test_a_request_may_follow_another() -> None:
    exchange = HttpExchange(RULES)
    exchange.receive(get("/a") + get("/b"))

    for path in ("/a", "/b"):
        assert HttpRequest(path, {}) == exchange.next_request()
        exchange.send(HttpResponse(b"x"))
    assert (None, False, False) == (
        exchange.next_request(),
        exchange.has_begun,
        exchange.must_close,
    )


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_the_response_has_a_body_with_its_size_and_type(version: str) -> None:
    exchange = HttpExchange(RULES)
    exchange.receive(get(version=version))
    exchange.next_request()

    response, body = read(exchange.send(HttpResponse(b"numbers", "text/x")))

    headers = dict(response.headers)
    assert (200, b"numbers") == (response.status_code, body)
    assert (b"text/x", b"7") == (headers[b"content-type"], headers[b"content-length"])
    assert (b"no-store", b"nosniff") == (
        headers[b"cache-control"],
        headers[b"x-content-type-options"],
    )
    assert (version == "1.0") is exchange.must_close is (b"connection" in headers)


def test_head_is_get_without_the_body() -> None:
    exchange = HttpExchange(RULES)
    exchange.receive(get(method="HEAD"))

    assert HttpRequest("/", {}) == exchange.next_request()
    response, body = read(exchange.send(HttpResponse(b"numbers")), method="HEAD")

    assert (b"7", b"") == (dict(response.headers)[b"content-length"], body)
    assert not exchange.must_close


def test_the_end_of_the_stream_is_no_request() -> None:
    exchange = HttpExchange(RULES)
    exchange.receive(b"")

    with pytest.raises(EOFError):
        exchange.next_request()


# What does not.


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", HTTPStatus.BAD_REQUEST),  # TLS
        (b"\x00\x00\x00\x10\x00\x12\x00\x04", HTTPStatus.BAD_REQUEST),  # Kafka
        (b"GET\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (b"GET / HTTP/1.1\r\n\r\n", HTTPStatus.BAD_REQUEST),  # no host
        (get("/", "Host: a", "Host: b"), HTTPStatus.BAD_REQUEST),
        (get("/", "Host: a", "bad header"), HTTPStatus.BAD_REQUEST),
        (get("/", "Host: 127.0.0.1", "Content-Length: -1"), HTTPStatus.BAD_REQUEST),
        (get("http://127.0.0.1/"), HTTPStatus.BAD_REQUEST),
        (get("*", method="OPTIONS"), HTTPStatus.METHOD_NOT_ALLOWED),
        (get("*"), HTTPStatus.BAD_REQUEST),
        (get("/?" + "a&" * 17), HTTPStatus.BAD_REQUEST),
        (get(method="POST"), HTTPStatus.METHOD_NOT_ALLOWED),
        (get(method="DELETE"), HTTPStatus.METHOD_NOT_ALLOWED),
        (get("127.0.0.1:9092", method="CONNECT"), HTTPStatus.METHOD_NOT_ALLOWED),
        (get("*", method="PRI", version="2.0"), HTTPStatus.HTTP_VERSION_NOT_SUPPORTED),
        (
            get("/", "Host: 127.0.0.1", "Content-Length: 5"),
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        ),
        (
            get("/", "Host: 127.0.0.1", "Transfer-Encoding: chunked"),
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        ),
        (get("/" + "a" * 20_000)[:-2], HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 20_000, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE),
    ],
)
def test_what_is_no_request_of_ours_is_refused(data: bytes, status: HTTPStatus) -> None:
    assert status == refusal(data)


def test_after_what_is_no_http_the_connection_closes() -> None:
    exchange = HttpExchange(RULES)
    exchange.receive(b"hello\r\n\r\n")
    with pytest.raises(Refused) as refused:
        exchange.next_request()

    response, body = read(exchange.send(refused.value.response))

    assert (400, b"malformed HTTP request\n") == (response.status_code, body)
    assert b"close" == dict(response.headers)[b"connection"]
    assert exchange.must_close


def test_an_exchange_is_freed_without_a_garbage_collection() -> None:
    """In a broker's own process, what survives long enough is not collected."""
    gc.disable()
    try:
        exchange = HttpExchange(RULES)
        exchange.receive(b"hello\r\n\r\n")
        with suppress(Refused):
            exchange.next_request()
        freed = weakref.ref(exchange)
        del exchange

        assert freed() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("size", ["Content-Length: 0", "Content-Length: 5", "X: none"])
@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_proxy_and_this_server_cannot_disagree_where_a_request_ends(
    size: str, version: str
) -> None:
    """RFC 9112, 6.1: what a proxy takes for a body must not be served as another request."""
    for headers in ((size, "Transfer-Encoding: chunked"), ("Transfer-Encoding: chunked", size)):
        exchange = HttpExchange(RULES)
        exchange.receive(get("/", "Host: 127.0.0.1", *headers, version=version))
        exchange.receive(b"0\r\n\r\n" + get("/smuggled"))

        with pytest.raises(Refused) as refused:
            exchange.next_request()
        response, _ = read(exchange.send(refused.value.response))

        assert HTTPStatus.REQUEST_ENTITY_TOO_LARGE == response.status_code
        assert (b"connection", b"close") in response.headers
        assert exchange.must_close


@pytest.mark.parametrize(
    "header",
    [
        "Content-Length: 0\r\nContent-Length: 5",
        "Content-Length: 0, 5",
        "Content-Length : 0",
        "Content-Length: +0",
        "Content-Length: -1",
        "X: a\rContent-Length: 5",
        "Transfer-Encoding: identity",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding: \x0bchunked",
    ],
)
def test_a_request_whose_end_is_not_certain_closes_the_connection(header: str) -> None:
    exchange = HttpExchange(RULES)
    exchange.receive(get("/", "Host: 127.0.0.1", header) + get("/smuggled"))

    with pytest.raises(Refused):
        exchange.next_request()
    assert exchange.must_close


def test_what_is_no_http_after_a_head_gets_a_response_with_a_body() -> None:
    exchange = HttpExchange(RULES)
    exchange.receive(get(method="HEAD") + b"hello\r\n\r\n")
    assert exchange.next_request() is not None
    exchange.send(HttpResponse(b"page"))
    with pytest.raises(Refused) as refused:
        exchange.next_request()

    response, body = read(exchange.send(refused.value.response))

    assert (400, b"malformed HTTP request\n") == (response.status_code, body)


def test_after_another_refusal_the_next_request_is_heard() -> None:
    exchange = HttpExchange(RULES)
    exchange.receive(get(method="POST") + get())
    with pytest.raises(Refused) as refused:
        exchange.next_request()

    response, _ = read(exchange.send(refused.value.response))

    assert (405, b"GET, HEAD") == (response.status_code, dict(response.headers)[b"allow"])
    assert HttpRequest("/", {}) == exchange.next_request()


def test_a_consumer_that_takes_too_long_gets_an_error() -> None:
    exchange = HttpExchange(RULES)
    exchange.receive(b"GET / HT")
    assert None is exchange.next_request()

    response, _ = read(exchange.send(exchange.too_slow().response))

    assert 408 == response.status_code
    assert exchange.must_close


# Who may ask.


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1:9404",
        "192.0.2.7",
        "[::1]:9404",
        "[::1]",
        "localhost:9404",
        "LocalHost.",
        "metrics.example:9404",
        "METRICS.EXAMPLE",
    ],
)
def test_requests_to_an_address_and_a_name_of_ours_get_responses(host: str) -> None:
    assert None is not ask(get("/", f"Host: {host}"))


@pytest.mark.parametrize("host", ["evil.example", "evil.example:9404", "127.0.0.1.evil.example"])
def test_a_page_of_another_site_cannot_ask_through_a_browser(host: str) -> None:
    """DNS rebinding: a name of theirs that points to 127.0.0.1."""
    assert HTTPStatus.MISDIRECTED_REQUEST == refusal(get("/", f"Host: {host}"))


@pytest.mark.parametrize("header", ["Authorization: Bearer s3cret", "authorization: bearer s3cret"])
def test_a_client_with_the_token_is_served_by_any_name(header: str) -> None:
    rules = HttpRules(token="s3cret")

    assert None is not ask(get("/", "Host: any.example", header), rules)


@pytest.mark.parametrize(
    "headers",
    [
        [],
        ["Authorization: Bearer wrong"],
        ["Authorization: Bearer"],
        ["Authorization: Basic s3cret"],
        ["Authorization: s3cret"],
        ["Authorization: Bearer s3cret s3cret"],
        ["Authorization: Bearer s3cret", "Authorization: Bearer s3cret"],
        ["Authorization: Bearer \xff\xfe"],
    ],
)
def test_without_the_token_nothing_is_shown(headers: list[str]) -> None:
    rules = HttpRules(token="s3cret")
    exchange = HttpExchange(rules)
    lines = "".join(f"{line}\r\n" for line in ["GET /x HTTP/1.1", "Host: 127.0.0.1", *headers, ""])
    exchange.receive(lines.encode("latin-1"))

    with pytest.raises(Refused) as refused:
        exchange.next_request()

    assert HTTPStatus.UNAUTHORIZED == refused.value.response.status
    assert (("WWW-Authenticate", "Bearer"),) == refused.value.response.headers


def test_the_token_does_not_show() -> None:
    assert "s3cret" not in repr(HttpRules(token="s3cret"))


# Anything.

PIECES = st.sampled_from(
    [
        *(
            b"GET ",
            b"HEAD ",
            b"/",
            b" HTTP/1.1",
            b"\r\n",
            b"\n",
            b"\r",
            b":",
            b" ",
            b"\x00",
            b"\xff",
        ),
        *(b"Host: a\r\n", b"Host: 127.0.0.1\r\n", b"Connection: close\r\n"),
        *(b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n", b"5\r\nabc"),
        b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    ]
)


@pytest.mark.slow
@given(st.lists(PIECES | st.binary(max_size=20)))
def test_whatever_comes_is_a_request_a_refusal_or_the_end(pieces: list[bytes]) -> None:
    exchange = HttpExchange(RULES)
    for piece in [*filter(None, pieces), b""]:
        exchange.receive(piece)
        while not exchange.must_close:
            try:
                request = exchange.next_request()
            except EOFError:
                return
            except Refused as refused:
                data = exchange.send(refused.response)
                assert data.startswith(b"HTTP/1.1 ")
                continue
            if request is None:
                break
            assert request.path.startswith("/")
            assert exchange.send(HttpResponse(b"x")).startswith(b"HTTP/1.1 200 ")
        if exchange.must_close:
            return


# What is to be done, where there is a token.

TOKEN = HttpRules(host="metrics.example", token="sixteen-characters")


def order(target: str = "/", token: str = "sixteen-characters") -> bytes:
    return get(target, "Host: x", f"Authorization: Bearer {token}", method="POST")


def test_who_has_the_token_may_ask_for_something_to_be_done() -> None:
    wanted = HttpRequest("/connections/close", {"id": "7"}, is_order=True)

    assert wanted == ask(order("/connections/close?id=7"), TOKEN)


def test_who_does_not_may_not() -> None:
    assert HTTPStatus.UNAUTHORIZED == refusal(order(token="another-one-of-16"), TOKEN)


def test_other_methods_are_refused_there_as_well() -> None:
    put = get("/", "Host: x", "Authorization: Bearer sixteen-characters", method="PUT")
    exchange = HttpExchange(TOKEN)
    exchange.receive(put)

    with pytest.raises(Refused) as refused:
        exchange.next_request()

    assert HTTPStatus.METHOD_NOT_ALLOWED == refused.value.response.status
    assert (("Allow", "GET, HEAD, POST"),) == refused.value.response.headers
