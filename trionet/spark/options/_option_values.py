"""The options of a reader or writer, with case-insensitive names and checked values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from ...errors import ConfigError
from ...protocol._config_types import BOOLEAN, INT, LONG, Rule, nearest, parse_value

_KAFKA: Final = "kafka."

#: Options that Spark itself adds to those of a source or a sink.
OF_SPARK: Final = frozenset({"checkpointlocation", "is_managed_location", "path", "queryname"})

# The same as Spark's (JavaUtils.timeStringAs); a number without a unit is in milliseconds.
_TIME: Final = re.compile(r"(-?[0-9]{1,18})([a-z]+)?")
_UNIT_SECONDS: Final = {
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86_400.0,
}


class OptionTexts:
    """The options of a reader or writer, as text.

    Args:
        options: the options from Spark; their names are case-insensitive.

    Raises:
        ConfigError: two names that differ only in case have different values.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self._texts: dict[str, str] = {}
        for name, text in options.items():
            key = name.lower()
            if self._texts.setdefault(key, text) != text:
                raise ConfigError(f"option {name} is set twice, to different values; remove one")

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._texts

    def text(self, name: str) -> str | None:
        """Return the value of an option, stripped of whitespace, or None if it is not set."""
        text = self._texts.get(name.lower())
        return None if text is None else text.strip()

    def flag(self, name: str, default: bool) -> bool:
        """Return the value of a boolean option.

        Raises:
            ConfigError: the value is neither true nor false.
        """
        value = parse_value(name, BOOLEAN, None, self.text(name))
        return default if value is None else bool(value)

    def integer(self, name: str, rule: Rule, kind: int = LONG) -> int | None:
        """Return the value of an integer option, or None if it is not set.

        Args:
            name: the name of the option.
            rule: the allowed values.
            kind: the range of the integer: ``LONG`` or ``INT``.

        Raises:
            ConfigError: the value is not an integer, or is not allowed.
        """
        assert kind in {INT, LONG}
        value = parse_value(name, kind, rule, self.text(name))
        assert value is None or isinstance(value, int)
        return value

    def seconds(self, name: str, default: float) -> float:
        """Return the value of a duration option, in seconds.

        The value has a unit, such as ``15m``; without one, it is in milliseconds.

        Raises:
            ConfigError: the value is not a duration.
        """
        text = self.text(name)
        if text is None:
            return default
        found = _TIME.fullmatch(text.lower())
        unit = _UNIT_SECONDS.get(found[2] or "ms") if found else None
        if found is None or unit is None or int(found[1]) < 0:
            raise ConfigError(
                f"{name} = {text!r} is not a duration; expected a number with a unit, such as 15m,"
                f" or without one, in milliseconds; units: {', '.join(_UNIT_SECONDS)}"
            )
        return int(found[1]) * unit

    def of_kafka(self) -> dict[str, str]:
        """Return the ``kafka.*`` options, without the prefix."""
        return {
            key.removeprefix(_KAFKA): text
            for key, text in self._texts.items()
            if key.startswith(_KAFKA)
        }

    def check_names(self, kind: str, known: Iterable[str], of_others: Mapping[str, str]) -> None:
        """Check that every option is known.

        Args:
            kind: what the options belong to, such as "a source".
            known: the names of its options, other than ``kafka.*``.
            of_others: options that belong to something else, each with what it belongs to.

        Raises:
            ConfigError: an option is unknown; the message lists the known options.
        """
        names = {name.lower(): name for name in known}
        others = {name.lower(): owner for name, owner in of_others.items()}
        for key in sorted(self._texts):
            if key in names or key in OF_SPARK or key.startswith(_KAFKA):
                continue
            if key in others:
                raise ConfigError(
                    f"{key}: not an option of {kind}, only of {others[key]}; remove it"
                )
            hint = _nearest_name(key, names)
            raise ConfigError(
                f"{key}: unknown option{hint}; options of {kind}:"
                f" {', '.join(sorted(names.values()))}, and kafka.* for settings of the client"
            )


def _nearest_name(key: str, names: Mapping[str, str]) -> str:
    hint = nearest(key, names)
    found = hint.rpartition(" ")[2]
    return hint.replace(found, names[found]) if found else hint
