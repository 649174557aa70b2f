"""Settings that do not fit together are told of."""

from __future__ import annotations

from typing import Any

import pytest

from trionet.client.security._settings import SaslClientSettings, SecuritySettings
from trionet.errors import ConfigError
from trionet.net.wire._endpoint import SecurityProtocol


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {"mechanism": "GSSAPI"},
            "unsupported sasl.mechanism = 'GSSAPI'; allowed: PLAIN, SCRAM-SHA-256",
        ),
        ({"mechanism": "PLAIN", "user_name": "alice"}, "requires a user name and a password"),
        ({"mechanism": "SCRAM-SHA-512", "password": "x"}, "requires a user name and a password"),
        ({"mechanism": "OAUTHBEARER"}, "requires either a function that returns tokens"),
        (
            {
                "mechanism": "PLAIN",
                "user_name": "alice",
                "password": "x",
                "is_delegation_token": True,
            },
            "a delegation token cannot be used with sasl.mechanism = 'PLAIN'",
        ),
    ],
)
def test_sasl_needs_what_its_mechanism_proves_us_by(given: dict[str, Any], expected: str) -> None:
    """A16."""
    with pytest.raises(ConfigError, match=expected):
        SaslClientSettings(**given)


@pytest.mark.parametrize("protocol", [SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL])
def test_a_protocol_with_sasl_needs_its_settings(protocol: SecurityProtocol) -> None:
    with pytest.raises(ConfigError, match=r"requires sasl\.mechanism"):
        SecuritySettings(protocol=protocol)


def test_secrets_are_not_shown() -> None:
    """A6."""
    sasl = SaslClientSettings(mechanism="PLAIN", user_name="alice", password="hush")

    assert "hush" not in repr(SecuritySettings(sasl=sasl))
