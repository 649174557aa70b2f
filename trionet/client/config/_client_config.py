"""The parsed configuration of a client, with each key checked individually."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

from ..._util._logging import get_logger
from ...errors import ConfigError
from ...protocol._config_types import STRING, Password, Value, parse_value, value_text
from ...protocol._wire import TEXT_BYTES_MAX
from ._keys import KERBEROS, ClientKeys

logger = get_logger("trionet.client")


def _lower(raw: object) -> object:
    return raw.lower() if isinstance(raw, str) else raw


def _upper(raw: object) -> object:
    return raw.upper() if isinstance(raw, str) else raw


def _number_as_text(raw: object) -> object:
    return str(raw) if isinstance(raw, int) and not isinstance(raw, bool) else raw


def _without_kerberos(raw: object) -> object:
    if raw == "GSSAPI":
        raise ConfigError(f"sasl.mechanism = GSSAPI: {KERBEROS}")
    return raw


# Kafka compares these case-insensitively (ConfigDef.CaseInsensitiveValidString; Java, for those of
# TLS), and `acks=1` is what Python users write.
_BEFORE_PARSING: Mapping[str, Callable[[object], object]] = MappingProxyType(
    {
        "acks": _number_as_text,
        "group.protocol": _lower,
        "metadata.recovery.strategy": _lower,
        "metrics.recording.level": _upper,
        "sasl.mechanism": _without_kerberos,
        "security.protocol": _upper,
        "ssl.endpoint.identification.algorithm": _lower,
        "ssl.keystore.type": _upper,
        "ssl.truststore.type": _upper,
    }
)


class ClientConfig:
    """An immutable configuration of valid keys and values.

    ``config[key]`` returns the value of one of Kafka's dotted keys, or its default. Each typed
    accessor may only be used for keys of its type. Keys are validated individually; the code that
    builds settings checks that their values are consistent with one another.

    Attributes:
        given: the explicitly set values, keyed by dotted key.
        keys: the keys of this kind of client.
    """

    __slots__ = ("given", "keys")

    def __init__(self, keys: ClientKeys, given: dict[str, Value]) -> None:
        self.keys = keys
        self.given: Mapping[str, Value] = MappingProxyType(given)

    def __getitem__(self, key: str) -> Value:
        if key in self.given:
            return self.given[key]
        return self.keys.applied[key][2]

    def __repr__(self) -> str:
        settings = ", ".join(f"{key}={value_text(value)}" for key, value in self.given.items())
        return f"ClientConfig({settings})"

    @property
    def without_effect(self) -> tuple[str, ...]:
        """The keys that were set although they have no effect."""
        return tuple(key for key in self.given if key in self.keys.without_effect)

    def integer(self, key: str) -> int:
        """Return the value of an integer key, in the key's own unit."""
        value = self[key]
        assert isinstance(value, int)
        return value

    def flag(self, key: str) -> bool:
        value = self[key]
        assert isinstance(value, bool)
        return value

    def text(self, key: str) -> str:
        value = self[key]
        assert isinstance(value, str)
        return value

    def optional(self, key: str) -> str | None:
        """Return the value of a string or secret key; None if it is unset or empty."""
        value = self[key]
        if isinstance(value, Password):
            value = value.text
        assert value is None or isinstance(value, str)
        return value or None

    def names(self, key: str) -> tuple[str, ...]:
        value = self[key]
        assert isinstance(value, tuple)
        return value

    def seconds(self, key: str) -> float:
        """Return the value of a millisecond key in seconds; infinite if the value is negative."""
        milliseconds = self.integer(key)
        return milliseconds / 1000 if milliseconds >= 0 else math.inf

    def report(self) -> None:
        """Log the keys that were set although they have no effect."""
        if self.without_effect:
            logger.info(
                "settings that have no effect for this %s: %s",
                self.keys.client,
                ", ".join(self.without_effect),
            )


def read_config(
    keys: ClientKeys, config: Mapping[str, object] | None, keywords: Mapping[str, object]
) -> ClientConfig:
    """Parse and check a client's settings.

    Args:
        keys: the keys of this kind of client.
        config: settings under Kafka's dotted keys. Values are strings as in a properties file, or
            Python values (in milliseconds if the key ends in ``.ms``); ``None`` leaves a key unset.
        keywords: settings under keys with underscores instead of dots, which take precedence over
            ``config``.

    Raises:
        TypeError: ``config`` is not a mapping.
        ConfigError: a key is unknown or not supported, or its value is not allowed; the message
            says what is allowed.
    """
    check_config(keys, config)
    if "timeout" in keywords:
        raise ConfigError(
            "timeout: unknown key; write `with trio.move_on_after(5):` around the calls that may"
            " take at most 5 seconds"
        )
    given: dict[str, Value] = {}
    for settings in (config or {}, keywords):
        for name, raw in settings.items():
            key, kind, _, rule = keys.row(name)
            before = _BEFORE_PARSING.get(key)
            value = parse_value(key, kind, rule, before(raw) if before else raw)
            _check_text(key, kind, value)
            given.pop(key, None)
            if value is not None:
                given[key] = value
    for key, value in given.items():
        _reject_unsupported(keys, key, value)
    return ClientConfig(keys, given)


def _check_text(key: str, kind: int, value: Value) -> None:
    """Check that a request can contain a text; if not, the client would fail at its first request.

    Raises:
        ConfigError: it cannot.
    """
    if kind != STRING or not isinstance(value, str) or key.endswith(".location"):
        return  # the name of a file may be any bytes
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise ConfigError(f"{key} = {value!a} cannot be encoded as UTF-8") from None
    if size > TEXT_BYTES_MAX:
        raise ConfigError(f"{key} has {size} bytes; allowed: at most {TEXT_BYTES_MAX}")


def check_config(keys: ClientKeys, config: object) -> None:
    """Check that a client's second argument is settings, rather than topics or a port.

    Raises:
        TypeError: it is neither a mapping of strings nor None.
    """
    if config is None:
        return
    if not isinstance(config, Mapping):
        raise TypeError(
            "expected settings as the second argument, such as {'client.id': 'shop'}, not"
            f" {config!r}; {keys.topics}"
        )
    for key in config:
        if not isinstance(key, str):
            raise TypeError(f"the keys of settings must be str, not {type(key).__name__}: {key!r}")


def _reject_unsupported(keys: ClientKeys, key: str, value: Value) -> None:
    unsupported = keys.unsupported.get(key)
    if unsupported is None or value == unsupported.row[2] or value in unsupported.harmless:
        return
    raise ConfigError(f"{key} = {value_text(value)!r} is not supported; {unsupported.advice}")


def check_nothing_beside(keywords: Mapping[str, object], *others: object) -> None:
    """Check that a settings object is not combined with other settings.

    Raises:
        TypeError: other settings are given.
    """
    if keywords or any(each is not None for each in others):
        raise TypeError("a settings object cannot be combined with keyword settings")
