"""Functions of the user's that see what is handed out and committed (Kafka: ConsumerInterceptor).

They look on, and change nothing: what is to be changed, the loop changes. As in Kafka an error of
theirs is told in the log, and stops nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from ..._offset_and_metadata import OffsetAndMetadata
from ..._topic_partition import TopicPartition
from ._chunk import Chunk
from ._record import ConsumerBatch

logger = logging.getLogger("trionet.client.consumer")

OnConsume: TypeAlias = Callable[[ConsumerBatch], object]
"""Is shown records before the first of them is handed out."""

OnCommit: TypeAlias = Callable[[Mapping[TopicPartition, OffsetAndMetadata]], object]
"""Is told of offsets that were committed."""


class ConsumerHooks:
    """Calls the functions there are.

    Args:
        on_consume: sees records.
        on_commit: sees offsets.
    """

    def __init__(
        self, on_consume: OnConsume | None = None, on_commit: OnCommit | None = None
    ) -> None:
        self._on_consume = on_consume
        self._on_commit = on_commit

    def consumed(self, chunk: Chunk) -> None:
        """Records are about to be handed out."""
        if self._on_consume is None:
            return
        try:
            self._on_consume(chunk.whole())
        except Exception:  # boundary: a function of the user's
            logger.exception("on_consume failed")

    def committed(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Offsets were committed."""
        if self._on_commit is None:
            return
        try:
            self._on_commit(offsets)
        except Exception:  # boundary: a function of the user's
            logger.exception("on_commit failed")


#: Nobody looks on.
NO_HOOKS: Final = ConsumerHooks()
