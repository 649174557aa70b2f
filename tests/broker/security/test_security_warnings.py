"""What a listener warns of: settings with which tokens prove less than they seem to."""

from __future__ import annotations

import pytest

from trionet.broker.config._broker_config import BrokerConfig
from trionet.broker.security._listener_security import listener_security
from trionet.net.wire._endpoint import Endpoint, SecurityProtocol

PREFIX = "listener.name.sasl_plaintext.oauthbearer."
HANDLER = f"{PREFIX}sasl.server.callback.handler.class"
UNSECURED = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured"
    ".OAuthBearerUnsecuredValidatorCallbackHandler"
)
SIGNED = {"sasl.oauthbearer.jwks.endpoint.url": "https://issuer.example/keys"}
AUDIENCE, ISSUER = "sasl.oauthbearer.expected.audience", "sasl.oauthbearer.expected.issuer"


def doubts(
    settings: dict[str, str], caplog: pytest.LogCaptureFixture, mechanism: str = "OAUTHBEARER"
) -> list[str]:
    config = BrokerConfig.from_settings({"sasl.enabled.mechanisms": mechanism, **settings})
    endpoint = Endpoint("SASL_PLAINTEXT", SecurityProtocol.SASL_PLAINTEXT, "127.0.0.1", 0)
    listener_security(config, endpoint, lambda _: lambda _: None).log_warnings()
    return caplog.messages


def test_unsigned_tokens_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    (told,) = doubts({HANDLER: UNSECURED}, caplog)

    assert told == (
        f"listener SASL_PLAINTEXT: {HANDLER} accepts unsigned tokens, so any client can"
        " authenticate as any user; use it only for testing"
    )


def test_tokens_for_any_audience_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    (told,) = doubts(SIGNED, caplog)

    assert told == (
        f"listener SASL_PLAINTEXT: without {AUDIENCE} and {ISSUER}, tokens issued for other"
        " services are accepted"
    )


@pytest.mark.parametrize("key", [AUDIENCE, ISSUER, PREFIX + AUDIENCE, PREFIX + ISSUER])
def test_of_tokens_for_us_there_is_no_doubt(key: str, caplog: pytest.LogCaptureFixture) -> None:
    assert [] == doubts({**SIGNED, key: "us"}, caplog)


def test_who_takes_no_tokens_hears_nothing_of_them(caplog: pytest.LogCaptureFixture) -> None:
    assert [] == doubts(SIGNED, caplog, "SCRAM-SHA-256")
