"""Calls the user's functions that observe records and commits (Kafka: ConsumerInterceptor).

They cannot change records: the loop over the records can do that. As in Kafka, their errors are
logged, and affect nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from ..._topic_partition import OffsetAndMetadata, TopicPartition
from ._chunk import Chunk
from ._record import ConsumerBatch

logger = logging.getLogger("trionet.client.consumer")

OnConsume: TypeAlias = Callable[[ConsumerBatch], object]
"""Called with a batch of records before the first of them is handed out."""

OnCommit: TypeAlias = Callable[[Mapping[TopicPartition, OffsetAndMetadata]], object]
"""Called with offsets that were committed."""


class ConsumerHooks:
    """Calls the user's functions, if they are set.

    Args:
        on_consume: called with records.
        on_commit: called with offsets.
    """

    def __init__(
        self, on_consume: OnConsume | None = None, on_commit: OnCommit | None = None
    ) -> None:
        self._on_consume = on_consume
        self._on_commit = on_commit

    def consumed(self, chunk: Chunk) -> None:
        """Report records that are about to be handed out."""
        if self._on_consume is None:
            return
        try:
            self._on_consume(chunk.whole())
        except Exception:  # boundary: a function of the user's
            logger.exception("on_consume failed")

    def committed(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Report offsets that were committed."""
        if self._on_commit is None:
            return
        try:
            self._on_commit(offsets)
        except Exception:  # boundary: a function of the user's
            logger.exception("on_commit failed")


#: Calls nothing.
NO_HOOKS: Final = ConsumerHooks()
