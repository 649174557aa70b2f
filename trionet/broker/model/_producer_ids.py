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

    def allocate(self) -> int | None:
        """Return the next id, or None if the reserved block is exhausted."""
        return next(self._block, None)

    async def next_block(self) -> None:
        """Reserve the next block of ids, discarding what is left of the previous block.

        Raises:
            DatabaseError: no block was reserved, and the previous block is still in use.

        Cancellation: raises ``Cancelled`` only if no block was reserved.
        """
        first = await self._database.read(_reserve)
        self._block = iter(range(first, first + BLOCK_SIZE))

    async def next_id(self) -> int:
        """Return the next id, after reserving a block if needed.

        Raises:
            DatabaseError: no block could be reserved.

        Cancellation: may waste a block, but never uses an id twice.
        """
        async with self._reserving:
            producer_id = self.allocate()
            while producer_id is None:
                await self.next_block()
                producer_id = self.allocate()
            return producer_id


def _reserve(connection: Connection) -> int:
    row = connection.execute("SELECT next_producer_id FROM producer_id_block").fetchone()
    first: int = row[0] if row else 0
    if not 0 <= first <= ID_MAX:
        raise ValueError(f"the next producer id, {first}, is out of range")
    connection.execute("DELETE FROM producer_id_block")
    connection.execute("INSERT INTO producer_id_block VALUES (?)", (first + BLOCK_SIZE,))
    return first
