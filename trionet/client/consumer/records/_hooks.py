"""The user's hooks for records and commits (Kafka: ConsumerInterceptor).

Hooks cannot modify records; the user's loop can do that instead. As in Kafka, errors in hooks are
logged and have no other effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from ...._util._logging import get_logger
from ..._topic_partition import OffsetAndMetadata, TopicPartition
from ._chunk import Chunk
from ._record import ConsumerBatch

logger = get_logger("trionet.client.consumer")

OnConsume: TypeAlias = Callable[[ConsumerBatch], object]
"""A function that is called with a batch of records before its first record is handed out."""

OnCommit: TypeAlias = Callable[[Mapping[TopicPartition, OffsetAndMetadata]], object]
"""A function that is called with committed offsets."""


class ConsumerHooks:
    """The hooks of one consumer.

    Args:
        on_consume: called with the records of one partition; None for no hook.
        on_commit: called with committed offsets; None for no hook.
    """

    def __init__(
        self, on_consume: OnConsume | None = None, on_commit: OnCommit | None = None
    ) -> None:
        self._on_consume = on_consume
        self._on_commit = on_commit

    def consumed(self, chunk: Chunk) -> None:
        """Call ``on_consume`` with records that are about to be handed out."""
        if self._on_consume is None:
            return
        try:
            self._on_consume(chunk.whole())
        except Exception:  # boundary: a function of the user's
            logger.exception("on_consume failed")

    def committed(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Call ``on_commit`` with committed offsets."""
        if self._on_commit is None:
            return
        try:
            self._on_commit(offsets)
        except Exception:  # boundary: a function of the user's
            logger.exception("on_commit failed")


#: Used if the user has set no hooks.
NO_HOOKS: Final = ConsumerHooks()
