"""Keys as they hold for one listener, and for one SASL mechanism of it.

Each may be set for all listeners, for one (``listener.name.<listener>.<key>``) and, for SASL, for
one mechanism of a listener (``listener.name.<listener>.<mechanism>.<key>``); the most special one
wins.
"""

from __future__ import annotations

from ...net.sasl._jaas import LoginModule, parse_jaas
from ...protocol._config_types import Password, Value
from ._broker_config import BrokerConfig


class ListenerSettings:
    """Reads keys as they hold for one listener.

    Args:
        config: of the broker.
        listener_name: in any case.
    """

    def __init__(self, config: BrokerConfig, listener_name: str) -> None:
        self._config = config
        self._prefix = prefix = f"listener.name.{listener_name.lower()}."
        self._own = {
            key.lower().removeprefix(prefix): value
            for key, value in config.given.items()
            if key.lower().startswith(prefix)
        }

    def value(self, key: str, mechanism: str | None = None) -> Value:
        """The most special value, or else the default."""
        if mechanism is not None:
            special = f"{mechanism.lower()}.{key}"
            if special in self._own:
                return self._own[special]
        return self._own.get(key, self._config[key])

    def is_set(self, key: str) -> bool:
        """Whether there is a value for all listeners, or for this one, that is no default."""
        return key in self._own or key in self._config.given

    def own(self, key: str) -> Value:
        """The value for this very listener, None without one."""
        return self._own.get(key)

    def name(self, key: str, mechanism: str) -> str:
        """A key of one mechanism, in full."""
        return f"{self._prefix}{mechanism.lower()}.{key}"

    def text(self, key: str, mechanism: str | None = None) -> str | None:
        """A text or a password, None if unset or empty."""
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
        """The login module of a mechanism; as in Kafka, only a key with its name counts."""
        name = self.name("sasl.jaas.config", mechanism)
        value = self.own(f"{mechanism.lower()}.sasl.jaas.config")
        return parse_jaas(value.text, name) if isinstance(value, Password) else None
