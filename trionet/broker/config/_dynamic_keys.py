"""Which keys of a broker can be changed while it runs (Kafka 4.3: DynamicBrokerConfig).

What Kafka lets change, and what that does here: it is applied, or it is accepted and told in the
log as it is at the start, or it is refused, since it would only count after a restart.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from ...errors import ConfigError
from ...protocol._config_types import HIDDEN, PASSWORD, Value, nearest, parse_value
from . import _listener_keys as listener_keys
from ._broker_config import BROKER_KEYS, BrokerConfig, find_key
from ._broker_keys import DYNAMIC_ONLY
from ._broker_keys_not_applied import ASKS_FOR_NOTHING
from ._topic_keys import TOPIC_KEYS

TOPIC_DEFAULTS = frozenset(row.synonyms[0].key for row in TOPIC_KEYS.values() if row.synonyms)
"""What topics without settings of their own follow; of several keys, that in milliseconds.

(Kafka: DynamicLogConfig.)"""

LISTENER_LIMITS = frozenset(
    ("max.connection.creation.rate", "max.connections", "num.network.threads")
)
"""What one listener can have of its own, for one broker or for all."""

THREADS = (
    "background.threads",
    "num.io.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
)
"""What changes to between half and twice as many (Kafka: DynamicThreadPool)."""

STORES = frozenset(
    f"ssl.{key}"
    for key in (
        "key.password",
        "keystore.certificate.chain",
        "keystore.key",
        "keystore.location",
        "keystore.password",
        "keystore.type",
        "truststore.certificates",
        "truststore.location",
        "truststore.password",
        "truststore.type",
    )
)
"""The keys and certificates of one listener of one broker (SslConfigs.RECONFIGURABLE_CONFIGS)."""

ADDRESS_LIMITS = "max.connections.per.ip"
"""The beginning of both keys that limit addresses; see :func:`checked_with`."""

# Kafka only changes these together with a listener that is added, which it cannot do in KRaft.
_OF_NEW_LISTENERS = frozenset(
    (
        "listener.security.protocol.map",
        "listeners",
        "principal.builder.class",
        "sasl.enabled.mechanisms",
        "sasl.jaas.config",
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.min.time.before.relogin",
        "sasl.kerberos.principal.to.local.rules",
        "sasl.kerberos.service.name",
        "sasl.kerberos.ticket.renew.jitter",
        "sasl.kerberos.ticket.renew.window.factor",
        "sasl.login.refresh.buffer.seconds",
        "sasl.login.refresh.min.period.seconds",
        "sasl.login.refresh.window.factor",
        "sasl.login.refresh.window.jitter",
        "sasl.mechanism.inter.broker.protocol",
        "ssl.cipher.suites",
        "ssl.client.auth",
        "ssl.enabled.protocols",
        "ssl.endpoint.identification.algorithm",
        "ssl.engine.factory.class",
        "ssl.keymanager.algorithm",
        "ssl.protocol",
        "ssl.provider",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
    )
)

# They name classes, and Kafka refuses one that it cannot load.
_CLASSES = frozenset(("config.providers", "metric.reporters"))

_OTHERS = frozenset(
    (
        "cordoned.log.dirs",
        "follower.fetch.last.tiered.offset.enable",
        "group.consumer.assignment.interval.ms",
        "group.coordinator.cached.buffer.max.bytes",
        "group.share.assignment.interval.ms",
        "group.streams.assignment.interval.ms",
        "log.cleaner.backoff.ms",
        "log.cleaner.dedupe.buffer.size",
        "log.cleaner.io.buffer.load.factor",
        "log.cleaner.io.buffer.size",
        "log.cleaner.io.max.bytes.per.second",
        "log.cleaner.threads",
        "max.connections.per.ip",
        "max.connections.per.ip.overrides",
        "producer.id.expiration.ms",
        "remote.fetch.max.wait.ms",
        "remote.list.offsets.request.timeout.ms",
        "remote.log.index.file.cache.total.size.bytes",
        "remote.log.manager.copier.thread.pool.size",
        "remote.log.manager.copy.max.bytes.per.second",
        "remote.log.manager.expiration.thread.pool.size",
        "remote.log.manager.fetch.max.bytes.per.second",
        "remote.log.manager.follower.thread.pool.size",
        "remote.log.reader.threads",
        "share.coordinator.cached.buffer.max.bytes",
        "transaction.partition.verification.enable",
    )
)

DYNAMIC = frozenset().union(
    TOPIC_DEFAULTS,
    LISTENER_LIMITS,
    THREADS,
    STORES,
    _OF_NEW_LISTENERS,
    _CLASSES,
    _OTHERS,
    (row[0] for row in DYNAMIC_ONLY),
)
"""What DescribeConfigs does not call read-only (ALL_DYNAMIC_CONFIGS)."""

PER_BROKER = _OF_NEW_LISTENERS | STORES | {"cordoned.log.dirs"}
"""What cannot be set for all brokers (PER_BROKER_CONFIGS)."""


def read_settings(
    broker: BrokerConfig, texts: Mapping[str, str], *, of_all: bool, altered: Container[str] = ()
) -> tuple[dict[str, Value], dict[str, ConfigError]]:
    """Dynamic settings as values, and why others are none.

    Args:
        broker: what the broker was started with.
        texts: the settings by key.
        of_all: whether they are those of all brokers, in place of one.
        altered: the keys that have to be right.

    Raises:
        ConfigError: the first of ``altered`` is not allowed. The others are not looked at, since
            to name the nearest key for each of a thousand takes seconds.
    """
    values: dict[str, Value] = {}
    problems: dict[str, ConfigError] = {}
    for key, text in texts.items():
        try:
            values[key] = _read(broker, key, text, of_all=of_all)
        except ConfigError as error:
            if key in altered:
                raise
            problems[key] = error
    return values, problems


def checked_with(key: str) -> str:
    """What stands for a key and all others that it only works with.

    The stores of a listener are read together, and the two limits of addresses are checked
    together.
    """
    if key.startswith(listener_keys.PREFIX) and listener_keys.split(key)[2] in STORES:
        return stores_of(listener_keys.split(key)[0])
    return ADDRESS_LIMITS if key.startswith(ADDRESS_LIMITS) else key


def stores_of(listener: str) -> str:
    """What :func:`checked_with` says of the stores of a listener."""
    return f"{listener_keys.PREFIX}{listener.lower()}.ssl"


def shown(key: str, text: str) -> str:
    """A setting as the log may tell it: what could be a secret is hidden."""
    try:
        return HIDDEN if find_key(key)[1] == PASSWORD else text
    except ConfigError:
        return HIDDEN


def _read(broker: BrokerConfig, key: str, text: str, *, of_all: bool) -> Value:
    if key.startswith(listener_keys.PREFIX):
        base = _listener_base(broker, key)
    else:
        base = key
        _check_key(key)
    if of_all and base in PER_BROKER:
        raise ConfigError(f"{key} cannot be set for all brokers; set it for one, by its node id")
    _, kind, default, rule = find_key(key)
    value = parse_value(key, kind, rule, text)
    if key in _CLASSES and value not in (default, *ASKS_FOR_NOTHING.get(key, ())):
        raise ConfigError(
            f"{key} = {text!r} is not allowed; allowed: leaving it out, since no classes are loaded"
        )
    return value


def _check_key(key: str) -> None:
    if key not in BROKER_KEYS:
        raise ConfigError(f"{key}: unknown key{nearest(key, DYNAMIC)}")
    if key not in DYNAMIC:
        raise ConfigError(
            f"{key} cannot be changed while the broker runs; set it in the broker's settings and"
            " start it again"
        )
    if key in STORES:
        raise ConfigError(
            f"{key} can only be changed for one listener; set listener.name.LISTENER.{key}"
        )
    if key in _OF_NEW_LISTENERS:
        raise ConfigError(
            f"{key} cannot be changed while its listeners are open; set it in the broker's settings"
            " and start it again"
        )


def _listener_base(broker: BrokerConfig, key: str) -> str:
    """What a key sets for a listener, if that can be changed."""
    listener, mechanism, base = listener_keys.split(key)
    protocols = {each.listener_name: each.security_protocol for each in broker.listeners}
    is_lower = key.startswith(f"{listener_keys.PREFIX}{listener.lower()}.")
    if listener not in protocols or not is_lower:
        raise ConfigError(
            f"{key} is of no listener; allowed, in lower case: {', '.join(protocols).lower()}"
        )
    if mechanism is not None or base not in LISTENER_LIMITS | STORES:
        raise ConfigError(
            f"{key} cannot be changed while the listener is open; allowed:"
            f" {', '.join(sorted(LISTENER_LIMITS | STORES))}"
        )
    if base in STORES and "SSL" not in protocols[listener].name:
        raise ConfigError(f"{key}: the listener has no TLS, it is {protocols[listener].name}")
    return base
