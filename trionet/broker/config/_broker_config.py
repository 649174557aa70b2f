"""The broker's configuration: Kafka's keys and defaults, checked as a whole before anything starts.

A key is applied, Kafka's but without meaning on one node, Kafka's but not applied by this version,
or unknown. The first three are accepted; :attr:`BrokerConfig.without_meaning` and
:attr:`BrokerConfig.not_applied` are for the start log. An unknown one is an error that names the
nearest known key.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from types import MappingProxyType

from ...errors import ConfigError
from ...net.wire._endpoint import Endpoint
from ...protocol._config_types import PASSWORD, Row, Value, nearest, parse_value, value_text
from . import _listener_keys as listener_keys
from ._broker_keys import APPLIED, DYNAMIC_ONLY, ONE_NODE, OURS
from ._broker_keys_not_applied import ASKS_FOR_NOTHING, INTERNAL, LATER
from ._listeners import advertised_listeners, bound_listeners, protocol_map

BROKER_KEYS: dict[str, Row] = {
    row[0]: row
    for table in (APPLIED, OURS, ONE_NODE, DYNAMIC_ONLY, LATER, INTERNAL)
    for row in table
}

_ONE_NODE_KEYS = frozenset(row[0] for row in (*ONE_NODE, *DYNAMIC_ONLY))
_APPLIED_KEYS = frozenset(row[0] for row in (*APPLIED, *OURS))

# What classes plugged into Kafka are given: no one knows their types, so they stay hidden.
_PLUGIN_PREFIXES = ("rsm.config.", "rlmm.config.", "config.providers.")
_REMOVED = ("zookeeper.", "inter.broker.protocol.version", "log.message.format.version")


class BrokerConfig:
    """An immutable, valid configuration; ``config[key]`` reads a value by Kafka's dotted key.

    The typed reads :meth:`integer`, :meth:`flag`, :meth:`text` and :meth:`names` raise a
    ``TypeError`` for a key of another type or without a value, and all reads raise a ``KeyError``
    for a key that is neither Kafka's nor set.
    """

    __slots__ = (
        "_advertised",
        "given",
        "listeners",
        "log_dir",
        "node_id",
        "not_applied",
        "of_no_listener",
        "without_meaning",
    )

    given: Mapping[str, Value]
    """What was set, by dotted key; ``node.id`` and ``broker.id`` stand for each other."""

    node_id: int
    """``node.id``, or else ``broker.id``."""

    listeners: tuple[Endpoint, ...]
    """Where to listen; the listeners of KRaft's controllers are left out."""

    log_dir: str | None
    """The one folder of ``log.dirs`` or ``log.dir``; ``None`` if neither is set."""

    without_meaning: tuple[str, ...]
    """The keys set that mean nothing on one node."""

    not_applied: tuple[str, ...]
    """``key=value`` of each setting that asks for what this version does not do."""

    of_no_listener: tuple[str, ...]
    """The keys set for single listeners that are none of :attr:`listeners`."""

    def __init__(self, given: dict[str, Value]) -> None:
        """Work out and check what depends on several keys; see :meth:`from_settings`."""
        _set_node_id(given)
        _check_role(given)
        self.given = MappingProxyType(given)
        self.node_id = self.integer("node.id")
        self.log_dir = _one_folder(given)
        controllers = frozenset(name.upper() for name in self.names("controller.listener.names"))
        map_text = self.text("listener.security.protocol.map")
        has_map = "listener.security.protocol.map" in given
        protocols = protocol_map(map_text if has_map else None, controllers)
        self.listeners = bound_listeners(self.names("listeners"), protocols, controllers)
        self._advertised = advertised_listeners(
            self.names("advertised.listeners") if "advertised.listeners" in given else None,
            self.listeners,
            protocols,
            controllers,
        )
        _check_values(given)
        self.without_meaning = tuple(key for key in given if _is_ignored(key, controllers))
        self.not_applied = tuple(_not_applied(given, self.without_meaning))
        names = {endpoint.listener_name for endpoint in self.listeners} | controllers
        if given.get("metrics.listener"):
            names.add("METRICS")
        self.of_no_listener = tuple(key for key in given if _is_of_none(key, names))

    @classmethod
    def from_settings(cls, settings: Mapping[str, object]) -> BrokerConfig:
        """Check settings and make a configuration of them.

        Args:
            settings: by Kafka's dotted keys, or with underscores for dots as keyword arguments
                need them: ``{"num.partitions": 3}`` is ``num_partitions=3``. Values are texts as
                in ``server.properties`` or Python values (durations in milliseconds where the key
                ends in ``.ms``); ``None`` leaves the key unset. Of a key in both spellings the
                later one counts.

        Raises:
            ConfigError: a key is unknown, a value is not allowed, or values do not fit each other;
                says which are.
        """
        given: dict[str, Value] = {}
        for name, raw in settings.items():
            key, kind, _, rule = find_key(name)
            value = parse_value(key, kind, rule, raw)
            given.pop(key, None)
            if value is not None:
                given[key] = value
        return cls(given)

    def __getitem__(self, key: str) -> Value:
        try:
            return self.given[key]
        except KeyError:
            return BROKER_KEYS[key][2]

    def __repr__(self) -> str:
        settings = ", ".join(f"{key}={value_text(value)}" for key, value in self.given.items())
        return f"BrokerConfig({settings})"

    def integer(self, key: str) -> int:
        """An integer: a count, a size in bytes, or a duration in the unit that the key names."""
        value = self[key]
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        raise _wrong_type(key, value, "an integer")

    def flag(self, key: str) -> bool:
        """True or false."""
        value = self[key]
        if isinstance(value, bool):
            return value
        raise _wrong_type(key, value, "true or false")

    def text(self, key: str) -> str:
        """A text."""
        value = self[key]
        if isinstance(value, str):
            return value
        raise _wrong_type(key, value, "a text")

    def names(self, key: str) -> tuple[str, ...]:
        """A list of texts."""
        value = self[key]
        if isinstance(value, tuple):
            return value
        raise _wrong_type(key, value, "a list")

    def advertised(self, listener_name: str) -> Endpoint:
        """Where clients of a listener are told to connect; port 0 stands for the bound port.

        Raises:
            KeyError: no listener has this (upper-case) name.
        """
        return self._advertised[listener_name]


