"""Who may read metrics, as the settings say."""

from __future__ import annotations

import sys

import pytest

from trionet import ConfigError
from trionet.broker.config._broker_config import BrokerConfig
from trionet.broker.telemetry._broker_metrics import MetricsSettings, metrics_settings

TOKEN = "a token of 24 characters".replace(" ", "-")


def read(**settings: object) -> MetricsSettings:
    return metrics_settings(BrokerConfig.from_settings(settings))


def test_without_a_listener_there_is_none() -> None:
    assert MetricsSettings(None, None, 2, 30.0) == read()


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("http://127.0.0.1:9404", "127.0.0.1", 9404),
        ("HTTP://localhost:0", "localhost", 0),
        ("http://[::1]:9404", "::1", 9404),
        ("http://127.8.9.1:1", "127.8.9.1", 1),
    ],
)
def test_this_machine_needs_neither_tls_nor_a_token(url: str, host: str, port: int) -> None:
    settings = read(metrics_listener=url)

    assert settings.endpoint is not None
    assert (host, port) == (settings.endpoint.host, settings.endpoint.port)
    assert (None, False) == (settings.token, settings.is_secure)


@pytest.mark.parametrize("host", ["0.0.0.0", "", "192.0.2.1", "[::]", "metrics.example"])
def test_other_machines_need_tls_and_a_token(host: str) -> None:
    settings = read(metrics_listener=f"https://{host}:9404", metrics_listener_token=TOKEN)

    assert settings.is_secure
    assert TOKEN == settings.token


@pytest.mark.parametrize("host", ["0.0.0.0", "", "192.0.2.1", "[::]", "metrics.example"])
@pytest.mark.parametrize(("scheme", "token"), [("http", TOKEN), ("https", None), ("http", None)])
def test_what_other_machines_could_read_is_refused(
    host: str, scheme: str, token: str | None
) -> None:
    with pytest.raises(ConfigError, match=r"can be reached from other machines.*use .*https"):
        read(metrics_listener=f"{scheme}://{host}:9404", metrics_listener_token=token)


@pytest.mark.parametrize(
    "url",
    ["127.0.0.1:9404", "ftp://127.0.0.1:1", "http://127.0.0.1", "http://127.0.0.1:x", "http:"],
)
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match=r"metrics\.listener = .* allowed: http://HOST:PORT"):
        read(metrics_listener=url)


@pytest.mark.parametrize("token", ["short", "with a space in the middle", "ä" * 20])
def test_a_token_that_can_be_guessed_or_not_sent_is_refused_and_not_quoted(token: str) -> None:
    with pytest.raises(ConfigError, match=r"metrics\.listener\.token is not allowed") as refused:
        read(metrics_listener="http://127.0.0.1:0", metrics_listener_token=token)

    assert token not in str(refused.value)


def test_the_token_does_not_show() -> None:
    settings = read(metrics_listener="https://[::]:0", metrics_listener_token=TOKEN)

    assert TOKEN not in repr(settings)


def test_without_h11_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h11", None)

    with pytest.raises(ConfigError, match=r"pip install trionet\[metrics\]"):
        read(metrics_listener="http://127.0.0.1:0")


def test_the_windows_of_rates_are_kafkas_settings() -> None:
    settings = read(metrics_num_samples=3, metrics_sample_window_ms=10_000)

    assert (3, 10.0) == (settings.samples, settings.sample_seconds)
