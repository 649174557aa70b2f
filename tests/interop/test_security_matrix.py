"""Every foreign client over every kind of secured listener, with every mechanism that it has.

A refusal is told within a second, counted by the client from before it begins to connect.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.secured.access import MECHANISMS, OAUTHBEARER, Access, Failure
from support.secured.broker import SecuredBroker
from support.secured.client import REFUSAL_SECONDS_MAX, SecuredClient

NAMES = ("kcat", "confluent-kafka", "kafka-python", "aiokafka", "java")
PROTOCOLS = ("SASL_PLAINTEXT", "SASL_SSL")
# Clients that can write tokens themselves; kcat can have no others.
SELF_SIGNED = ("kcat", "confluent-kafka", "java")
# librdkafka looks once a second whether it has been given a token yet.
LATE = {("confluent-kafka", Failure.BAD_TOKEN)}

every_client = pytest.mark.parametrize("name", NAMES)
every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS)


class Rig:
    """The clients, and the broker that they talk to."""

    def __init__(
        self,
        broker: SecuredBroker,
        client: Callable[[str], SecuredClient],
        new_name: Callable[[], str],
    ) -> None:
        self.broker = broker
        self.client = client
        self._new_name = new_name

    def check_exchange(self, name: str, access: Access) -> None:
        """It connects, writes and reads."""
        topic = self._new_name()
        value = f"a record of {topic}".encode()

        assert value == self.client(name).exchange(access, topic, value)

    def check_refusal(self, name: str, failure: Failure, access: Access) -> None:
        """It is reported soon, and it tells its caller what it should."""
        refusal = self.client(name).refusal(failure, access)

        if (name, failure) not in LATE:
            assert refusal.seconds < REFUSAL_SECONDS_MAX, refusal


@pytest.fixture(scope="module")
def rig(
    secured: SecuredBroker,
    secured_client: Callable[[str], SecuredClient],
    new_name: Callable[[], str],
) -> Rig:
    return Rig(secured, secured_client, new_name)


@every_client
def test_tls(rig: Rig, name: str) -> None:
    rig.check_exchange(name, rig.broker.ssl())


@every_client
def test_mutual_tls(rig: Rig, name: str) -> None:
    rig.check_exchange(name, rig.broker.mutual())


@every_client
@every_protocol
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_sasl(rig: Rig, name: str, protocol: str, mechanism: str) -> None:
    if (name, mechanism) == ("kcat", OAUTHBEARER):
        pytest.skip("kcat cannot be given a token; see the next test")
    rig.check_exchange(name, rig.broker.sasl(protocol, mechanism))


@pytest.mark.parametrize("name", SELF_SIGNED)
@every_protocol
def test_unsigned_tokens(rig: Rig, name: str, protocol: str) -> None:
    rig.check_exchange(name, rig.broker.unsigned(protocol))


@every_client
@every_protocol
@pytest.mark.parametrize("mechanism", [each for each in MECHANISMS if each != OAUTHBEARER])
def test_a_wrong_password(rig: Rig, name: str, protocol: str, mechanism: str) -> None:
    failure = Failure.WRONG_PASSWORD
    rig.check_refusal(name, failure, rig.broker.failing(failure, protocol, mechanism))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "kcat"])
@every_protocol
def test_a_token_that_has_expired(rig: Rig, name: str, protocol: str) -> None:
    failure = Failure.BAD_TOKEN
    rig.check_refusal(name, failure, rig.broker.failing(failure, protocol))


@every_client
@pytest.mark.parametrize(
    "failure",
    [
        Failure.EXPIRED_SERVER,
        Failure.OTHER_HOST,
        Failure.EXPIRED_CLIENT,
        Failure.NO_CERTIFICATE,
    ],
)
def test_a_certificate_that_is_not_good(rig: Rig, name: str, failure: Failure) -> None:
    rig.check_refusal(name, failure, rig.broker.failing(failure))
