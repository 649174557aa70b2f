"""The ranges of a batch (the connector: KafkaOffsetReaderAdmin).

What is the earliest and the latest stays open: it is found out where the range is read.
"""

from __future__ import annotations

from ..offsets._planning import batch_plan, split_plan
from ..offsets._ranges import OffsetRange, needs_split
from ..options._options import SourceOptions
from ._offset_reader import OffsetReader


async def batch_ranges(options: SourceOptions, reader: OffsetReader) -> list[OffsetRange]:
    """What each task of a batch reads.

    Args:
        options: of the source.
        reader: asks the cluster.

    Raises:
        OffsetsMismatchError: there are offsets for other partitions than the query reads, or one
            begins behind its end.
        TrionetError: the cluster could not be asked.
    """
    partitions = await reader.partitions()
    start = await reader.limit(options.starting, partitions, is_start=True)
    end = await reader.limit(options.ending, partitions, is_start=False)
    ranges = batch_plan(start, end, topic_ids=reader.topic_ids)
    least, most = options.min_partitions, options.max_records_per_partition
    if not needs_split(len(ranges), least, most):
        return ranges
    start, end = await reader.resolved(start), await reader.resolved(end)
    return split_plan(ranges, start, end, least, most)
