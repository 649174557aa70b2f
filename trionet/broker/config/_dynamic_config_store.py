"""What was altered of the settings of brokers: kept in the database, put into effect at once.

One for all brokers that share a database. A change is checked by every broker that it concerns,
then stored, and then put into effect by each of them.
"""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeAlias

import attrs
import trio

from ...errors import ApiError, ConfigError
from ...protocol.error_codes import INVALID_REQUEST
from ..storage._database import DATABASE_NAME, Database
from ..storage._folder_ownership import open_stopped
from ._alterations import Change
from ._broker_config import BrokerConfig
from ._dynamic_config import DynamicConfig
from ._dynamic_keys import checked_with, read_settings, shown
from ._settings_report import report_settings

if TYPE_CHECKING:
    from sqlite3 import Connection

logger = logging.getLogger("trionet.broker")

OF_ALL = ""
"""The name that stands for all brokers."""

Apply: TypeAlias = Callable[[], Awaitable[None]]
"""Puts a change into effect that was checked before."""


class ConfiguredBroker(Protocol):
    """A running broker, as far as its settings are concerned."""

    @property
    def settings(self) -> DynamicConfig:
        """The settings that count now."""
        ...

    async def prepare(self, settings: DynamicConfig, altered: frozenset[str]) -> Apply:
        """Check what it would have to do for other settings, and give what does it.

        Args:
            settings: the other ones.
            altered: the keys that were asked for, the same value as before included.

        Raises:
            ConfigError: they are not allowed.
        """
        ...


