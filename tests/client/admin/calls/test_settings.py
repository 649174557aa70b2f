from __future__ import annotations

import pytest

from trionet.client._backoff import ExponentialBackoff
from trionet.client.admin._calls import AdminSettings, admin_settings
from trionet.errors import ConfigError


def test_keys_become_settings() -> None:
    settings = admin_settings(
        {"default.api.timeout.ms": "5000", "retries": 7, "retry.backoff.ms": 20},
        {"retries": 3, "request_timeout_ms": 1500, "client_id": "ops"},
    )

    assert (5.0, 3, ExponentialBackoff(0.02, 1.0)) == (
        settings.api_timeout_seconds,
        settings.retries,
        settings.retry,
    )
    assert (1.5, "ops") == (
        settings.client.requests.timeout_seconds,
        settings.client.requests.client_id,
    )


def test_without_anything_the_settings_are_kafkas() -> None:
    actual, expected = admin_settings(None, {}), AdminSettings()

    assert (60.0, 2**31 - 1, 300.0) == (
        actual.api_timeout_seconds,
        actual.retries,
        actual.client.idle_seconds_max,
    )
    assert (expected.api_timeout_seconds, expected.retries, expected.retry) == (
        actual.api_timeout_seconds,
        actual.retries,
        actual.retry,
    )


def test_a_longer_request_timeout_allows_a_call_as_long(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert 90.0 == admin_settings(None, {"request_timeout_ms": 90_000}).api_timeout_seconds
    assert "default.api.timeout.ms is not set, and its default is lower" in caplog.text
    both = {"request_timeout_ms": 90_000, "default_api_timeout_ms": 7000}
    assert 7.0 == admin_settings(None, both).api_timeout_seconds


def test_unknown_key_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match=r"retries"):
        admin_settings(None, {"retrys": 3})


def test_made_settings_are_taken_as_they_are_and_alone() -> None:
    made = AdminSettings(api_timeout_seconds=1.0)

    assert made is admin_settings(made, {})
    with pytest.raises(TypeError):
        admin_settings(made, {"retries": 3})
