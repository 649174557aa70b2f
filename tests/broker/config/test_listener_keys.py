"""Keys of one listener, or of one mechanism of it: applied, told as not applied, or an error."""

from __future__ import annotations

import pytest

from trionet.broker.config._broker_config import BrokerConfig
from trionet.broker.config._listeners import MECHANISMS
from trionet.broker.security._listener_security import SUPPORTED
from trionet.errors import ConfigError

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
