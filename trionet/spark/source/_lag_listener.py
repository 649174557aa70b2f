"""A listener that tells in the log how far queries are behind."""

from __future__ import annotations

import logging

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from ._lag import lag

logger = logging.getLogger("trionet.spark")


class LagListener(StreamingQueryListener):
    """Logs the lag of each source after each micro-batch, to ``trionet.spark``.

    Add it with ``spark.streams.addListener(LagListener())``.

    Args:
        warn_offsets: a source that is so many offsets behind, or more, is a warning; all others
            are told as information. ``None`` never warns.
    """

    def __init__(self, warn_offsets: int | None = None) -> None:
        super().__init__()
        self._warn_offsets = warn_offsets

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Nothing is known yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Tell of each source that reads topics."""
        progress = event.progress
        for source in lag(progress):
            total = source.total_offsets_behind_latest
            is_late = self._warn_offsets is not None and total >= self._warn_offsets
            logger.log(
                logging.WARNING if is_late else logging.INFO,
                "query %s, batch %d: %s is %d offsets behind (least %d, most %d, mean %.1f in %d"
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
        """There is no news of a query that waits for records."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """What it had read, its last progress has told."""
