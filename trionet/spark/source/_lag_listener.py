"""A streaming query listener that logs the lag of each query."""

from __future__ import annotations

import logging

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from ..._util._logging import get_logger
from ._lag import lag

logger = get_logger("trionet.spark")


class LagListener(StreamingQueryListener):
    """Logs the lag of each source after each micro-batch, to the ``trionet.spark`` logger.

    Add it with ``spark.streams.addListener(LagListener())``.

    Args:
        warn_offsets: the lag, in offsets, at which the level of a source's log line changes from
            INFO to WARNING; None for always INFO.
    """

    def __init__(self, warn_offsets: int | None = None) -> None:
        super().__init__()
        self._warn_offsets = warn_offsets

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Do nothing: there is no progress yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Log the lag of each source that reads topics."""
        progress = event.progress
        for source in lag(progress):
            total = source.total_offsets_behind_latest
            is_late = self._warn_offsets is not None and total >= self._warn_offsets
            logger.log(
                logging.WARNING if is_late else logging.INFO,
                "query %s, batch %d: %s is %d offsets behind (min %d, max %d, mean %.1f over %d"
                " partitions)",
                progress.name or progress.id,
                progress.batchId,
                source.description,
                total,
                source.min_offsets_behind_latest,
                source.max_offsets_behind_latest,
                source.avg_offsets_behind_latest,
                len(source.partitions),
            )

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Do nothing: an idle query has no new progress."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Do nothing: the last progress has already been logged."""