def find_key(name: str) -> Row:
    """The row of a key, written with dots or with underscores.

    Raises:
        ConfigError: there is no such key; names the nearest.
    """
    key = name if "." in name else name.replace("_", ".")
    if key in BROKER_KEYS:
        return BROKER_KEYS[key]
    if key.startswith(_PLUGIN_PREFIXES):
        return key, PASSWORD, None, None
    if key.startswith(listener_keys.PREFIX):
        return _find_listener_key(key)
    if key.startswith(_REMOVED):
        raise ConfigError(f"{key}: Kafka 4 has removed this key; leave it out")
    raise ConfigError(f"{key}: unknown key{nearest(key, BROKER_KEYS)}")


def is_not_applied(key: str) -> bool:
    """Whether a key is Kafka's and its feature is not in this version."""
    return key not in _APPLIED_KEYS and key not in _ONE_NODE_KEYS


def _find_listener_key(key: str) -> Row:
    listener, mechanism, base = listener_keys.split(key)
    if base in BROKER_KEYS and listener_keys.can_be_set(mechanism, base):
        _, kind, _, rule = BROKER_KEYS[base]
        return key, kind, None, rule
    prefix = f"{listener_keys.PREFIX}{listener.lower()}."
    raise ConfigError(
        f"{key}: unknown key; allowed: {prefix}KEY with a key of the broker, and"
        f" {prefix}MECHANISM.KEY with a key of SASL and one of"
        f" {', '.join(sorted(listener_keys.MECHANISMS)).lower()}"
    )


def _wrong_type(key: str, value: Value, wanted: str) -> TypeError:
    return TypeError(f"{key} is {value!r}, not {wanted}")


