"""Where partitions begin and end."""

from __future__ import annotations

from collections.abc import Iterable

from trionet.client._topic_partition import TopicPartition
from trionet.client.admin._admin import Admin
from trionet.client.admin.topics._partitions import ListedOffset, OffsetSpec
from trionet.errors import TrionetError

Limits = dict[TopicPartition, tuple[int | None, int | None]]
"""The first offset that is left and the one of the next record, None where it is not known."""


async def start_and_end(
    admin: Admin, partitions: Iterable[TopicPartition], *, read_committed: bool = False
) -> tuple[Limits, list[TrionetError]]:
    """Where partitions begin and end, and why that is not known of some.

    Args:
        admin: whom to ask.
        partitions: of these.
        read_committed: the end is that of what is not in an open transaction.

    Raises:
        TrionetError: the request as a whole failed.
    """
    wanted = list(partitions)
    starts = await admin.list_offsets(dict.fromkeys(wanted, OffsetSpec.EARLIEST))
    ends = await admin.list_offsets(
        dict.fromkeys(wanted, OffsetSpec.LATEST), read_committed=read_committed
    )
    # A partition that fails mostly does so twice, and for the same reason.
    errors = {str(error): error for each in (starts, ends) for error in each.errors.values()}
    found = {key: (_offset(starts[key]), _offset(ends[key])) for key in wanted}
    return found, list(errors.values())


async def offsets_at(
    admin: Admin, partitions: Iterable[TopicPartition], time: int
) -> tuple[dict[TopicPartition, int], list[TrionetError]]:
    """The first offset of each partition from a time on, its end if there is none.

    Args:
        admin: whom to ask.
        partitions: of these.
        time: in milliseconds since 1970.

    Raises:
        TrionetError: the request as a whole failed.
    """
    wanted = list(partitions)
    found = await admin.list_offsets(dict.fromkeys(wanted, time))
    late = [
        key for key, each in found.items() if isinstance(each, ListedOffset) and each.offset is None
    ]
    found.update(await admin.list_offsets(dict.fromkeys(late, OffsetSpec.LATEST)))
    offsets = {key: offset for key in wanted if (offset := _offset(found[key])) is not None}
    return offsets, list(found.errors.values())


def _offset(result: ListedOffset | TrionetError) -> int | None:
    return result.offset if isinstance(result, ListedOffset) else None
