"""The settings of the metrics and of the metrics listener."""

from __future__ import annotations

import importlib.util
import ipaddress

import attrs

from ...errors import ConfigError
from ...net.wire._endpoint import Endpoint, SecurityProtocol
from ...protocol._config_types import Password
from ..config._broker_config import BrokerConfig

# The metrics listener's name in keys, such as `listener.name.metrics.ssl.keystore.location`.
LISTENER_NAME = "METRICS"
_PROTOCOLS = {"http": SecurityProtocol.PLAINTEXT, "https": SecurityProtocol.SSL}
_FORM = "http://HOST:PORT or https://HOST:PORT, such as http://127.0.0.1:9404"
# Shorter tokens could be guessed.
TOKEN_CHARS_MIN = 16


@attrs.frozen
class MetricsSettings:
    """The settings of the metrics and of the metrics listener.

    Attributes:
        endpoint: the address of the metrics listener; None without a metrics listener.
        token: the token that HTTP clients must send; None if no token is required.
        samples: the value of ``metrics.num.samples``.
        sample_seconds: the value of ``metrics.sample.window.ms``, in seconds.
    """

    endpoint: Endpoint | None
    token: str | None = attrs.field(repr=False)
    samples: int
    sample_seconds: float

    @property
    def is_secure(self) -> bool:
        """Whether the metrics listener uses TLS."""
        return self.endpoint is not None and self.endpoint.security_protocol is SecurityProtocol.SSL


def metrics_settings(config: BrokerConfig) -> MetricsSettings:
    """Validate the metrics settings of a broker, and return them.

    Raises:
        ConfigError: ``metrics.listener`` is not a valid URL, or other machines could reach it
            without TLS and a token; the token is too short or has invalid characters; or h11 is not
            installed.
    """
    url = config["metrics.listener"]
    token = config["metrics.listener.token"]
    text = token.text if isinstance(token, Password) else None
    if text is not None and (len(text) < TOKEN_CHARS_MIN or not text.isascii() or " " in text):
        raise ConfigError(
            f"metrics.listener.token is not allowed; it must have at least {TOKEN_CHARS_MIN} ASCII"
            " characters and no spaces"
        )
    endpoint = _endpoint(url) if isinstance(url, str) and url else None
    if endpoint is not None:
        _check(endpoint, has_token=text is not None)
    return MetricsSettings(
        endpoint,
        text,
        config.integer("metrics.num.samples"),
        config.integer("metrics.sample.window.ms") / 1000,
    )


def _endpoint(url: str) -> Endpoint:
    scheme, separator, rest = url.partition("://")
    protocol = _PROTOCOLS.get(scheme.lower())
    if not separator or protocol is None:
        raise ConfigError(f"metrics.listener = {url!r} is not allowed; allowed: {_FORM}")
    try:
        found = Endpoint.parse(f"{LISTENER_NAME}://{rest}", {LISTENER_NAME: protocol})
    except ConfigError:
        raise ConfigError(f"metrics.listener = {url!r} is not allowed; allowed: {_FORM}") from None
    return found


def _check(endpoint: Endpoint, *, has_token: bool) -> None:
    is_secure = endpoint.security_protocol is SecurityProtocol.SSL
    if not _is_loopback(endpoint.host) and not (is_secure and has_token):
        raise ConfigError(
            f"metrics.listener: {endpoint.address} can be reached from other machines, and metrics"
            " identify the broker's clients; use a loopback address such as 127.0.0.1, or https"
            " with metrics.listener.token"
        )
    if not _is_installed("h11"):
        raise ConfigError(
            "metrics.listener requires h11; install it with: pip install trionet[metrics]"
        )


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ValueError:  # sys.modules has None for it, after an import that failed
        return False


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
