"""The texts of options: names without regard to case, values read and checked one by one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from ...errors import ConfigError
from ...protocol._config_types import BOOLEAN, INT, LONG, Rule, nearest, parse_value

_KAFKA: Final = "kafka."

#: What Spark itself puts among the options of a source or a sink.
OF_SPARK: Final = frozenset({"checkpointlocation", "is_managed_location", "path", "queryname"})

# As Spark's own (JavaUtils.timeStringAs); a number without a unit is in milliseconds.
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
    """The options of one reader or writer.

    Args:
        options: as Spark hands them over; names in any case.

    Raises:
        ConfigError: two names differ in nothing but their case, and have different values.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self._texts: dict[str, str] = {}
        for name, text in options.items():
            key = name.lower()
            if self._texts.setdefault(key, text) != text:
                raise ConfigError(f"{name} stands there twice, with different values; give one")

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._texts

    def text(self, name: str) -> str | None:
        """A value as it was given, without spaces around it; None if it was not."""
        text = self._texts.get(name.lower())
        return None if text is None else text.strip()

    def flag(self, name: str, default: bool) -> bool:
        """True or false.

        Raises:
            ConfigError: it is neither.
        """
        value = parse_value(name, BOOLEAN, None, self.text(name))
        return default if value is None else bool(value)

    def integer(self, name: str, rule: Rule, kind: int = LONG) -> int | None:
        """An integer of Java's ``long``, or ``int``; None if it was not given.

        Args:
            name: of the option.
            rule: which are allowed.
            kind: ``LONG`` or ``INT``.

        Raises:
            ConfigError: it is none, or not allowed.
        """
        assert kind in {INT, LONG}
        value = parse_value(name, kind, rule, self.text(name))
        assert value is None or isinstance(value, int)
        return value

    def seconds(self, name: str, default: float) -> float:
        """A duration such as ``15m``; without a unit it is in milliseconds.

        Raises:
            ConfigError: it is none.
        """
        text = self.text(name)
        if text is None:
            return default
        found = _TIME.fullmatch(text.lower())
        unit = _UNIT_SECONDS.get(found[2] or "ms") if found else None
        if found is None or unit is None or int(found[1]) < 0:
            raise ConfigError(
                f"{name} = {text!r} is not allowed; allowed: a number and a unit, one of"
                f" {', '.join(_UNIT_SECONDS)}, such as 15m; without a unit in milliseconds"
            )
        return int(found[1]) * unit

    def of_kafka(self) -> dict[str, str]:
        """What begins with ``kafka.``, without that."""
        return {
            key.removeprefix(_KAFKA): text
            for key, text in self._texts.items()
            if key.startswith(_KAFKA)
        }

    def check_names(self, kind: str, known: Iterable[str], of_others: Mapping[str, str]) -> None:
        """Every option is known.

        Args:
            kind: what these are options of.
            known: its options, besides ``kafka.*``.
            of_others: options that only others have, and who.

        Raises:
            ConfigError: one is not; says what comes nearest and which there are.
        """
        names = {name.lower(): name for name in known}
        others = {name.lower(): who for name, who in of_others.items()}
        for key in sorted(self._texts):
            if key in names or key in OF_SPARK or key.startswith(_KAFKA):
                continue
            if key in others:
                raise ConfigError(f"{key}: no option of {kind}, but of {others[key]}; leave it out")
            hint = _nearest_name(key, names)
            raise ConfigError(
                f"{key}: unknown option{hint}; {kind} has {', '.join(sorted(names.values()))}, and"
                " kafka.* for the settings of the client"
            )


def _nearest_name(key: str, names: Mapping[str, str]) -> str:
    hint = nearest(key, names)
    found = hint.rpartition(" ")[2]
    return hint.replace(found, names[found]) if found else hint
