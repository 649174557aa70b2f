"""Puts the files of a cleaned segment in the place of those that it replaces.

(Kafka: LocalLog.replaceSegments; LogLoader for what a crash leaves.) Any change of a name that was
not synced may be missing after a power failure, and others that came later may be there. So the
steps are separated by syncs of the directory:

1. ``.cleaned``: the log file, which cleaning has written, and its indexes, with contents and names
   on disk. A start removes them.
2. ``.swap``: all four are renamed, the log file last. **Once its name on disk ends with ``.swap``,
   it counts**, and a start completes what follows. An index may still be ``.cleaned`` then, or
   have its final name already.
3. The files of the replaced segments are removed, except those with the same base offset, and the
   indexes get their final names.
4. The log file gets its final name. This need not be synced: a start would do it again.

Which segments are replaced need not be written down: they are those that begin inside the range of
the new file, because its last batch ends where the last of them ended.

There is always a ``.txnindex``, if only an empty one: otherwise a start could take the old one for
the new one. If an entry outlived its abort marker, consumers would skip the records of the
producer's next transactions.

All functions block.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from ...._util._logging import get_logger
from ....errors import ApiError
from ..files._directory import Directory
from ._log_batches import CLEANED_SUFFIX, SWAP_SUFFIX, batches_from, file_name, is_offset
from ._segment import Segment
from ._segments import INDEXES

logger = get_logger("trionet.broker.log")

_LOG_SWAP = ".log" + SWAP_SUFFIX


def write_indexes(segment: Segment) -> None:
    """Write the indexes of a cleaned segment, whose log file is on disk as ``.cleaned``.

    Raises:
        OSError: call :func:`undo`.
    """
    directory = segment.directory
    for suffix, data in segment.indexes.encode().items():
        name = segment.name(suffix) + CLEANED_SUFFIX
        directory.remove(name)
        directory.write(name, 0, data)
        directory.sync_file(name)
    directory.set_modified_ms(segment.name("log") + CLEANED_SUFFIX, segment.modified_ms)
    directory.sync()


def commit(segment: Segment) -> None:
    """Make the files of a cleaned segment count instead of those of the segments it replaces.

    Raises:
        OSError: they may count or not; call :func:`undo`.
    """
    directory = segment.directory
    for suffix in (*INDEXES, "log"):
        name = segment.name(suffix)
        directory.rename(name + CLEANED_SUFFIX, name + SWAP_SUFFIX)
    directory.sync()


def undo(directory: Directory, base_offset: int) -> None:
    """Remove the files of a cleaned segment that does not count yet.

    Raises:
        OSError: some may be left. If the log file is, the next start lets it count.
    """
    # The log file first: with this name, but without its indexes, it would get the old ones.
    directory.remove(file_name(base_offset, "log") + SWAP_SUFFIX)
    directory.sync()
    for suffix in (*INDEXES, "log"):
        name = file_name(base_offset, suffix)
        directory.remove(name + SWAP_SUFFIX)
        directory.remove(name + CLEANED_SUFFIX)


def finish(segment: Segment, replaced: list[Segment]) -> None:
    """Remove the files of the replaced segments, and give those of the new one their names.

    Raises:
        OSError: the next start completes it.
    """
    obsolete = [each.base_offset for each in replaced[1:]]
    names = {segment.name(suffix) + SWAP_SUFFIX for suffix in INDEXES}
    _finish(segment.directory, segment.base_offset, obsolete, names)
    # Here rather than with the last reference, which the loop would drop: to free the space of a
    # gigabyte takes most of a second.
    for each in replaced:
        each.close_file()


def _finish(
    directory: Directory, base_offset: int, obsolete: list[int], names: Container[str]
) -> None:
    """Do what is left of steps 3 and 4.

    Args:
        directory: the partition's directory.
        base_offset: the base offset of the cleaned segment.
        obsolete: the base offsets of the other segments that it replaces, ascending.
        names: the names of the files in the directory that end with ``.swap`` or ``.cleaned``.
    """
    for each in reversed(obsolete):
        for suffix in (*INDEXES, "snapshot", "log"):
            directory.remove(file_name(each, suffix))
    for suffix in INDEXES:
        name = file_name(base_offset, suffix)
        for found in (name + SWAP_SUFFIX, name + CLEANED_SUFFIX):
            if found in names:
                directory.rename(found, name)
                break
    directory.sync()
    log = file_name(base_offset, "log")
    directory.rename(log + SWAP_SUFFIX, log)
    aborted = file_name(base_offset, "txnindex")
    try:
        if not directory.size(aborted):
            directory.remove(aborted)
    except FileNotFoundError:
        pass  # Kafka, whose swap this was, writes none without entries


def recover(directory: Directory, name: str, names: list[str]) -> list[str]:
    """Complete the swaps that a crash has interrupted, or remove what is left of them.

    Call this before anything else looks for segments. ``.cleaned`` files of other segments are left
    to :func:`.find_segments`.

    Args:
        directory: the partition's directory.
        name: the partition's name, for use in messages.
        names: the names of the files in the directory.

    Returns:
        The names of the files that there are now.

    Raises:
        OSError: the directory cannot be read or written.
    """
    if not any(each.endswith(SWAP_SUFFIX) for each in names):
        return names
    bases = [
        int(stem)
        for each in names
        if each.endswith(_LOG_SWAP) and is_offset(stem := each.removesuffix(_LOG_SWAP))
    ]
    for base_offset in bases:
        end_offset = _end_of_swap(directory, base_offset)
        logger.info(
            "%s: completing the replacement of the segments from offset %d to %d by a cleaned one",
            name,
            base_offset,
            end_offset - 1,
        )
        obsolete = [each for each in _log_bases(names) if base_offset < each < end_offset]
        _finish(directory, base_offset, obsolete, frozenset(names))
    for each in directory.names():
        if each.endswith(SWAP_SUFFIX):
            directory.remove(each)
    return directory.names()


def _log_bases(names: Iterable[str]) -> list[int]:
    stems = (each.removesuffix(".log") for each in names if each.endswith(".log"))
    return sorted(int(stem) for stem in stems if is_offset(stem))


def _end_of_swap(directory: Directory, base_offset: int) -> int:
    """Return the offset after the last batch of the log file of an interrupted swap."""
    log = file_name(base_offset, "log") + SWAP_SUFFIX
    file = directory.open(log)
    end_offset = base_offset
    try:
        for place in batches_from(file, 0, file.size(), base_offset):
            end_offset = place.last_offset + 1
    except ApiError as error:
        # It was on disk before it counted. What follows the damage cannot be read in any case.
        logger.error("%r: %s: %s", directory, log, error)  # noqa: TRY400
    return end_offset
