"""The effective settings of a listener and its SASL mechanisms.

A key may be set for all listeners or for one listener (``listener.name.<listener>.<key>``). A SASL
key may also be set for one mechanism of a listener
(``listener.name.<listener>.<mechanism>.<key>``). The most specific setting wins.
"""

from __future__ import annotations

from ...net.sasl._jaas import LoginModule, parse_jaas
from ...protocol._config_types import Password, Value
from ._broker_config import BrokerConfig


class ListenerSettings:
    """Reads the effective settings of one listener.

    Args:
        config: the broker's settings.
        listener_name: the listener's name, in any case.
    """

    def __init__(self, config: BrokerConfig, listener_name: str) -> None:
        self._config = config
        self._prefix = prefix = f"listener.name.{listener_name.lower()}."
        self._own = {
            key.lower().removeprefix(prefix): value
            for key, value in config.originals.items()
            if key.lower().startswith(prefix)
        }

    def value(self, key: str, mechanism: str | None = None) -> Value:
        """Return the most specific value of a key, or its default if it is not set."""
        if mechanism is not None:
            special = f"{mechanism.lower()}.{key}"
            if special in self._own:
                return self._own[special]
        return self._own.get(key, self._config[key])

    def is_set(self, key: str) -> bool:
        """Return whether the key is set for all listeners or for this listener."""
        return key in self._own or key in self._config.originals

    def own(self, key: str) -> Value:
        """Return the value that is set for this listener itself, or None."""
        return self._own.get(key)

    def name(self, key: str, mechanism: str) -> str:
        """Return the full name of a mechanism's key."""
        return f"{self._prefix}{mechanism.lower()}.{key}"

    def text(self, key: str, mechanism: str | None = None) -> str | None:
        """Return the value of a string or password key; None if unset or empty."""
        value = self.value(key, mechanism)
        if isinstance(value, Password):
            value = value.text
        assert value is None or isinstance(value, str)
        return value or None

    def integer(self, key: str, mechanism: str | None = None) -> int:
        value = self.value(key, mechanism)
        assert isinstance(value, int)
        return value

    def names(self, key: str, mechanism: str | None = None) -> tuple[str, ...]:
        value = self.value(key, mechanism)
        assert isinstance(value, tuple)
        return value

    def jaas(self, mechanism: str) -> LoginModule | None:
        """Return a mechanism's login module, or None.

        As in Kafka, ``sasl.jaas.config`` is read only if it is set for the listener's mechanism.
        """
        name = self.name("sasl.jaas.config", mechanism)
        value = self.own(f"{mechanism.lower()}.sasl.jaas.config")
        return parse_jaas(value.text, name) if isinstance(value, Password) else None
