"""A consumer's batches as an asynchronous iterator.

Not a generator, which would have to be closed where reading stops.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

from ._record import ConsumerBatch


class BatchLoop:
    """Iterates over batches until the consumer's block ends.

    Args:
        next_batch: :meth:`.Consumer.next_batch`.
    """

    __slots__ = ("_next_batch",)

    def __init__(self, next_batch: Callable[[], Awaitable[ConsumerBatch]]) -> None:
        self._next_batch = next_batch

    def __aiter__(self) -> AsyncIterator[ConsumerBatch]:
        return self

    def __anext__(self) -> Awaitable[ConsumerBatch]:
        return self._next_batch()
