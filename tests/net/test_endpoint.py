"""Endpoints and connection ids: text in, values out, and back."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.errors import ConfigError
from trionet.net.wire._endpoint import ConnectionId, Endpoint, SecurityProtocol, plain_address


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("PLAINTEXT://127.0.0.1:9092", "127.0.0.1", 9092),
        ("PLAINTEXT://broker-1.example.org:0", "broker-1.example.org", 0),
        ("PLAINTEXT://[::1]:65535", "::1", 65535),
        ("PLAINTEXT://[fe80::1%eth0]:9092", "fe80::1%eth0", 9092),
        ("PLAINTEXT://:9092", "", 9092),
    ],
)
def test_endpoint_text_parses_and_prints_itself(text: str, host: str, port: int) -> None:
    endpoint = Endpoint.parse(text)

    assert Endpoint("PLAINTEXT", SecurityProtocol.PLAINTEXT, host, port) == endpoint
    assert text == str(endpoint)


def test_listener_names_are_upper_case_and_spaces_around_are_dropped() -> None:
    assert Endpoint.parse("PLAINTEXT://h:1") == Endpoint.parse(" plaintext://h:1\n")


def test_a_named_listener_has_the_protocol_of_the_map() -> None:
    endpoint = Endpoint.parse("INSIDE://h:1", {"INSIDE": SecurityProtocol.SASL_SSL})

    assert Endpoint("INSIDE", SecurityProtocol.SASL_SSL, "h", 1) == endpoint


def test_a_name_without_protocol_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"INSIDE has no .* SSL, .*protocol\.map"):
        Endpoint.parse("INSIDE://h:1")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "127.0.0.1:9092",
        "://127.0.0.1:9092",
        "PLAINTEXT://127.0.0.1",
        "PLAINTEXT://127.0.0.1:",
        "PLAINTEXT://127.0.0.1:-1",
        "PLAINTEXT://127.0.0.1:65536",
        "PLAINTEXT://127.0.0.1:9092/path",
        "PLAINTEXT://user@h:9092",
        "PLAINTEXT://a b:9092",
        "PLAINTEXT://::1:9092",
        "PLAINTEXT://[localhost]:9092",
        "PLAINTEXT://[::1:9092",
        "PLAINTEXT://h:٩",
    ],
)
def test_text_of_another_form_is_refused_and_quoted(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Endpoint.parse(text)

    assert str(caught.value).startswith(repr(text))


@pytest.mark.parametrize(
    ("host", "is_wildcard"),
    [
        ("", True),
        ("0.0.0.0", True),
        ("::", True),
        ("0:0:0:0:0:0:0:0", True),
        ("127.0.0.1", False),
        ("::1", False),
        ("localhost", False),
    ],
)
def test_wildcards_are_recognised(host: str, is_wildcard: bool) -> None:
    endpoint = Endpoint("PLAINTEXT", SecurityProtocol.PLAINTEXT, host, 9092)

    assert is_wildcard == endpoint.is_wildcard


@pytest.mark.parametrize(
    ("host", "address"), [("127.0.0.1", "127.0.0.1:9092"), ("::1", "[::1]:9092")]
)
def test_the_address_is_what_a_bootstrap_list_wants(host: str, address: str) -> None:
    assert address == Endpoint("PLAINTEXT", SecurityProtocol.PLAINTEXT, host, 9092).address


def test_a_bound_port_takes_the_place_of_a_free_one() -> None:
    endpoint = Endpoint.parse("PLAINTEXT://h:0")

    assert Endpoint.parse("PLAINTEXT://h:9092") == endpoint.with_port(9092)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("localhost:9092-example:9093-1-2", ("localhost", 9092, "example", 9093, 1, 2)),
        ("127.0.0.1:9092-127.0.0.1:0-0-1", ("127.0.0.1", 9092, "127.0.0.1", 0, 0, 1)),
        (
            "2001:db8:0:0:0:0:0:1:9092-::1:9093-3-40",
            ("2001:db8:0:0:0:0:0:1", 9092, "::1", 9093, 3, 40),
        ),
    ],
)
def test_connection_id_text_parses(
    text: str, expected: tuple[str, int, str, int, int, int]
) -> None:
    """F5: IPv4, names and bare IPv6."""
    connection_id = ConnectionId.parse(text)

    assert ConnectionId(*expected) == connection_id
    assert text == str(connection_id)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a:1-b:2-3",
        "a:1-b:2-3-4-5",
        "a-1-b:2-3-4",
        "a:1:b-2-3-4",
        "a:1_b:2-3-4",
        "a:x-b:2-3-4",
        "a:1-b:-3-4",
        "a:1-:2-3-4",
        "a:1-b:2-x-4",
        "a:1-b:2-3-x",
        "a:1-b:2-3-",
        "a:1-b:70000-3-4",
        "[::1]:1-b:2-3-4",
        "a:1-[::1]:2-3-4",
    ],
)
def test_what_is_no_connection_id_parses_to_nothing(text: str) -> None:
    """F6: a missing or extra part, wrong separator, non-numeric part, bracketed IPv6."""
    assert ConnectionId.parse(text) is None


@pytest.mark.parametrize(
    ("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
)
def test_a_connection_id_is_built_from_both_addresses_of_the_socket(
    family: socket.AddressFamily, host: str
) -> None:
    """F7: with processor and index."""
    with socket.socket(family) as listening:
        try:
            listening.bind((host, 0))
        except OSError:
            pytest.skip(f"{host} is not configured on this machine")
        listening.listen()
        with socket.create_connection(listening.getsockname()[:2]) as client:
            server, address = listening.accept()
            with server:
                connection_id = ConnectionId.of(server, address, processor=2, index=7)
                local, remote = listening.getsockname()[1], client.getsockname()[1]

    assert ConnectionId(host, local, host, remote, 2, 7) == connection_id
    assert f"{host}:{local}-{host}:{remote}-2-7" == str(connection_id)


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no dual-stack IPv6 here")
def test_an_ipv4_peer_of_a_dual_stack_listener_is_shown_with_its_ipv4_address() -> None:
    """F7: as in Java, where such an address is none of IPv6."""
    with (
        socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True) as listening,
        socket.create_connection(("127.0.0.1", listening.getsockname()[1])),
    ):
        server, address = listening.accept()
        with server:
            connection_id = ConnectionId.of(server, address, processor=0, index=0)

    assert ("127.0.0.1", "127.0.0.1") == (connection_id.local_host, connection_id.remote_host)


@pytest.mark.parametrize(
    ("host", "plain"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::ffff:127.0.0.1", "127.0.0.1"),
        ("::1", "::1"),
        ("::ffff:7f00:1", "127.0.0.1"),
        ("0:0:0:0:0:FFFF:127.0.0.1", "127.0.0.1"),
        ("::ffff:0:0:1", "::ffff:0:0:1"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("2001:DB8::0001", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1%eth0"),
        ("FE80:0::1%eth0", "fe80::1%eth0"),
        ("localhost", "localhost"),
        ("", ""),
        ("::1::", "::1::"),
        ("::1\0", "::1\0"),
        ("::\udcff", "::\udcff"),
    ],
)
def test_an_address_has_one_spelling(host: str, plain: str) -> None:
    """And an IPv4 peer is one address on whatever listener."""
    assert plain == plain_address(host)


@given(st.text())
def test_any_text_is_an_endpoint_or_exactly_one_error(text: str) -> None:
    try:
        endpoint = Endpoint.parse(text)
    except ConfigError:
        return
    assert Endpoint.parse(str(endpoint)) == endpoint


@given(st.text(alphabet="ab1:-[]%.x", max_size=30))
def test_any_text_is_a_connection_id_that_prints_itself_or_nothing(text: str) -> None:
    connection_id = ConnectionId.parse(text)
    assert connection_id is None or ConnectionId.parse(str(connection_id)) == connection_id
