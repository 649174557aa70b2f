"""A broker's settings in layers, and which of them can be changed at run time.

(Kafka 4.3: DynamicBrokerConfig.) Settings altered for one broker take precedence over settings
altered for all brokers, which take precedence over the settings that the broker was started with.

What Kafka accepts is accepted and stored, also what this version does not apply: keys of plug-in
classes, which Kafka does not know either, keys of listeners that do not exist, and keys of SASL and
TLS that Kafka reads when it opens a listener. They are described and logged, and change nothing:
neither while the broker runs, nor at the next start. What Kafka can only read from its file is
rejected.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

import attrs

from ..._util._logging import get_logger
from ..._util._text import single_line
from ...errors import ConfigError
from ...protocol._config_types import HIDDEN, PASSWORD, Row, Value, parse_request_value
from ._broker_config import BROKER_KEYS, BrokerConfig
from ._broker_keys import DYNAMIC_ONLY, NO_OP_VALUES, PLUGIN_KEYS
from ._listeners import LISTENER_PREFIX, split_listener_key
from ._topic_keys import TOPIC_KEYS

logger = get_logger("trionet.broker")


@attrs.frozen
class DynamicConfig:
    """The settings of one broker.

    Args:
        static: the settings that the broker was started with.
        cluster: the settings altered for all brokers.
        own: the settings altered for this broker.

    Attributes:
        current: the effective settings.

    Raises:
        ConfigError: settings conflict.
    """

    static: BrokerConfig
    cluster: Mapping[str, Value] = attrs.field(factory=dict)
    own: Mapping[str, Value] = attrs.field(factory=dict)
    current: BrokerConfig = attrs.field(init=False)

    @current.default
    def _current(self) -> BrokerConfig:
        altered = {
            key: value
            for layer in (self.cluster, self.own)
            for key, value in layer.items()
            if takes_effect(self.static, key)
        }
        return BrokerConfig({**self.static.originals, **altered}) if altered else self.static

    @property
    def for_all_brokers(self) -> Mapping[str, Value]:
        """The settings of all brokers as described.

        ``min.insync.replicas`` is always among them (KIP-966: since the controller must know it, a
        new cluster takes the broker's setting over).
        """
        return {MIN_ISR: self.static[MIN_ISR], **self.cluster}

    def without(self, group: str) -> DynamicConfig:
        """Return the settings without the altered settings of one group of keys.

        Args:
            group: the group's identifier; see :func:`._dynamic_config.check_group`.
        """
        return DynamicConfig(self.static, _without(self.cluster, group), _without(self.own, group))

    @classmethod
    def restore(
        cls, static: BrokerConfig, cluster: Mapping[str, str], own: Mapping[str, str]
    ) -> DynamicConfig:
        """Return the settings at startup, including the stored alterations.

        Altered settings that a change to ``static`` has made invalid are logged and ignored.

        Args:
            static: the settings that the broker is started with.
            cluster: the stored settings of all brokers, as strings.
            own: the stored settings of this broker, as strings.
        """
        layers: list[dict[str, Value]] = []
        for texts, for_all_brokers in ((cluster, True), (own, False)):
            values, problems = read_settings(static, texts, for_all_brokers=for_all_brokers)
            layers.append(values)
            for problem in problems.values():
                logger.warning("ignoring an altered setting: %s", problem)
            report_ineffective(static, values)
        try:
            return cls(static, *layers)
        except ConfigError:
            return cls._without_conflicts(static, *layers)

    @classmethod
    def _without_conflicts(
        cls, static: BrokerConfig, cluster: Mapping[str, Value], own: Mapping[str, Value]
    ) -> DynamicConfig:
        """Return the settings without those that do not fit ``static`` and the others.

        What does not fit is tried again with the ones after it, which may be what it needs.
        """
        kept: tuple[dict[str, Value], dict[str, Value]] = {}, {}
        left = [
            (layer, key, value)
            for layer, settings in zip(kept, (cluster, own), strict=True)
            for key, value in settings.items()
        ]
        problems: list[str] = []
        while left:
            tried, left, problems = left, [], []
            for layer, key, value in tried:
                layer[key] = value
                if not takes_effect(static, key):
                    continue  # there may be thousands
                try:
                    cls(static, *kept)
                except ConfigError as error:
                    del layer[key]
                    left.append((layer, key, value))
                    problems.append(single_line(f"{key}: {error}"))
            if len(left) == len(tried):
                break
        for problem in problems:
            logger.warning("ignoring an altered setting, %s", problem)
        return cls(static, *kept)


def _without(settings: Mapping[str, Value], group: str) -> dict[str, Value]:
    return {key: value for key, value in settings.items() if check_group(key) != group}


MIN_ISR = "min.insync.replicas"
"""The key that is set for all brokers, or not at all (KIP-966: Eligible Leader Replicas)."""

TOPIC_DEFAULTS = frozenset(row.synonyms[0].key for row in TOPIC_KEYS.values() if row.synonyms)
"""The broker keys that provide the defaults of topic keys (Kafka: DynamicLogConfig).

Of several synonyms, only the key in milliseconds is included."""

LISTENER_LIMITS = frozenset(
    ("max.connection.creation.rate", "max.connections", "num.network.threads")
)
"""The limits that can be set for single listeners, for one broker or for all."""

THREADS = (
    "background.threads",
    "num.io.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
    "remote.log.reader.threads",
)
"""The thread counts, which one change may at most halve or double (Kafka: DynamicThreadPool)."""

_LOGGED_CHARS_MAX = 10_000

# The limits of the broker that may be 0 only in its file, which needs no client to be changed.
# Those of a listener may not be 0 at all, as in Kafka (ConnectionQuotas). That includes listeners
# that do not exist yet: once one did, the broker would not start any more.
_NOT_ZERO = frozenset(("max.connection.creation.rate", "max.connections"))

CLEANER = frozenset(
    (
        "log.cleaner.backoff.ms",
        "log.cleaner.dedupe.buffer.size",
        "log.cleaner.io.buffer.load.factor",
        "log.cleaner.io.buffer.size",
        "log.cleaner.io.max.bytes.per.second",
        "log.cleaner.threads",
    )
)
"""The keys of the log cleaner itself (Kafka: LogCleaner.RECONFIGURABLE_CONFIGS)."""

STORES = frozenset(
    key for key in BROKER_KEYS if key.startswith(("ssl.key.", "ssl.keystore.", "ssl.truststore."))
)
"""The keys of a listener's keystore and truststore (SslConfigs.RECONFIGURABLE_CONFIGS)."""

ADDRESS_LIMITS = "max.connections.per.ip"
"""The common prefix of the two keys that limit connections per address; see :func:`check_group`."""

# Kafka accepts these, but opens no listener again to apply them, not even after a restart.
_OF_NEW_LISTENERS = frozenset(
    (
        "listener.security.protocol.map",
        "listeners",
        "principal.builder.class",
        "sasl.enabled.mechanisms",
        "sasl.jaas.config",
        "sasl.mechanism.inter.broker.protocol",
        *(
            key
            for key in BROKER_KEYS
            if key.startswith(("sasl.kerberos.", "sasl.login.refresh.", "ssl."))
        ),
    )
) - {
    "ssl.allow.dn.changes",
    "ssl.allow.san.changes",
    "ssl.principal.mapping.rules",
    "ssl.store.max.bytes",
    *STORES,
}

# Kafka checks these against the addresses of the listeners, which do not change in KRaft.
_OF_ADDRESSES = frozenset(("listener.security.protocol.map", "listeners"))

# These name classes, and Kafka rejects a class that it cannot load.
_CLASSES = frozenset(("metric.reporters", "principal.builder.class", "ssl.engine.factory.class"))

_OTHERS = frozenset(
    (
        "config.providers",
        "cordoned.log.dirs",
        "follower.fetch.last.tiered.offset.enable",
        "group.consumer.assignment.interval.ms",
        "group.coordinator.cached.buffer.max.bytes",
        "group.share.assignment.interval.ms",
        "group.streams.assignment.interval.ms",
        "max.connections.per.ip",
        "max.connections.per.ip.overrides",
        "producer.id.expiration.ms",
        "remote.fetch.max.wait.ms",
        "remote.list.offsets.request.timeout.ms",
        "remote.log.index.file.cache.total.size.bytes",
        "remote.log.manager.copy.max.bytes.per.second",
        "remote.log.manager.fetch.max.bytes.per.second",
        "share.coordinator.cached.buffer.max.bytes",
        "transaction.partition.verification.enable",
    )
)

DYNAMIC = frozenset().union(
    TOPIC_DEFAULTS,
    LISTENER_LIMITS,
    THREADS,
    CLEANER,
    STORES,
    _OF_NEW_LISTENERS,
    _CLASSES,
    _OTHERS,
    (row[0] for row in DYNAMIC_ONLY),
)
"""The keys that DescribeConfigs does not report as read-only (ALL_DYNAMIC_CONFIGS)."""

PER_BROKER = _OF_NEW_LISTENERS | STORES | {"cordoned.log.dirs"}
"""The keys that cannot be set for all brokers (PER_BROKER_CONFIGS)."""


def read_settings(
    broker: BrokerConfig,
    texts: Mapping[str, str],
    *,
    for_all_brokers: bool,
    altered: Container[str] = (),
) -> tuple[dict[str, Value], dict[str, ConfigError]]:
    """Parse dynamic settings, and return the valid values and an error for each invalid key.

    Args:
        broker: the settings that the broker was started with.
        texts: the dynamic settings by key.
        for_all_brokers: whether the settings are for all brokers rather than for a single one.
        altered: the keys that must be valid.

    Raises:
        ConfigError: a setting in ``altered`` is not allowed.
    """
    values: dict[str, Value] = {}
    problems: dict[str, ConfigError] = {}
    for key, text in texts.items():
        try:
            values[key] = _read(broker, key, text, for_all_brokers=for_all_brokers)
        except ConfigError as error:
            if key in altered:
                raise
            problems[key] = error
    return values, problems


def check_group(key: str) -> str:
    """Return the identifier of the group of keys that are validated together with a key.

    A listener's keystore and truststore settings form one group. So do the two connection limits
    per address. Any other key is its own group.
    """
    if key.startswith(LISTENER_PREFIX) and split_listener_key(key)[2] in STORES:
        return store_group(split_listener_key(key)[0])
    return ADDRESS_LIMITS if key.startswith(ADDRESS_LIMITS) else key


def store_group(listener: str) -> str:
    """Return the group identifier of a listener's keystore and truststore settings."""
    return f"{LISTENER_PREFIX}{listener.lower()}.ssl"


def row_of(key: str) -> Row:
    """Return the definition of a key that can be altered.

    A listener's key has the type and the rule of the key that it overrides. A key that Kafka does
    not know can have any value, which may be a secret.
    """
    base = base_key(key)
    if base not in BROKER_KEYS or base in PLUGIN_KEYS:
        return key, PASSWORD, None, None
    _, kind, default, rule = BROKER_KEYS[base]
    return key, kind, default if base == key else None, rule


def is_unknown(key: str) -> bool:
    """Whether Kafka does not know a key, and passes it to plug-in classes."""
    base = base_key(key)
    return base not in BROKER_KEYS or base in PLUGIN_KEYS


def base_key(key: str) -> str:
    """Return the broker key that a listener's key overrides, or else the key itself."""
    return split_listener_key(key)[2] if key.startswith(LISTENER_PREFIX) else key


def takes_effect(broker: BrokerConfig, key: str) -> bool:
    """Whether a key that was altered is applied, or is known to be without effect on one node.

    Args:
        broker: the settings that the broker was started with.
        key: the key.
    """
    if not key.startswith(LISTENER_PREFIX):
        return not is_unknown(key) and key not in _OF_NEW_LISTENERS
    listener, mechanism, base = split_listener_key(key)
    protocols = {each.listener_name: each.security_protocol for each in broker.listeners}
    is_lower = key.startswith(f"{LISTENER_PREFIX}{listener.lower()}.")
    if listener not in protocols or not is_lower or mechanism is not None:
        return False
    return base in LISTENER_LIMITS or (base in STORES and "SSL" in protocols[listener].name)


def report_ineffective(broker: BrokerConfig, altered: Iterable[str]) -> None:
    """Log the altered keys that are stored, but change nothing.

    Args:
        broker: the settings that the broker was started with.
        altered: the keys.
    """
    if keys := [key for key in altered if not takes_effect(broker, key)]:
        logger.warning("altered settings that have no effect: %s", logged(sorted(keys)))


def logged(texts: Iterable[str]) -> str:
    """Return keys or settings of clients in one line of the log, and only as many as are read.

    A request may name 2,000 keys of 32 KB.
    """
    text = ", ".join(texts)
    shown = single_line(text[:_LOGGED_CHARS_MAX])
    return f"{shown}..." if len(text) > _LOGGED_CHARS_MAX else shown


def redacted(key: str, text: str) -> str:
    """Return a setting's value for the log, redacted if it could be a secret."""
    return HIDDEN if row_of(key)[1] == PASSWORD else text


def _read(broker: BrokerConfig, key: str, text: str, *, for_all_brokers: bool) -> Value:
    """Return the value of a setting; raise if Kafka would (DynamicBrokerConfig.validateConfigs)."""
    base = base_key(key)
    if base == key:
        _check_key(key)
    _, kind, default, rule = row_of(key)
    value = parse_request_value(key, kind, rule, text)
    is_of_one = base not in LISTENER_LIMITS if base != key else key in PER_BROKER
    if for_all_brokers and is_of_one:
        raise ConfigError(
            f"{key} cannot be set for all brokers; set it for each broker separately, by node id"
        )
    if key in _CLASSES and value not in (default, *NO_OP_VALUES.get(key, ())):
        raise ConfigError(
            f"{key} = {text!r} is not supported, since no classes can be loaded; leave the key out"
        )
    if base in _NOT_ZERO and value == 0:
        raise ConfigError(
            f"{key} = 0 is not allowed, since no client could connect any more to change it;"
            " allowed: 1 or more"
        )
    if key == "cordoned.log.dirs" and value not in ((), ("*",)):
        _check_cordoned(broker, value)
    return value


def _check_key(key: str) -> None:
    if key not in BROKER_KEYS or key in PLUGIN_KEYS:
        return
    if key not in DYNAMIC:
        raise ConfigError(
            f"{key} cannot be changed while the broker is running; change it in the broker's"
            " settings and restart the broker"
        )
    if key in STORES:
        raise ConfigError(
            f"{key} can only be changed for a single listener; set listener.name.LISTENER.{key}"
        )
    if key in _OF_ADDRESSES:
        raise ConfigError(
            f"{key} cannot be changed while listeners are open; change it in the broker's settings"
            " and restart the broker"
        )


def _check_cordoned(broker: BrokerConfig, value: Value) -> None:
    folders = [] if broker.log_dir is None else [broker.log_dir]
    missing = [each for each in value if each not in folders] if isinstance(value, tuple) else []
    if missing:
        raise ConfigError(
            f"cordoned.log.dirs = {','.join(missing)!r} is not in log.dirs; allowed:"
            f" {', '.join((*folders, '*'))}"
        )
