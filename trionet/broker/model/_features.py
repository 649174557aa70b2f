"""The cluster's feature levels (KIP-584), of which there is one: ``transaction.version`` (KIP-890).

Clients use the second transaction protocol only if its level is finalized in ApiVersions. The other
features of Kafka belong to its controllers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from ..._util._logging import get_logger
from ..storage._database import Database, DatabaseError
from ..storage._tables import PROPERTIES, UINT63, Fields, integer, read_property

if TYPE_CHECKING:
    from sqlite3 import Connection

logger = get_logger("trionet.broker")

TRANSACTION_VERSION: Final = "transaction.version"
LEVEL_MAX: Final = 2

_LEVEL: Final = "transaction.version"
_EPOCH: Final = "features.epoch"
_FEATURES: Final = Fields(level=integer(0, LEVEL_MAX), epoch=UINT63)


class Features:
    """The finalized level of ``transaction.version``.

    Args:
        database: stores the level.

    Attributes:
        level: the level: 0, 1 or 2. The default is 2, as in a new cluster of Kafka 4.
        epoch: increases with every change; clients ignore features with an epoch that they have
            seen already.
    """

    def __init__(self, database: Database) -> None:
        self.level: int = LEVEL_MAX
        self.epoch: int = 0
        self._database = database
        self._changing = trio.Lock()

    async def load(self) -> None:
        """Load the stored level.

        Raises:
            DatabaseError: the database cannot be read.
        """
        stored = await self._database.read(_load)
        if stored is not None:
            self.level, self.epoch = stored

    async def change(self, level: int) -> None:
        """Store and apply a new level.

        Raises:
            DatabaseError: the database cannot be written; the level is unchanged.
        """
        async with self._changing:  # otherwise, two levels could have the same epoch
            epoch = self.epoch + 1

            def put(connection: Connection) -> None:
                _FEATURES.checked((level, epoch))
                PROPERTIES.put(connection, [(_LEVEL, str(level)), (_EPOCH, str(epoch))])

            await self._database.transaction(put)
            self.level, self.epoch = level, epoch


def _load(connection: Connection) -> tuple[int, int] | None:
    level = read_property(connection, _LEVEL, int)
    epoch = read_property(connection, _EPOCH, int)
    if level is None or epoch is None:
        return None
    try:
        _FEATURES.checked((level, epoch))
    except DatabaseError as error:
        logger.warning("ignoring an unreadable feature level of the database: %s", error)
        return None
    return level, epoch