class BrokerConfigs:
    """The altered settings of brokers; made by :meth:`load`."""

    def __init__(
        self, database: Database, stored: dict[str, dict[str, str]], common: frozenset[str]
    ) -> None:
        self._database = database
        self._common = common
        self._stored = stored
        self._brokers: list[tuple[str, ConfiguredBroker]] = []
        self._changing = trio.Lock()

    @classmethod
    async def load(cls, database: Database, common: frozenset[str] = frozenset()) -> BrokerConfigs:
        """Read what was altered.

        Args:
            database: where it is kept.
            common: keys that brokers cannot have of their own.

        Raises:
            DatabaseError: the database cannot be read.
        """
        return cls(database, await database.read(_load), common)

    def of_broker(self, static: BrokerConfig) -> DynamicConfig:
        """The settings of a broker that starts.

        Args:
            static: what it is started with.
        """
        own = {}
        for key, text in self._stored.get(str(static.node_id), {}).items():
            if key in self._common:
                logger.warning("an altered setting is left out: %s", not_of_one(key))
            else:
                own[key] = text
        return DynamicConfig.restore(static, self._stored.get(OF_ALL, {}), own)

    @asynccontextmanager
    async def unchanged(self) -> AsyncIterator[None]:
        """Nothing is altered within the block, as long as a broker starts, for instance."""
        async with self._changing:
            yield

    def join(self, node_id: int, broker: ConfiguredBroker) -> None:
        """Tell a broker, or a part of it, of changes from now on."""
        self._brokers.append((str(node_id), broker))

    def leave(self, broker: ConfiguredBroker) -> None:
        """Tell who has joined of no more changes."""
        self._brokers = [each for each in self._brokers if each[1] is not broker]

    async def alter(
        self, name: str, change: Change, named: Collection[str] = (), *, validate_only: bool = False
    ) -> None:
        """Change the settings of one broker, or of all.

        Args:
            name: a node id, or :data:`OF_ALL`.
            change: makes the new settings of the old ones.
            named: keys that take effect again although their value stays the same, as a key store
                does that was replaced (KAFKA-14136).
            validate_only: check, and change nothing.

        Raises:
            ApiError: INVALID_REQUEST: a setting is not allowed, and nothing was changed (Kafka
                says INVALID_CONFIG only of topics: KAFKA-13609); or ``change`` raises it.
            DatabaseError: it cannot be stored, and nothing was changed.

        Cancellation: raises ``Cancelled`` only if nothing was stored, or while it is being put
        into effect, which the next start does in any case.
        """
        async with self._changing:
            old = self._stored.get(name, {})
            new = change(old)
            different = {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
            altered = frozenset(different.union(named))
            changes: list[tuple[BrokerConfig, BrokerConfig, Apply]] = []
            try:
                if name != OF_ALL:
                    self._check_own(new, altered)
                for broker in self._concerned(name):
                    settings = _changed(broker.settings, name, new, altered)
                    apply = await broker.prepare(settings, altered)
                    changes.append((broker.settings.current, settings.current, apply))
            except ConfigError as error:
                raise ApiError(INVALID_REQUEST, str(error)) from None
            if validate_only:
                return
            await self._database.transaction(partial(_replace, broker=name, settings=new))
            self._stored[name] = new
            _log(name, old, new)
            for before, after, _ in changes[:1]:
                nodes = len({node_id for node_id, _ in self._brokers})
                report_settings(after, before, nodes=nodes)
            for *_, apply in changes:
                await apply()

    def _check_own(self, own: Mapping[str, str], altered: Collection[str]) -> None:
        """Refuse what no broker can have of its own, unless it is as it was before."""
        for key in own:
            if key in self._common and key in altered:
                raise ConfigError(not_of_one(key))

    def _concerned(self, name: str) -> list[ConfiguredBroker]:
        return [broker for id, broker in self._brokers if name in (OF_ALL, id)]


def not_of_one(key: str) -> str:
    """What is wrong with one broker's own setting where all have the same logs."""
    return (
        f"{key} cannot be set for one node, since all nodes have the same logs; set it for all of"
        " them, with an empty name"
    )


def _changed(
    settings: DynamicConfig, name: str, texts: Mapping[str, str], altered: Collection[str]
) -> DynamicConfig:
    """The settings of one broker with another layer.

    What was left out at the start stays so until it is altered, or what it is checked with.

    Raises:
        ConfigError: it is not allowed. What is only wrong since a start with other static settings
            does not keep anybody from altering other keys.
    """
    of_all = name == OF_ALL
    values, _ = read_settings(settings.static, texts, of_all=of_all, altered=altered)
    before = settings.cluster if of_all else settings.own
    groups = {checked_with(key) for key in (*before, *altered)}
    layer = {key: value for key, value in values.items() if checked_with(key) in groups}
    if of_all:
        return attrs.evolve(settings, cluster=layer)
    return attrs.evolve(settings, own=layer)


def _log(name: str, old: Mapping[str, str], new: Mapping[str, str]) -> None:
    """Tell the operator what others have changed."""
    said = [f"{key}={shown(key, text)}" for key, text in new.items() if old.get(key) != text]
    said += [f"{key} deleted" for key in old if key not in new]
    if said:
        logger.info("settings of %s altered: %s", _named(name), ", ".join(said))


async def reset_altered(folder: str) -> list[str]:
    """Forget what was altered of the settings of brokers, while the broker is not running.

    The settings of topics stay.

    Args:
        folder: the data folder.

    Returns:
        What was forgotten, as ``broker 1: KEY=VALUE``; what could be a secret is hidden.

    Raises:
        ConfigError: there is no broker's data in the folder, or it is in use.
        DatabaseError: the database cannot be opened or written, and nothing was forgotten.
        OSError: the folder cannot be used.

    Cancellation: all of it is forgotten, or nothing.
    """
    _check_data(folder)
    async with open_stopped(folder) as database:
        stored = await database.transaction(_forget)
    return [
        f"{_named(name)}: {key}={shown(key, text)}"
        for name, settings in sorted(stored.items())
        for key, text in sorted(settings.items())
    ]


def _check_data(folder: str) -> None:
    """Make no folder, and no database, only to find nothing in it."""
    if not os.path.exists(os.path.join(folder, DATABASE_NAME)):
        raise ConfigError(f"{folder} holds no {DATABASE_NAME}, so that nothing was altered there")


def _named(name: str) -> str:
    return "all brokers" if name == OF_ALL else f"broker {name}"


def _forget(connection: Connection) -> dict[str, dict[str, str]]:
    stored = _load(connection)
    connection.execute("DELETE FROM broker_config")
    return stored


def _load(connection: Connection) -> dict[str, dict[str, str]]:
    stored: dict[str, dict[str, str]] = {}
    for broker, name, value in connection.execute("SELECT broker, name, value FROM broker_config"):
        stored.setdefault(broker, {})[name] = value
    return stored


def _replace(connection: Connection, broker: str, settings: Mapping[str, str]) -> None:
    connection.execute("DELETE FROM broker_config WHERE broker = ?", (broker,))
    connection.executemany(
        "INSERT INTO broker_config VALUES (?, ?, ?)",
        [(broker, name, value) for name, value in settings.items()],
    )
