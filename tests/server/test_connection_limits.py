"""Which limits are allowed, and how their texts become addresses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.errors import ConfigError
from trionet.server.quotas._connection_limits import (
    UNLIMITED,
    ListenerLimits,
    ServerLimits,
    parse_overrides,
    resolve_overrides,
)


@pytest.mark.parametrize("number", [0, -1])
def test_the_limits_of_a_listener_are_above_0(number: int) -> None:
    """Q15: a rate, or a number, of 0 is a configuration error."""
    with pytest.raises(ConfigError, match=r"creation\.rate = .* allowed: 1 or more"):
        ListenerLimits(connections_per_second_max=number)
    with pytest.raises(ConfigError, match=r"max\.connections = .* allowed: 1 or more"):
        ListenerLimits(connections_max=number)


def test_the_limits_of_the_server_are_not_negative() -> None:
    assert 0 == ServerLimits(connections_max=0, connections_per_second_max=0).connections_max
    with pytest.raises(ConfigError, match=r"max\.connections = -1 .* allowed: 0 or more"):
        ServerLimits(connections_max=-1)
    with pytest.raises(ConfigError, match=r"creation\.rate = -1 .* allowed: 0 or more"):
        ServerLimits(connections_per_second_max=-1)


def test_no_connection_per_address_is_allowed_only_where_some_have_more() -> None:
    limits = ServerLimits(connections_per_ip_max=0, overrides={"10.0.0.1": 5})

    assert (5, 0) == (limits.of_address("10.0.0.1"), limits.of_address("10.0.0.2"))
    with pytest.raises(ConfigError, match=r"or 0 when max\.connections\.per\.ip\.overrides is set"):
        ServerLimits(connections_per_ip_max=0)
    with pytest.raises(ConfigError, match="allowed: 0 or more"):
        ServerLimits(connections_per_ip_max=-1, overrides={"10.0.0.1": 5})


@pytest.mark.parametrize(
    ("key", "peer"),
    [
        ("0:0:0:0:0:0:0:1", "::1"),
        ("2001:DB8::0001", "2001:db8::1"),
        ("::ffff:127.0.0.2", "127.0.0.2"),
        ("::ffff:7f00:2", "127.0.0.2"),
        ("fe80::1%eth0", "fe80::1"),
    ],
)
def test_an_override_holds_in_every_spelling_of_its_address(key: str, peer: str) -> None:
    limits = ServerLimits(overrides={key: 2})

    assert {peer: 2} == limits.overrides
    assert 2 == limits.of_address(peer)


@pytest.mark.parametrize(
    "key", ["localhost", "", "[::1]", "127.0.0.1:9092", "127.0.0.1%eth0", "127.1", "10.0.0.0/8"]
)
def test_an_override_of_what_is_no_address_is_a_configuration_error(key: str) -> None:
    with pytest.raises(ConfigError, match=r"per\.ip\.overrides: .* is not an IP address"):
        ServerLimits(overrides={key: 2})


def test_two_overrides_of_one_address_are_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match="'0:0:0:0:0:0:0:1' is the same address as another key"):
        ServerLimits(overrides={"::1": 2, "0:0:0:0:0:0:0:1": 3})


def test_an_override_is_not_negative() -> None:
    with pytest.raises(ConfigError, match=r"per\.ip\.overrides: .* -1 .* allowed: 0 or more"):
        ServerLimits(overrides={"::1": -1})


def test_without_limits_there_are_none() -> None:
    server, listener = ServerLimits(), ListenerLimits()

    assert 2147483647 == UNLIMITED == server.of_address("10.0.0.1")
    assert UNLIMITED == server.connections_max == server.connections_per_second_max
    assert UNLIMITED == listener.connections_max == listener.connections_per_second_max


@pytest.mark.parametrize(
    ("text", "overrides"),
    [
        ("", {}),
        (" , ", {}),
        ("127.0.0.1:5", {"127.0.0.1": 5}),
        (" localhost : 0 , 10.0.0.7:2147483647,", {"localhost": 0, "10.0.0.7": 2147483647}),
        ("::1:7", {"::1": 7}),
        ("[fe80::1]:7", {"fe80::1": 7}),
        ("[0:0:0:0:0:0:0:1]:7", {"::1": 7}),
    ],
)
def test_overrides_are_hosts_and_counts(text: str, overrides: dict[str, int]) -> None:
    assert overrides == parse_overrides(text)


@pytest.mark.parametrize(
    "entry",
    ["host", "host:", ":5", "host:-1", "host:1.5", "host:²", "host:2147483648", "h:1" + "0" * 5000],
)
def test_an_override_of_another_form_is_a_configuration_error(entry: str) -> None:
    with pytest.raises(ConfigError, match="expected HOST:COUNT"):
        parse_overrides(f"good:1,{entry}")


@pytest.mark.parametrize(
    "text", ["a:1,b:2,a:3", "::1:1,[0:0:0:0:0:0:0:1]:2", "127.0.0.1:1,::ffff:127.0.0.1:1"]
)
def test_two_overrides_of_one_host_are_a_configuration_error(text: str) -> None:
    with pytest.raises(ConfigError, match="each host once"):
        parse_overrides(text)


@given(st.text())
def test_any_text_is_overrides_or_a_configuration_error(text: str) -> None:
    try:
        overrides = parse_overrides(text)
    except ConfigError:
        return
    assert all(host and 0 <= count <= UNLIMITED for host, count in overrides.items())


async def test_a_host_name_stands_for_its_addresses() -> None:
    """P22: an override by name is one of addresses, which is what a connection has."""
    resolved = await resolve_overrides({"localhost": 3, "10.0.0.7": 4, "::ffff:10.0.0.8": 5})

    assert 3 == resolved["127.0.0.1"]
    assert (4, 5) == (resolved["10.0.0.7"], resolved["10.0.0.8"])
    assert "localhost" not in resolved


@pytest.mark.parametrize("host", ["no such host", "a..b", "x" * 70])
async def test_a_name_without_address_is_a_configuration_error(host: str) -> None:
    with pytest.raises(ConfigError, match="cannot resolve"):
        await resolve_overrides({host: 1})