def _set_node_id(given: dict[str, Value]) -> None:
    """Either key stands for both (Kafka: AbstractKafkaConfig.populateSynonyms)."""
    if given.get("broker.id") == -1:
        del given["broker.id"]
    node_id, broker_id = given.get("node.id"), given.get("broker.id")
    if node_id is not None and broker_id is not None and node_id != broker_id:
        raise ConfigError(
            f"node.id = {node_id} and broker.id = {broker_id} differ; allowed: one of them, or"
            " both with the same value"
        )
    if node_id is not None or broker_id is not None:
        given["node.id"] = given["broker.id"] = broker_id if node_id is None else node_id


def _check_role(given: Mapping[str, Value]) -> None:
    roles = given.get("process.roles")
    if isinstance(roles, tuple) and "broker" not in roles:
        raise ConfigError(
            f"process.roles = {','.join(roles)!r} is not allowed; allowed: broker, or"
            " broker,controller, since this is a broker"
        )


def _one_folder(given: Mapping[str, Value]) -> str | None:
    key = "log.dirs" if "log.dirs" in given else "log.dir"
    folders = given.get(key)
    if folders is None:
        return None
    assert isinstance(folders, tuple)
    if len(folders) != 1 or not folders[0]:
        raise ConfigError(
            f"{key} = {','.join(folders)!r} names {len(folders)} folders; allowed: one, since this"
            " version keeps all its data in one folder"
        )
    return folders[0]


def _check_values(given: Mapping[str, Value]) -> None:
    """Refuse what would be dangerous or wrong to start without."""
    if given.get("authorizer.class.name"):
        raise ConfigError(
            f"authorizer.class.name = {given['authorizer.class.name']!r} is not allowed; allowed:"
            " leaving it out, since this version has no access control and would let everyone in"
        )
    for unit in ("ms", "minutes", "hours"):
        if given.get(f"log.retention.{unit}") == 0:
            raise ConfigError(f"log.retention.{unit} = 0 is not allowed; allowed: -1, or 1 or more")
    _check_delay(given)


def _check_delay(given: Mapping[str, Value]) -> None:
    """An answer that is held back for longer than its connection lives never comes."""
    idle_key, delay_key = "connections.max.idle.ms", "connection.failed.authentication.delay.ms"
    idle_ms = given.get(idle_key, BROKER_KEYS[idle_key][2])
    delays = {delay_key: BROKER_KEYS[delay_key][2]} | {
        key: value
        for key, value in given.items()
        if key == delay_key or (_is_of_listener(key) and key.endswith(f".{delay_key}"))
    }
    for key, delay_ms in delays.items():
        assert isinstance(delay_ms, int)
        assert isinstance(idle_ms, int)
        if 0 <= idle_ms <= delay_ms:
            raise ConfigError(
                f"{key} = {delay_ms} is not allowed with {idle_key} = {idle_ms}; allowed: less than"
                " that, so that clients learn why they were not let in"
            )


def _is_ignored(key: str, controllers: frozenset[str]) -> bool:
    """Whether a key is one of a cluster, or one of its controllers' listeners."""
    if not key.startswith(listener_keys.PREFIX):
        return key in _ONE_NODE_KEYS
    return listener_keys.split(key)[0] in controllers


def _is_of_none(key: str, names: Container[str]) -> bool:
    """Whether a key is one of a listener, and of none of these."""
    return key.startswith(listener_keys.PREFIX) and listener_keys.split(key)[0] not in names


def _is_of_listener(key: str) -> bool:
    """Whether a key is one that is read for its listener by itself."""
    if not key.startswith(listener_keys.PREFIX):
        return False
    _, mechanism, base = listener_keys.split(key)
    return listener_keys.is_applied(mechanism, base)


def _not_applied(given: Mapping[str, Value], ignored: Iterable[str]) -> Iterable[str]:
    """The settings of features that are not there, except those that ask for nothing."""
    for key, value in given.items():
        default = BROKER_KEYS[key][2] if key in BROKER_KEYS else None
        if key in _APPLIED_KEYS or key in ignored or value == default or _is_of_listener(key):
            continue
        if value not in ASKS_FOR_NOTHING.get(key, ()):
            yield f"{key}={value_text(value)}"
