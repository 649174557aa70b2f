"""From listeners' texts to endpoints, and which keys can be set for one listener."""

from __future__ import annotations

import pytest

from trionet.broker.config._broker_config import BrokerConfig
from trionet.broker.config._listeners import MECHANISMS
from trionet.broker.security._listener_security import SUPPORTED
from trionet.errors import ConfigError

WILDCARD = (
    " is a wildcard address, to which clients cannot connect; set advertised.listeners to the"
    " address that clients use, such as advertised.listeners=PLAINTEXT://localhost:1"
)


def bound(settings: dict[str, object]) -> list[str]:
    return [str(endpoint) for endpoint in BrokerConfig.from_settings(settings).listeners]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"listeners": "PLAINTEXT://127.0.0.1:0"}, ["PLAINTEXT://127.0.0.1:0"]),
        ({"listeners": ["plaintext://h:1"]}, ["PLAINTEXT://h:1"]),
        (
            {
                "listeners": "IN://127.0.0.1:1, OUT://127.0.0.2:2",
                "listener.security.protocol.map": "in:plaintext, OUT:PLAINTEXT,SSL:SSL",
            },
            ["IN://127.0.0.1:1", "OUT://127.0.0.2:2"],
        ),
        (
            {
                "listeners": "PLAINTEXT://127.0.0.1:0,B://127.0.0.1:0",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,B:PLAINTEXT",
            },
            ["PLAINTEXT://127.0.0.1:0", "B://127.0.0.1:0"],
        ),
        (
            {
                "listeners": "PLAINTEXT://127.0.0.1:9092,SIX://[::1]:9092",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SIX:PLAINTEXT",
            },
            ["PLAINTEXT://127.0.0.1:9092", "SIX://[::1]:9092"],
        ),
        (
            {
                "listeners": "PLAINTEXT://127.0.0.1:9092,controller://:9092",
                "controller.listener.names": "CONTROLLER",
            },
            ["PLAINTEXT://127.0.0.1:9092"],
        ),
    ],
)
def test_listeners_that_can_be_served(settings: dict[str, object], expected: list[str]) -> None:
    assert expected == bound(settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"listeners": "127.0.0.1:9092"},
            "listeners: '127.0.0.1:9092' is not a listener; expected",
        ),
        ({"listeners": ""}, "listeners = '' names no listener for clients"),
        (
            {"listeners": "C://h:1", "controller.listener.names": "C"},
            "listeners = 'C://h:1' names no listener for clients",
        ),
        ({"listeners": "INSIDE://h:1"}, "listeners: 'INSIDE://h:1': listener name INSIDE"),
        (
            {"listeners": "PLAINTEXT://h:1,PLAINTEXT://h:2"},
            "listeners = 'PLAINTEXT://h:1,PLAINTEXT://h:2' has 2 listeners named PLAINTEXT",
        ),
        (
            {
                "listeners": "PLAINTEXT://127.0.0.1:1,B://127.0.0.2:1",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,B:PLAINTEXT",
            },
            "listeners: 2 listeners share port 1; use different ports, port 0,",
        ),
        *(
            (
                {
                    "listeners": f"PLAINTEXT://{ipv6}:1,B://127.0.0.1:1",
                    "advertised.listeners": "PLAINTEXT://h:1",
                    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,B:PLAINTEXT",
                },
                "listeners: 2 listeners share port 1; use different ports, port 0,",
            )
            for ipv6 in ("[::]", "[::ffff:127.0.0.2]")
        ),
        (
            {"listener.security.protocol.map": "PLAINTEXT:TLS"},
            "listener.security.protocol.map = 'PLAINTEXT:TLS': 'PLAINTEXT:TLS' is not allowed",
        ),
        (
            {"listener.security.protocol.map": "A:SSL,A:SSL"},
            "listener.security.protocol.map = 'A:SSL,A:SSL': 'A:SSL' is not allowed; allowed: NAME",
        ),
        (
            {"listener.security.protocol.map": "SSL"},
            "listener.security.protocol.map = 'SSL': 'SSL' is not allowed",
        ),
        *(
            ({"listeners": f"PLAINTEXT://{host}:1"}, f"listeners: PLAINTEXT://{host}:1{WILDCARD}")
            for host in ("", "0.0.0.0", "[::]", "[0:0:0:0:0:0:0:0]")
        ),
        (
            {"listeners": "PLAINTEXT://0.0.0.0:1,SSL://:2"},
            (
                "listeners: PLAINTEXT://0.0.0.0:1, SSL://:2 are wildcard addresses, to which clients"
                " cannot connect; set advertised.listeners to the address that clients use, such as"
                " advertised.listeners=PLAINTEXT://localhost:1,SSL://localhost:2 (on the command line:"
                " --set advertised.listeners=PLAINTEXT://localhost:1,SSL://localhost:2)"
            ),
        ),
        *(
            ({"advertised.listeners": text}, f"advertised.listeners{message}")
            for text, message in (
                ("SSL://h:1", ": SSL://h:1 has no listener of the same name"),
                ("PLAINTEXT://0.0.0.0:1", ": clients cannot connect to PLAINTEXT://0"),
                ("PLAINTEXT://:1", ": clients cannot connect to PLAINTEXT://:1"),
                ("h:1", ": 'h:1' is not a listener"),
                ("PLAINTEXT://h:1,PLAINTEXT://h:2", " = 'PLAINTEXT://h:1,PLAINTEXT"),
            )
        ),
    ],
)
def test_listeners_that_cannot_be_served(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.from_settings(settings)

    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("advertised", "expected"),
    [
        (None, {"A": "A://10.0.0.1:1", "B": "B://10.0.0.1:2"}),
        ("B://b.example:20", {"A": "A://10.0.0.1:1", "B": "B://b.example:20"}),
        ("A://a:0,B://b:20", {"A": "A://a:0", "B": "B://b:20"}),
        ("A://a:10,C://c:30", {"A": "A://a:10", "B": "B://10.0.0.1:2"}),
    ],
)
def test_clients_learn_the_advertised_address_and_else_the_bound_one(
    advertised: str | None, expected: dict[str, str]
) -> None:
    config = BrokerConfig.from_settings(
        {
            "listeners": "A://10.0.0.1:1,B://10.0.0.1:2,C://:3",
            "advertised.listeners": advertised,
            "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT,C:SSL",
            "controller.listener.names": "C",
        }
    )

    assert expected == {name: str(config.advertised(name)) for name in ("A", "B")}
    with pytest.raises(KeyError):
        config.advertised("C")


