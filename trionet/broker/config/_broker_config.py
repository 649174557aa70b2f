"""The broker's configuration: Kafka's keys and defaults, validated before the broker starts.

A known key is either applied by this version, without effect on a single node, or not applied by
this version; all three kinds are accepted. An unknown key that resembles a known one raises an
error that suggests it. Any other unknown key is accepted, as Kafka does: vendors have keys of their
own, and files keep keys that Kafka has removed. What has no effect is logged at startup.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from ..._util._text import closest, nearest
from ...errors import ConfigError
from ...net.sasl._jaas import LoginModule, parse_jaas
from ...net.wire._endpoint import Endpoint
from ...protocol._config_types import (
    PASSWORD,
    Password,
    Row,
    Value,
    parse_value,
    value_text,
)
from ._broker_keys import (
    APPLIED,
    DYNAMIC_ONLY,
    INTERNAL,
    NO_EFFECT,
    NO_OP_VALUES,
    NOT_APPLIED,
    REMOVED,
    TRIONET_KEYS,
)
from ._listeners import (
    LISTENER_PREFIX,
    MECHANISMS,
    advertised_listeners,
    bound_listeners,
    can_be_set,
    is_applied,
    protocol_map,
    split_listener_key,
)

BROKER_KEYS: dict[str, Row] = {
    row[0]: row
    for table in (APPLIED, TRIONET_KEYS, NO_EFFECT, DYNAMIC_ONLY, NOT_APPLIED, INTERNAL)
    for row in table
}

_NO_EFFECT_KEYS = frozenset(row[0] for row in (*NO_EFFECT, *DYNAMIC_ONLY))
_APPLIED_KEYS = frozenset(row[0] for row in (*APPLIED, *TRIONET_KEYS))

# Settings of classes plugged into Kafka. Their types are unknown, so their values are redacted.
_PLUGIN_PREFIXES = ("rsm.config.", "rlmm.config.", "config.providers.")
# The memory that each of the cleaner's threads needs more than (KafkaConfig.validateValues).
_CLEANER_BYTES = 1024 * 1024
# The least similarity of an unknown key to a known one for which it is taken for a mistake, and of
# the name of a mechanism. Keys of vendors, such as confluent.ssl.truststore.location, have up to
# 0.82; most mistakes of one or two letters have more than 0.9.
_KEY_SIMILARITY = 0.85
_MECHANISM_SIMILARITY = 0.6
# What the first word of a key resembles that was to be one of a listener.
_OF_LISTENERS = ("listener", "listener.name")


class BrokerConfig:
    """An immutable, validated configuration; ``config[key]`` reads a value by Kafka's dotted key.

    The typed accessors :meth:`integer`, :meth:`real`, :meth:`flag`, :meth:`text` and :meth:`names`
    raise ``TypeError`` if the value has another type or is ``None``. Like ``config[key]``, they
    raise ``KeyError`` if the key is neither known nor set.
    """

    originals: Mapping[str, Value]
    """The settings by key. If ``node.id`` or ``broker.id`` is set, both are present."""

    node_id: int
    """The value of ``node.id``, or else of ``broker.id``."""

    listeners: tuple[Endpoint, ...]
    """The listeners, excluding KRaft controller listeners."""

    log_dir: str | None
    """The single directory in ``log.dirs`` or ``log.dir``; ``None`` if neither is set."""

    without_effect: tuple[str, ...]
    """The keys that are set but have no effect on a single node."""

    not_applied: tuple[str, ...]
    """``key=value`` of each setting that this version does not apply."""

    unknown_listener_keys: tuple[str, ...]
    """The keys that are set for listeners that do not exist."""

    unknown: tuple[str, ...]
    """The keys that are set and unknown: those of vendors, and those that Kafka has removed."""

    def __init__(self, originals: dict[str, Value], problems: Collection[str] = ()) -> None:
        """Validate parsed settings together; call :meth:`from_settings` to create a config.

        Args:
            originals: the values by key.
            problems: the problems that were found in parsing them.

        Raises:
            ConfigError: there is a problem; its ``args`` are all problems.
        """
        found = list(problems)
        for check in _CHECKS:
            with noting(found):
                check(originals)
        self.originals = MappingProxyType(originals)
        self.node_id = self.integer("node.id")
        with noting(found):
            self.log_dir = _one_folder(originals)
        controllers = frozenset(name.upper() for name in self.names("controller.listener.names"))
        with noting(found):
            self._read_listeners(controllers)
        if found:
            raise ConfigError(*found)
        self.without_effect = tuple(key for key in originals if _is_ignored(key, controllers))
        self.unknown = tuple(filter(_is_unknown, originals))
        self.not_applied = tuple(_not_applied(originals, (*self.without_effect, *self.unknown)))
        names = {endpoint.listener_name for endpoint in self.listeners} | controllers
        if originals.get("metrics.listener"):
            names.add("METRICS")
        self.unknown_listener_keys = tuple(key for key in originals if _is_of_none(key, names))

    def _read_listeners(self, controllers: frozenset[str]) -> None:
        map_text = self.text("listener.security.protocol.map")
        has_map = "listener.security.protocol.map" in self.originals
        protocols = protocol_map(map_text if has_map else None, controllers)
        self.listeners = bound_listeners(self.names("listeners"), protocols, controllers)
        has_advertised = "advertised.listeners" in self.originals
        self._advertised = advertised_listeners(
            self.names("advertised.listeners") if has_advertised else None,
            self.listeners,
            protocols,
            controllers,
        )

    @classmethod
    def from_settings(
        cls, settings: Mapping[str, object], arguments: Collection[str] = ()
    ) -> BrokerConfig:
        """Validate settings and build a configuration.

        Args:
            settings: the values by key. Keys are Kafka's dotted keys, or keyword arguments with
                underscores instead of dots: ``{"num.partitions": 3}`` is the same as
                ``num_partitions=3``. Values are strings as in ``server.properties``, or Python
                values (in milliseconds if the key ends in ``.ms``). ``None`` leaves the key unset.
                If a key occurs in both spellings, the later value wins.
            arguments: what the caller's user can pass beside settings, which the error about an
                unknown key may suggest as well.

        Raises:
            ConfigError: keys are unknown, values are not allowed, or settings conflict; its
                ``args`` are all problems.
        """
        originals: dict[str, Value] = {}
        problems: list[str] = []
        for name, raw in settings.items():
            with noting(problems):
                key, kind, _, rule = find_key(name, arguments)
                value = parse_value(key, kind, rule, raw)
                originals.pop(key, None)
                if value is not None:
                    originals[key] = value
        return cls(originals, problems)

    def __getitem__(self, key: str) -> Value:
        try:
            return self.originals[key]
        except KeyError:
            return BROKER_KEYS[key][2]

    def __repr__(self) -> str:
        settings = ", ".join(f"{key}={value_text(value)}" for key, value in self.originals.items())
        return f"BrokerConfig({settings})"

    def integer(self, key: str) -> int:
        """Return the value of an integer key: a count, a size in bytes or a duration."""
        value = self[key]
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        raise _wrong_type(key, value, "an integer")

    def real(self, key: str) -> float:
        """Return the value of a numeric key that may have a fraction."""
        value = self[key]
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
        raise _wrong_type(key, value, "a number")

    def flag(self, key: str) -> bool:
        """Return the value of a boolean key."""
        value = self[key]
        if isinstance(value, bool):
            return value
        raise _wrong_type(key, value, "true or false")

    def text(self, key: str) -> str:
        """Return the value of a string key."""
        value = self[key]
        if isinstance(value, str):
            return value
        raise _wrong_type(key, value, "a string")

    def names(self, key: str) -> tuple[str, ...]:
        """Return the value of a list key."""
        value = self[key]
        if isinstance(value, tuple):
            return value
        raise _wrong_type(key, value, "a list")

    def advertised(self, listener_name: str) -> Endpoint:
        """Return the address that a listener advertises; port 0 stands for the bound port.

        Args:
            listener_name: the name of the listener, in upper case.

        Raises:
            KeyError: there is no such listener.
        """
        return self._advertised[listener_name]


def check_settings(settings: object) -> None:
    """Check that the first argument of ``open_broker`` is settings, rather than topics.

    Raises:
        TypeError: it is neither a mapping nor None.
    """
    if settings is not None and not isinstance(settings, Mapping):
        raise TypeError(
            "expected settings as the first argument, such as {'num.partitions': 3}, not"
            f" {settings!r}; the topics to create are the keyword topics"
        )


@contextmanager
def noting(problems: list[str]) -> Iterator[None]:
    """Add an error of the block to the problems, so that all of them are reported at once."""
    try:
        yield
    except ConfigError as error:
        problems.extend(error.args)


def find_key(name: str, arguments: Collection[str] = ()) -> Row:
    """Return the definition of a key, written with dots or with underscores.

    The value of an unknown key is secret, since its type is unknown.

    Args:
        name: the key.
        arguments: further names that the error may suggest.

    Raises:
        ConfigError: the key is unknown, and either resembles a known one, which the message names,
            or is no key that a broker could have.
    """
    key = name if "." in name else name.replace("_", ".")
    if key in BROKER_KEYS:
        return BROKER_KEYS[key]
    if key.startswith(LISTENER_PREFIX):
        return _find_listener_key(key)
    if key.startswith(_PLUGIN_PREFIXES) or _is_removed(name):
        return key, PASSWORD, None, None
    first, dot, rest = name.partition(".")
    near = closest(name, BROKER_KEYS, _KEY_SIMILARITY)
    if near is None and dot and closest(first, _OF_LISTENERS, _KEY_SIMILARITY) is not None:
        # A wrong letter must not leave a listener less safe.
        raise ConfigError(f"{key}: unknown key; keys of a listener begin with {LISTENER_PREFIX}")
    # Without a dot, it is a keyword argument, or of another kind of file. Keys of vendors have one.
    # Plug-ins that connect somewhere set their own ssl.truststore.location, with a prefix.
    if dot and near in (None, rest):
        return key, PASSWORD, None, None
    raise ConfigError(f"{key}: unknown key{nearest(key, (*BROKER_KEYS, *arguments))}")


def _is_removed(name: str) -> bool:
    """Whether Kafka has removed a key. Only files have them, so they are written with dots."""
    return name in REMOVED or name.startswith("zookeeper.")


def is_not_applied(key: str) -> bool:
    """Whether a key belongs to a Kafka feature that this version does not support."""
    return key not in _APPLIED_KEYS and key not in _NO_EFFECT_KEYS


def _find_listener_key(key: str) -> Row:
    listener, mechanism, base = split_listener_key(key)
    if base in BROKER_KEYS and can_be_set(mechanism, base):
        _, kind, _, rule = BROKER_KEYS[base]
        return key, kind, None, rule
    first, dot, _ = base.partition(".")
    # A wrong letter in the name of a mechanism must not leave the listener less safe.
    if (
        dot
        and mechanism is None
        and closest(first, MECHANISMS, _MECHANISM_SIMILARITY) is None
        and closest(base, BROKER_KEYS, _KEY_SIMILARITY) is None
    ):
        return key, PASSWORD, None, None
    prefix = f"{LISTENER_PREFIX}{listener.lower()}."
    raise ConfigError(
        f"{key}: unknown key; allowed: {prefix}KEY with a broker key, and"
        f" {prefix}MECHANISM.KEY with a SASL key and one of the mechanisms"
        f" {', '.join(sorted(MECHANISMS)).lower()}"
    )


def _wrong_type(key: str, value: Value, expected: str) -> TypeError:
    return TypeError(f"{key} is {value!r}, expected {expected}")


def _set_node_id(originals: dict[str, Value]) -> None:
    """Set both ``node.id`` and ``broker.id`` if either is set.

    (Kafka: AbstractKafkaConfig.populateSynonyms.)
    """
    if originals.get("broker.id") == -1:
        del originals["broker.id"]
    node_id, broker_id = originals.get("node.id"), originals.get("broker.id")
    if node_id is not None and broker_id is not None and node_id != broker_id:
        raise ConfigError(
            f"node.id = {node_id} and broker.id = {broker_id} differ; set only one of"
            " them, or both to the same value"
        )
    if node_id is not None or broker_id is not None:
        originals["node.id"] = originals["broker.id"] = broker_id if node_id is None else node_id


def _check_role(originals: Mapping[str, Value]) -> None:
    roles = originals.get("process.roles")
    if isinstance(roles, tuple) and "broker" not in roles:
        raise ConfigError(
            f"process.roles = {','.join(roles)!r} must be broker or broker,controller"
        )


def _one_folder(originals: Mapping[str, Value]) -> str | None:
    key = "log.dirs" if "log.dirs" in originals else "log.dir"
    folders = originals.get(key)
    if folders is None:
        return None
    assert isinstance(folders, tuple)
    if len(folders) != 1 or not folders[0]:
        raise ConfigError(
            f"{key} = {','.join(folders)!r} must name exactly one directory, since this version"
            " keeps all its data in one directory"
        )
    return folders[0]


def _check_authorizer(originals: Mapping[str, Value]) -> None:
    if originals.get("authorizer.class.name"):
        raise ConfigError(
            f"authorizer.class.name = {originals['authorizer.class.name']!r} is not supported;"
            " leave it out: this version has no access control and would admit every client"
        )


def _check_retention(originals: Mapping[str, Value]) -> None:
    for unit in ("ms", "minutes", "hours"):
        if originals.get(f"log.retention.{unit}") == 0:
            raise ConfigError(f"log.retention.{unit} must be -1 or at least 1, not 0")


def _check_lag(originals: Mapping[str, Value]) -> None:
    """Reject defaults with which no topic could be created.

    (Kafka: LogConfig.validateBrokerLogConfigValues.) Topics inherit both, and their own settings
    are checked together with what they inherit.
    """
    lowest, highest = (f"log.cleaner.{end}.compaction.lag.ms" for end in ("min", "max"))
    if _number(originals, lowest) > _number(originals, highest):
        raise ConfigError(
            f"{lowest} = {_number(originals, lowest)} must not be greater than {highest} ="
            f" {_number(originals, highest)}"
        )


def _check_assignment(originals: Mapping[str, Value]) -> None:
    for kind in ("consumer", "share", "streams"):
        key = f"group.{kind}.assignment.interval.ms"
        lowest, highest = (f"group.{kind}.{end}.assignment.interval.ms" for end in ("min", "max"))
        if not _number(originals, lowest) <= _number(originals, key) <= _number(originals, highest):
            raise ConfigError(
                f"{key} = {originals.get(key)} must be from {lowest} to {highest}:"
                f" {_number(originals, lowest)} to {_number(originals, highest)}"
            )


def _number(originals: Mapping[str, Value], key: str) -> int:
    value = originals.get(key, BROKER_KEYS[key][2])
    assert isinstance(value, int)
    return value


def _check_cleaner(originals: Mapping[str, Value]) -> None:
    """Reject a buffer that would be too small for the threads that share it."""
    size_key, threads_key = "log.cleaner.dedupe.buffer.size", "log.cleaner.threads"
    size, threads = _number(originals, size_key), _number(originals, threads_key)
    if size // max(threads, 1) <= _CLEANER_BYTES:
        raise ConfigError(
            f"{size_key} = {size} must be more than {_CLEANER_BYTES} for each of the {threads}"
            f" {threads_key}"
        )


def _check_delay(originals: Mapping[str, Value]) -> None:
    """Reject a failed-authentication delay that is not shorter than the idle timeout."""
    idle_key, delay_key = "connections.max.idle.ms", "connection.failed.authentication.delay.ms"
    idle_ms = _number(originals, idle_key)
    delays = {delay_key: BROKER_KEYS[delay_key][2]} | {
        key: value
        for key, value in originals.items()
        if key == delay_key or (_is_of_listener(key) and key.endswith(f".{delay_key}"))
    }
    for key, delay_ms in delays.items():
        assert isinstance(delay_ms, int)
        if 0 <= idle_ms <= delay_ms:
            raise ConfigError(
                f"{key} = {delay_ms} must be less than {idle_key} = {idle_ms}, so that"
                " clients receive the reason why authentication failed"
            )


# Each rejects settings that are invalid, or would be unsafe to ignore.
_CHECKS: tuple[Callable[[dict[str, Value]], None], ...] = (
    _set_node_id,
    _check_role,
    _check_authorizer,
    _check_retention,
    _check_lag,
    _check_delay,
    _check_cleaner,
    _check_assignment,
)


def _is_unknown(key: str) -> bool:
    """Whether an accepted key is unknown, and not one of a class plugged into Kafka."""
    if key.startswith(LISTENER_PREFIX):
        return split_listener_key(key)[2] not in BROKER_KEYS
    return key not in BROKER_KEYS and not key.startswith(_PLUGIN_PREFIXES)


def _is_ignored(key: str, controllers: frozenset[str]) -> bool:
    """Whether a key has no effect on a single node, or is for a controller listener."""
    if not key.startswith(LISTENER_PREFIX):
        return key in _NO_EFFECT_KEYS
    return split_listener_key(key)[0] in controllers


def _is_of_none(key: str, names: Container[str]) -> bool:
    """Whether a key is for a listener whose name is not in ``names``."""
    return key.startswith(LISTENER_PREFIX) and split_listener_key(key)[0] not in names


def _is_of_listener(key: str) -> bool:
    """Whether a key is for a listener and is applied by this version."""
    if not key.startswith(LISTENER_PREFIX):
        return False
    _, mechanism, base = split_listener_key(key)
    return is_applied(mechanism, base)


def _not_applied(originals: Mapping[str, Value], ignored: Iterable[str]) -> Iterable[str]:
    """Yield ``key=value`` of each setting that this version does not apply, except no-ops."""
    for key, value in originals.items():
        default = BROKER_KEYS[key][2] if key in BROKER_KEYS else None
        if key in _APPLIED_KEYS or key in ignored or value == default or _is_of_listener(key):
            continue
        if value not in NO_OP_VALUES.get(key, ()):
            yield f"{key}={value_text(value)}"


class ListenerSettings:
    """Reads the effective settings of one listener and its SASL mechanisms.

    A key may be set for all listeners, for the listener or, if it is a SASL key, for one mechanism
    of the listener. The most specific setting wins.

    Args:
        config: the broker's settings.
        listener_name: the listener's name, in any case.
    """

    def __init__(self, config: BrokerConfig, listener_name: str) -> None:
        self._config = config
        self._prefix = prefix = f"{LISTENER_PREFIX}{listener_name.lower()}."
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
