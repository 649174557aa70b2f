"""Allocates producer ids, each at most once, even after a crash.

A block of ids is reserved in the database before the first id of the block is used. A crash wastes
only the rest of the block (Kafka: ProducerIdManager, ProducerIdsBlock).
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

import trio

from ..storage._database import Database, DatabaseError
from ..storage._tables import UINT63, Fields, Table

if TYPE_CHECKING:
    from sqlite3 import Connection

BLOCK_SIZE = 1000
ID_MAX = 2**63 - 1 - BLOCK_SIZE

_BLOCKS: Final = Table("producer_id_block", 1, Fields(next_producer_id=UINT63))


class ProducerIds:
    """Allocates producer ids, in ascending order, starting at 0 in a new database.

    Args:
        database: stores the reserved blocks.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._reserving = trio.Lock()
        self._block = iter(range(0))

    async def next_id(self) -> int:
        """Return the next id, after reserving a block if needed.

        Raises:
            DatabaseError: no block could be reserved.

        Cancellation: may waste a block, but never uses an id twice.
        """
        async with self._reserving:
            producer_id = next(self._block, None)
            if producer_id is None:
                first = await self._database.transaction(_reserve)
                self._block = iter(range(first, first + BLOCK_SIZE))
                producer_id = next(self._block)
            return producer_id


def _reserve(connection: Connection) -> int:
    [is_stored] = connection.execute("SELECT count(*) FROM producer_id_block").fetchone()
    first = max(_BLOCKS.read(connection, int), default=None)
    if first is None:
        # If the stored number is unreadable, far from any id that was given before.
        first = (1 + secrets.randbelow(ID_MAX // BLOCK_SIZE)) * BLOCK_SIZE if is_stored else 0
    if first > ID_MAX:
        raise DatabaseError("all producer ids are in use")
    connection.execute("DELETE FROM producer_id_block")
    _BLOCKS.put(connection, [(first + BLOCK_SIZE,)])
    return first
