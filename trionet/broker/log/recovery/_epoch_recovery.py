"""Recovers the leader epochs of a log: from their file, or from the batch headers.

A leader epoch is on disk before its records count as durable. A leader epoch whose records a crash
may have lost is never used again, because a consumer may have seen it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from ....errors import ApiError, WireFormatError
from ..files._directory import Directory
from ..segments._log_batches import header_at
from ..segments._segment import Segment
from ..state._leader_epochs import EPOCH_MAX, LEADER_EPOCH_FILE, LeaderEpochs, decode_epochs

logger = logging.getLogger("trionet.broker.log")


def stored_epochs(
    directory: Directory, name: str, *, is_expected: bool = False
) -> LeaderEpochs | None:
    """Return the epochs stored in their file; None if it is missing or damaged. Blocks."""
    try:
        return decode_epochs(directory.read(LEADER_EPOCH_FILE))
    except FileNotFoundError:
        if is_expected:
            logger.warning("%s: %s is missing; rebuilding it", name, LEADER_EPOCH_FILE)
        return None
    except ValueError as error:
        logger.warning("%s: %s is damaged; rebuilding it: %s", name, LEADER_EPOCH_FILE, error)
        return None


def epochs_of_batches(segments: Iterable[Segment]) -> LeaderEpochs:
    """Rebuild the epochs from the headers of all batches. Blocks.

    After an unreadable batch, continues with the next segment.
    """
    epochs = LeaderEpochs()
    for segment in segments:
        try:
            for place in segment.places(0):
                header = header_at(segment.file, place.position)
                if epochs.latest < header.leader_epoch <= EPOCH_MAX:
                    epochs.assign(header.leader_epoch, header.base_offset)
        except (ApiError, WireFormatError) as error:
            logger.warning("%r: leader epochs may be lost: %s", segment, error)
    return epochs


def assign_next_epoch(
    directory: Directory, epochs: LeaderEpochs, end_offset: int, latest: int = 0
) -> None:
    """Start an epoch at the end of a log after an unclean shutdown. Blocks until it is durable.

    Consumers may have read records beyond the current end, which are now lost. The epoch of those
    records is not used again, because a consumer may have seen it.

    Args:
        directory: the partition's directory.
        epochs: the epochs of the log.
        end_offset: the log end offset.
        latest: an epoch that is known to have started, even if ``epochs`` does not contain it.

    Raises:
        OSError: the file could not be written.
    """
    following = max(epochs.latest, latest, 0) + 1
    epochs.remove_from(end_offset)
    epochs.assign(following, end_offset)
    data = epochs.encode()
    directory.replace(LEADER_EPOCH_FILE, data)
    epochs.note_saved(data)
