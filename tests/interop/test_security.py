"""Foreign clients over TLS and SASL: each kind of listener once, and what keeps a client out.

The whole of it, every client with every mechanism, is in test_security_matrix.py, which
`python3 tests interop` runs.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.secured.access import PLAIN, SCRAM_256, Access, Failure
from support.secured.broker import SecuredBroker
from support.secured.client import REFUSAL_SECONDS_MAX, SecuredClient

NAMES = ("kcat", "confluent-kafka", "kafka-python", "aiokafka", "java")
WAYS: dict[str, Callable[[SecuredBroker], Access]] = {
    "SSL": lambda broker: broker.ssl(),
    "mutual TLS": lambda broker: broker.mutual(),
    "SASL_PLAINTEXT": lambda broker: broker.sasl("SASL_PLAINTEXT", PLAIN),
    "SASL_SSL": lambda broker: broker.sasl("SASL_SSL", SCRAM_256),
}

every_client = pytest.mark.parametrize("name", NAMES)


@every_client
def test_a_client_gets_in(
    secured: SecuredBroker,
    secured_client: Callable[[str], SecuredClient],
    new_name: Callable[[], str],
    name: str,
) -> None:
    """P26, S36: it connects, writes and reads."""
    client = secured_client(name)
    for way, access in WAYS.items():
        value = f"over {way}".encode()

        assert value == client.exchange(access(secured), new_name(), value)


@every_client
@pytest.mark.parametrize(
    "failure", [Failure.WRONG_PASSWORD, Failure.EXPIRED_SERVER, Failure.OTHER_HOST]
)
def test_a_client_soon_says_why_it_does_not_get_in(
    secured: SecuredBroker,
    secured_client: Callable[[str], SecuredClient],
    name: str,
    failure: Failure,
) -> None:
    client = secured_client(name)

    refusal = client.refusal(failure, secured.failing(failure, mechanism=SCRAM_256))

    assert refusal.seconds < REFUSAL_SECONDS_MAX, refusal
