"""Broker settings that were altered at run time; a change is stored and takes effect immediately.

All nodes that share a database share one store. Each affected node validates a change before it is
stored, and applies it afterwards. Accepted settings that have no effect are logged.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, TypeAlias

import attrs
import trio

from ..._util._logging import get_logger
from ..._util._text import single_line
from ...errors import ApiError, ConfigError
from ...protocol._config_types import Value, value_text
from ...protocol.error_codes import INVALID_CONFIG, INVALID_REQUEST
from ..storage._database import DATABASE_NAME, Database
from ..storage._disk import open_stopped
from ..storage._tables import TEXT, Fields, Table
from ._alterations import OPERATIONS_MAX, Change
from ._broker_config import BrokerConfig
from ._broker_keys import OFFSETS_PARTITIONS
from ._dynamic_config import (
    CLEANER,
    MIN_ISR,
    DynamicConfig,
    check_group,
    logged,
    read_settings,
    redacted,
    report_ineffective,
)

if TYPE_CHECKING:
    from sqlite3 import Connection


logger = get_logger("trionet.broker")

ALL_BROKERS = ""
"""The resource name that stands for all brokers."""

Apply: TypeAlias = Callable[[], Awaitable[None]]
"""Applies a validated change."""


class Reconfigurable(Protocol):
    """A component whose settings can be changed at run time (Kafka: Reconfigurable)."""

    @property
    def settings(self) -> DynamicConfig:
        """The current settings."""
        ...

    async def prepare(self, settings: DynamicConfig, altered: frozenset[str]) -> Apply:
        """Validate new settings, and return a function that applies them.

        Args:
            settings: the new settings.
            altered: the keys that change or are named by the request, even if their value stays
                the same.

        Raises:
            ConfigError: the settings are not allowed.
        """
        ...


class BrokerConfigs:
    """The altered settings of all nodes; created by :meth:`load`."""

    def __init__(
        self, database: Database, stored: dict[str, dict[str, str]], common: frozenset[str]
    ) -> None:
        self._database = database
        self._common = common
        self._stored = stored
        # Of each node: what was stored when it was last asked for, and the settings made of it.
        self._restored: dict[str, tuple[tuple[Mapping[str, str], ...], DynamicConfig]] = {}
        self._brokers: list[tuple[str, Reconfigurable]] = []
        self._changing = trio.Lock()

    @classmethod
    async def load(cls, database: Database, common: frozenset[str] = frozenset()) -> BrokerConfigs:
        """Read the altered settings.

        Args:
            database: the database that stores the settings.
            common: the keys that cannot be set for individual nodes.

        Raises:
            DatabaseError: the database cannot be read.
        """
        return cls(database, await database.read(_load), common)

    def settings_of(self, static: BrokerConfig) -> DynamicConfig:
        """Return the settings of a node at startup.

        Args:
            static: the settings that the node is started with.
        """
        node_id = str(static.node_id)
        stored = self._stored.get(ALL_BROKERS, {}), self._stored.get(node_id, {})
        restored = self._restored.get(node_id)
        if restored is not None and restored[0] == stored:
            return restored[1]  # and its warnings are in the log already
        cluster, own_stored = stored
        own = {}
        for key, text in own_stored.items():
            if key in self._common:
                logger.warning("ignoring an altered setting: %s", per_node_error(key))
            else:
                own[key] = text
        settings = DynamicConfig.restore(static, cluster, own)
        self._restored[node_id] = stored, settings
        return settings

    @asynccontextmanager
    async def hold_changes(self) -> AsyncIterator[None]:
        """Block changes while the context is active, for example while a node starts."""
        async with self._changing:
            yield

    def register(self, node_id: int, broker: Reconfigurable) -> None:
        """Register a component of a node, which validates and applies later changes."""
        self._brokers.append((str(node_id), broker))

    def unregister(self, broker: Reconfigurable) -> None:
        """Unregister a component."""
        self._brokers = [each for each in self._brokers if each[1] is not broker]

    async def alter(
        self, name: str, change: Change, named: Collection[str] = (), *, validate_only: bool = False
    ) -> None:
        """Change the settings of one broker, or of all brokers.

        Args:
            name: a node id, or :data:`ALL_BROKERS`.
            change: returns the new settings, given the old ones.
            named: the keys that are applied again even if their value stays the same, such as a
                keystore whose file was replaced (KAFKA-14136).
            validate_only: whether to validate the change without making it.

        Raises:
            ApiError: a setting is not allowed (INVALID_REQUEST; Kafka uses INVALID_CONFIG only for
                topics and ``min.insync.replicas``: KAFKA-13609), or ``change`` raised the error.
                Nothing was changed.
            DatabaseError: the change cannot be stored. Nothing was changed.

        Cancellation: if cancelled before the change is stored, nothing was changed. If cancelled
        while nodes apply the change, it stays stored and takes full effect at the next start.
        """
        async with self._changing:
            old = self._stored.get(name, {})
            new = change(old)
            different = {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
            altered = frozenset(different.union(named))
            if len(new) > OPERATIONS_MAX:
                raise ApiError(
                    INVALID_REQUEST,
                    f"too many settings: {len(new)}; at most {OPERATIONS_MAX} are allowed",
                )
            changes: list[tuple[BrokerConfig, BrokerConfig, Apply]] = []
            try:
                if name != ALL_BROKERS:
                    self._check_own(new, altered)
                for broker in self._concerned(name):
                    settings = _changed(broker.settings, name, new, altered)
                    apply = await broker.prepare(settings, altered)
                    changes.append((broker.settings.current, settings.current, apply))
            except ConfigError as error:
                raise ApiError(INVALID_REQUEST, str(error)) from None
            _check_min_isr(name, old, new, altered)
            if validate_only:
                return
            await self._database.transaction(partial(_replace, broker=name, settings=new))
            self._stored[name] = new
            _log(name, old, new)
            for before, after, _ in changes[:1]:
                nodes = len({node_id for node_id, _ in self._brokers})
                report_settings(after, before, nodes=nodes)
                report_ineffective(after, different.intersection(new))
            self._report_cleaner(name, different.intersection(new))
            for *_, apply in changes:
                await apply()

    def _check_own(self, own: Mapping[str, str], altered: Collection[str]) -> None:
        """Reject altered settings that cannot be set for a single node."""
        for key in own:
            # The minimum of in-sync replicas has a check of its own, as in Kafka.
            if key in self._common and key in altered and key != MIN_ISR:
                raise ConfigError(per_node_error(key))

    def _report_cleaner(self, name: str, altered: Collection[str]) -> None:
        """Log settings of the cleaner that were altered for a node which does not run it."""
        first = next((node_id for node_id, _ in self._brokers), name)
        if name not in (ALL_BROKERS, first) and (keys := CLEANER.intersection(altered)):
            logger.warning(
                "all brokers share one log cleaner, which follows broker %s: broker %s does not"
                " apply %s",
                first,
                name,
                ", ".join(sorted(keys)),
            )

    def _concerned(self, name: str) -> list[Reconfigurable]:
        return [broker for id, broker in self._brokers if name in (ALL_BROKERS, id)]


def _check_min_isr(
    name: str, old: Mapping[str, str], new: Mapping[str, str], altered: Collection[str]
) -> None:
    """Reject what Kafka rejects so that its controller knows the value (KIP-966), in its words.

    What an older version stored for one broker can be deleted.
    """
    if MIN_ISR not in altered or (name != ALL_BROKERS and MIN_ISR in old and MIN_ISR not in new):
        return
    if name != ALL_BROKERS:
        raise ApiError(
            INVALID_CONFIG,
            f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled.",
        )
    if MIN_ISR not in new:
        raise ApiError(
            INVALID_CONFIG, f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled."
        )


def per_node_error(key: str) -> str:
    """Return the error message for setting a log key for one node, as all nodes share the logs."""
    return (
        f"{key} cannot be set for one node, since all nodes share the same logs; set it for all"
        " nodes, with an empty resource name"
    )


def _changed(
    settings: DynamicConfig, name: str, texts: Mapping[str, str], altered: Collection[str]
) -> DynamicConfig:
    """Return the settings of one node with one layer replaced.

    A stored setting that was ignored at startup stays ignored until a key of its group is altered.

    Raises:
        ConfigError: an altered setting is not allowed. Stored settings that were invalid at startup
            do not prevent changes to other keys.
    """
    for_all_brokers = name == ALL_BROKERS
    values, _ = read_settings(
        settings.static, texts, for_all_brokers=for_all_brokers, altered=altered
    )
    before = settings.cluster if for_all_brokers else settings.own
    groups = {check_group(key) for key in (*before, *altered)}
    layer = {key: value for key, value in values.items() if check_group(key) in groups}
    if for_all_brokers:
        return attrs.evolve(settings, cluster=layer)
    return attrs.evolve(settings, own=layer)


def _log(name: str, old: Mapping[str, str], new: Mapping[str, str]) -> None:
    """Log a change, so that the operator knows what clients have altered."""
    changes = [f"{key}={redacted(key, text)}" for key, text in new.items() if old.get(key) != text]
    changes += [f"{key} deleted" for key in old if key not in new]
    if changes:
        logger.info("altered settings of %s: %s", _named(name), logged(changes))


async def altered_settings(folder: str) -> list[str]:
    """Return all altered broker settings. The broker must not be running.

    Args:
        folder: the path of the data directory.

    Returns:
        The settings as ``broker 1: KEY=VALUE``, each on one line, with potential secrets redacted.

    Raises:
        ConfigError: the directory contains no broker data, or is in use.
        DatabaseError: the database cannot be opened or read.
        OSError: the directory cannot be accessed.
    """
    _check_data(folder)
    async with open_stopped(folder) as database:
        return _listed(await database.read(_load))


async def reset_altered(folder: str, key: str | None = None) -> list[str]:
    """Delete one altered broker setting, or all of them. The broker must not be running.

    Topic settings are kept.

    Args:
        folder: the path of the data directory.
        key: the key, of whichever brokers it was altered for; None for all keys.

    Returns:
        The deleted settings as :func:`altered_settings` returns them.

    Raises:
        ConfigError: the directory contains no broker data, or is in use, or the key is not altered.
        DatabaseError: the database cannot be opened or written. Nothing was deleted.
        OSError: the directory cannot be accessed.

    Cancellation: either all settings are deleted, or none.
    """
    _check_data(folder)
    async with open_stopped(folder) as database:
        stored = await database.transaction(partial(_forget, key=key))
    if key is None:
        return _listed(stored)
    deleted = _listed({name: {key: each[key]} for name, each in stored.items() if key in each})
    if not deleted:
        altered = sorted({each for settings in stored.values() for each in settings})
        raise ConfigError(
            f"{key} is not an altered setting in {folder}; altered are:"
            f" {single_line(', '.join(altered)) or 'none'}"
        )
    return deleted


def _listed(stored: Mapping[str, Mapping[str, str]]) -> list[str]:
    return [
        single_line(f"{_named(name)}: {key}={redacted(key, text)}")
        for name, settings in sorted(stored.items())
        for key, text in sorted(settings.items())
    ]


def _check_data(folder: str) -> None:
    """Reject a directory without a database, since opening the database would create it."""
    if not os.path.exists(os.path.join(folder, DATABASE_NAME)):
        raise ConfigError(f"{folder} contains no {DATABASE_NAME}, so there are no altered settings")


def _named(name: str) -> str:
    return "all brokers" if name == ALL_BROKERS else f"broker {name}"


_SETTINGS = Table("broker_config", 2, Fields(broker=TEXT, name=TEXT, value=TEXT))


def _forget(connection: Connection, key: str | None) -> dict[str, dict[str, str]]:
    """Delete a key, or all of them, and return what was stored before."""
    stored = _load(connection)
    connection.execute("DELETE FROM broker_config WHERE ?1 IS NULL OR name = ?1", (key,))
    return stored


def _load(connection: Connection) -> dict[str, dict[str, str]]:
    stored: dict[str, dict[str, str]] = {}
    for broker, name, value in _SETTINGS.read(connection, lambda *row: row):
        stored.setdefault(broker, {})[name] = value
    return stored


def _replace(connection: Connection, broker: str, settings: Mapping[str, str]) -> None:
    connection.execute("DELETE FROM broker_config WHERE broker = ?", (broker,))
    _SETTINGS.put(connection, [(broker, name, value) for name, value in settings.items()])


# Settings without effect on a single node that are applied with several nodes.
EFFECTIVE_WITH_SEVERAL = ("min.insync.replicas",)

# Settings that are not applied with several nodes either, and the values that match the actual
# behavior; None if no value does.
_NOT_SIMULATED: Mapping[str, Value] = MappingProxyType(
    {
        "auto.leader.rebalance.enable": False,
        "leader.imbalance.check.interval.seconds": None,
        "offsets.topic.num.partitions": OFFSETS_PARTITIONS,
        "offsets.topic.replication.factor": None,
        "replica.selector.class": None,
    }
)


def report_settings(
    config: BrokerConfig, before: BrokerConfig | None = None, *, nodes: int = 1
) -> None:
    """Log the settings that have no effect or are not applied.

    Args:
        config: the current settings.
        before: the settings before a change, which have already been reported; None at startup.
        nodes: the number of nodes.
    """

    def added(now: tuple[str, ...], then: tuple[str, ...]) -> str:
        return logged(each for each in now if each not in then)

    ignored, not_applied = _without_effect(config, nodes)
    ignored_before, not_applied_before = _without_effect(before, nodes) if before else ((), ())
    if text := added(ignored, ignored_before):
        logger.info("settings without effect on a single node: %s", text)
    if text := added(not_applied, not_applied_before):
        logger.warning("settings not applied by this version: %s", text)
    if text := added(config.unknown_listener_keys, before.unknown_listener_keys if before else ()):
        logger.warning("settings for listeners that do not exist: %s", text)
    if text := added(config.unknown, before.unknown if before else ()):
        logger.warning("settings that are unknown or that Kafka has removed: %s", text)


def _without_effect(config: BrokerConfig, nodes: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the keys without effect, and ``key=value`` of each setting that is not applied."""
    if nodes == 1:
        return config.without_effect, config.not_applied
    ignored = [key for key in config.without_effect if key not in EFFECTIVE_WITH_SEVERAL]
    not_simulated = [
        f"{key}={value_text(config.originals[key])}"
        for key in ignored
        if key in _NOT_SIMULATED and config.originals[key] != _NOT_SIMULATED[key]
    ]
    return (
        tuple(key for key in ignored if key not in _NOT_SIMULATED),
        (*config.not_applied, *not_simulated),
    )