LISTENER = "listener.name.plaintext."


@pytest.mark.parametrize(
    "key",
    [
        "max.connections",
        "max.connection.creation.rate",
        "num.network.threads",
        "connection.failed.authentication.delay.ms",
        "connections.max.reauth.ms",
        "sasl.server.max.receive.size",
        "sasl.oauthbearer.clock.skew.seconds",
        "ssl.keystore.location",
        "plain.sasl.jaas.config",
        "PLAIN.connections.max.reauth.ms",
        "scram-sha-512.connections.max.reauth.ms",
        "oauthbearer.sasl.server.callback.handler.class",
        "oauthbearer.sasl.oauthbearer.clock.skew.seconds",
    ],
)
def test_what_is_read_for_a_listener_is_applied(key: str) -> None:
    assert BrokerConfig.from_settings({LISTENER + key: "1"}).not_applied == ()


@pytest.mark.parametrize(
    "key",
    [
        "max.connections.per.ip",
        "max.connections.per.ip.overrides",
        "connections.max.idle.ms",
        "sasl.jaas.config",  # as in Kafka, it needs the name of its mechanism
        "ssl.trustmanager.algorithm",
        "plain.sasl.enabled.mechanisms",
        "plain.sasl.server.max.receive.size",
        "plain.sasl.oauthbearer.clock.skew.seconds",
        "gssapi.sasl.kerberos.service.name",
    ],
)
def test_what_is_not_read_for_a_listener_is_reported(key: str) -> None:
    config = BrokerConfig.from_settings({LISTENER + key: "1"})

    (told,) = config.not_applied
    assert told.partition("=")[0] == LISTENER + key


@pytest.mark.parametrize(
    "key",
    [
        "xyzzy",
        "foo.ssl.client.auth",
        "plian.connections.max.reauth.ms",
        "plain.ssl.client.auth",
        "plain.max.connections",
        "plain.plain.sasl.jaas.config",
        "plain",
        "plain.",
        "",
    ],
)
def test_what_no_listener_can_have_is_an_error(key: str) -> None:
    """A wrong letter in the name of a mechanism must not leave the listener less safe."""
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.from_settings({LISTENER + key: "required"})

    assert str(caught.value) == (
        f"{LISTENER}{key}: unknown key; allowed: {LISTENER}KEY with a broker key, and"
        f" {LISTENER}MECHANISM.KEY with a SASL key and one of the mechanisms gssapi,"
        " oauthbearer, plain,"
        " scram-sha-256, scram-sha-512"
    )


def test_every_mechanism_that_a_listener_can_enable_can_have_keys() -> None:
    assert {*SUPPORTED, "GSSAPI"} == MECHANISMS
