"""Which servers a client begins with, and which address of a host it tries next."""

from __future__ import annotations

import pytest

from trionet.client.network._addresses import (
    HostAddresses,
    of_one_family,
    parse_bootstrap_servers,
)
from trionet.errors import ConfigError
from trionet.net.wire._connecting import Address

ONE: Address = ("10.0.0.1", 9092)
TWO: Address = ("10.0.0.2", 9092)
THREE: Address = ("10.0.0.3", 9092)
SIX: Address = ("::1", 9092, 0, 0)


@pytest.mark.parametrize(
    ("servers", "expected"),
    [
        ("127.0.0.1:8000", [("127.0.0.1", 8000)]),
        ("mydomain.com:8080", [("mydomain.com", 8080)]),
        ("[::1]:8000", [("::1", 8000)]),
        ("PLAINTEXT://a:1", [("a", 1)]),
        (" a:1 , b:2, a:1", [("a", 1), ("b", 2)]),
        (["a:1", "b:2"], [("a", 1), ("b", 2)]),
        ("a:1,", [("a", 1)]),
        (",a:1,,b:2", [("a", 1), ("b", 2)]),
        ("kafka_1.my-net.local.:9092", [("kafka_1.my-net.local.", 9092)]),
        ("SASL_SSL://[fe80::1%eth0]:9092", [("fe80::1%eth0", 9092)]),
        ("://a:1", [("a", 1)]),
        ("a:009092", [("a", 9092)]),
    ],
)
def test_bootstrap_servers(servers: str | list[str], expected: list[tuple[str, int]]) -> None:
    """C13."""
    assert expected == parse_bootstrap_servers(servers)


@pytest.mark.parametrize(
    "servers",
    ["", ",", "127.0.0.1", "localhost:", ":9092", "a:b", "a:0", "a:65536", "a:-1", "::1:80", "a:٣"],
)
def test_bootstrap_servers_that_are_none(servers: str) -> None:
    """C13."""
    with pytest.raises(ConfigError, match=r"bootstrap\.servers"):
        parse_bootstrap_servers(servers)


@pytest.mark.parametrize(
    "server",
    [
        "a b:1",
        "a\tb:1",
        "a :1",
        "a:1\nb:2",
        "a:1 b:2",
        "a;b:1",
        "a/b:1",
        "user@a:1",
        "'a':1",
        "büro:1",
        "fe80::1%eth0:1",
        "a%b:1",
        "2001:db8::1:9092",
        "a:1:2",
        "[a]:1",
        "[127.0.0.1]:1",
        "[]:1",
        "[::1:1",
        "::1]:1",
        "[[::1]]:1",
        "[::1%]:1",
        "[::1]",
        "PLAINTEXT://",
        "PLAIN TEXT://a:1",
        "PLAINTEXT://SSL://a:1",
        "",
    ],
)
def test_what_no_host_can_be_is_refused_with_what_is_allowed(server: str) -> None:
    """Kafka: Utils.HOST_PORT_PATTERN."""
    allowed = "expected (host:port, .* IPv6 address in brackets|one or more .* host:port entries)"
    with pytest.raises(ConfigError, match=allowed):
        parse_bootstrap_servers([server] if server else "")


@pytest.mark.parametrize("port", ["", "0", "65536", "9" * 5000])
def test_port_that_is_none_is_refused_with_what_is_allowed(port: str) -> None:
    with pytest.raises(ConfigError, match="must have a port from 1 to 65535"):
        parse_bootstrap_servers(f"a:{port}")


@pytest.mark.parametrize("servers", [[9092], [("a", 1)], [b"a:1"], ("a", 1), [None]])
def test_what_is_no_text_is_refused(servers: object) -> None:
    with pytest.raises(
        ConfigError, match=r"bootstrap\.servers: .* is not a string; expected host:port"
    ):
        parse_bootstrap_servers(servers)  # type: ignore[arg-type]


def test_only_the_family_of_the_first_address_is_kept() -> None:
    """C14."""
    assert [ONE, TWO] == of_one_family([ONE, SIX, TWO])
    assert [SIX] == of_one_family([SIX, ONE])


def test_localhost_is_tried_in_both_families() -> None:
    """A broker at 127.0.0.1 is reached as localhost where the system prefers ::1."""
    v4, v6 = ("127.0.0.1", 9092), ("::1", 9092, 0, 0)

    assert [v4, v6] == of_one_family([v6, v4])


def test_one_address_is_tried_again_and_again() -> None:
    """C8."""
    addresses = HostAddresses()
    for _ in range(3):
        assert addresses.needs_lookup
        addresses.found([ONE])

        assert ONE == addresses.take()


def test_each_attempt_takes_another_address_until_all_were_tried() -> None:
    """C8, N29."""
    addresses = HostAddresses()
    addresses.found([ONE, TWO, THREE])

    assert [ONE, TWO, THREE] == [addresses.take() for _ in range(3)]
    assert addresses.needs_lookup


def test_address_that_was_tried_last_is_passed_over_after_a_new_lookup() -> None:
    """C9."""
    addresses = HostAddresses()
    addresses.found([ONE, TWO])
    assert ONE == addresses.take()
    addresses.forget()
    assert addresses.needs_lookup
    addresses.found([ONE, TWO])

    assert TWO == addresses.take()
    assert ONE == addresses.take()
