"""What one client was given, read and checked key by key."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

from ...errors import ConfigError
from ...protocol._config_types import Password, Value, parse_value, value_text
from ._keys import ClientKeys

logger = logging.getLogger("trionet.client")


def _lower(raw: object) -> object:
    return raw.lower() if isinstance(raw, str) else raw


def _upper(raw: object) -> object:
    return raw.upper() if isinstance(raw, str) else raw


def _number_as_text(raw: object) -> object:
    return str(raw) if isinstance(raw, int) and not isinstance(raw, bool) else raw


# Kafka compares these without regard to case (ConfigDef.CaseInsensitiveValidString), and `acks=1`
# is what Python's users write.
_BEFORE_PARSING: Mapping[str, Callable[[object], object]] = MappingProxyType(
    {
        "acks": _number_as_text,
        "group.protocol": _lower,
        "metadata.recovery.strategy": _lower,
        "metrics.recording.level": _upper,
        "security.protocol": _upper,
    }
)


class ClientConfig:
    """An immutable configuration whose keys and values are allowed, each by itself.

    ``config[key]`` reads a value, or else its default, by Kafka's dotted key; the typed reads are
    for keys that have such a value.

    Attributes:
        given: what was set, by dotted key.
        keys: of the kind of client that this is for.
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
    def without_meaning(self) -> tuple[str, ...]:
        """The keys set that change nothing here."""
        return tuple(key for key in self.given if key in self.keys.without_meaning)

    def integer(self, key: str) -> int:
        """An integer, in the unit of the key."""
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
        """A text or a secret; None if it is not set, or empty."""
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
        """A duration that the key has in milliseconds; a negative one is for ever."""
        milliseconds = self.integer(key)
        return milliseconds / 1000 if milliseconds >= 0 else math.inf

    def report(self) -> None:
        """Tell in the log what has no effect: accepted is not the same as applied."""
        if self.without_meaning:
            logger.info(
                "without meaning for this %s: %s", self.keys.client, ", ".join(self.without_meaning)
            )


def read_config(
    keys: ClientKeys, config: Mapping[str, object] | None, keywords: Mapping[str, object]
) -> ClientConfig:
    """Check settings and make a configuration of them.

    Args:
        keys: of the kind of client.
        config: by Kafka's dotted keys. Values are texts as in a properties file, or Python values
            (durations in milliseconds where the key ends in ``.ms``); ``None`` leaves a key unset.
        keywords: the same with underscores for dots; they win.

    Raises:
        ConfigError: a key is unknown, asks for what trionet does not have, or its value is not
            allowed; says which is.
    """
    given: dict[str, Value] = {}
    for settings in (config or {}, keywords):
        for name, raw in settings.items():
            key, kind, _, rule = keys.row(name)
            before = _BEFORE_PARSING.get(key)
            value = parse_value(key, kind, rule, before(raw) if before else raw)
            given.pop(key, None)
            if value is not None:
                given[key] = value
    for key, value in given.items():
        _refuse(keys, key, value)
    return ClientConfig(keys, given)


def _refuse(keys: ClientKeys, key: str, value: Value) -> None:
    refusal = keys.refused.get(key)
    if refusal is None or value == refusal.row[2] or value in refusal.harmless:
        return
    raise ConfigError(f"{key} = {value_text(value)!r} is not supported; allowed: {refusal.advice}")


def check_nothing_beside(keywords: Mapping[str, object], *others: object) -> None:
    """Settings that are made already are not changed by keywords.

    Raises:
        TypeError: there are some.
    """
    if keywords or any(each is not None for each in others):
        raise TypeError("settings that are made already take no keywords beside them")
