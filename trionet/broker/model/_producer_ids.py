"""Allocates producer ids, each at most once, even after a crash.

A block of ids is reserved in the database before the first id of the block is used. A crash wastes
only the rest of the block (Kafka: ProducerIdManager, ProducerIdsBlock).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from ..storage._database import Database

if TYPE_CHECKING:
    from sqlite3 import Connection

BLOCK_SIZE = 1000
ID_MAX = 2**63 - 1 - BLOCK_SIZE


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
                first = await self._database.read(_reserve)
                self._block = iter(range(first, first + BLOCK_SIZE))
                producer_id = next(self._block)
            return producer_id


def _reserve(connection: Connection) -> int:
    row = connection.execute("SELECT next_producer_id FROM producer_id_block").fetchone()
    first: int = row[0] if row else 0
    if not 0 <= first <= ID_MAX:
        raise ValueError(f"the next producer id, {first}, is out of range")
    connection.execute("DELETE FROM producer_id_block")
    connection.execute("INSERT INTO producer_id_block VALUES (?)", (first + BLOCK_SIZE,))
    return first
