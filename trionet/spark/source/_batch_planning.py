"""Plans the offset ranges of a batch (the connector: KafkaOffsetReaderAdmin).

Earliest and latest stay unresolved where possible: the task resolves them when it reads the range.
"""

from __future__ import annotations

from ..offsets._planning import batch_plan, split_plan
from ..offsets._ranges import OffsetRange, needs_split
from ..options._options import SourceOptions
from ._offset_reader import OffsetReader


async def batch_ranges(options: SourceOptions, reader: OffsetReader) -> list[OffsetRange]:
    """Return the range of offsets that each task of a batch reads.

    Args:
        options: the options of the source.
        reader: queries the cluster.

    Raises:
        OffsetsMismatchError: the given offsets are for other partitions than the query reads, or a
            partition starts after its end.
        TrionetError: the cluster could not be queried.
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
