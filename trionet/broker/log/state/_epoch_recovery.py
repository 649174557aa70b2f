"""Getting back the leader epochs of a log: from their file, or from the headers of the batches.

An epoch is on the disk before its records count as durable, and one that a crash may have cut away
is never used again: a consumer may remember it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from ....errors import ApiError, WireFormatError
from ..files._directory import Directory
from ..recovery._clean_start import read_batch_header
from ..segments._segment import Segment
from ._leader_epochs import EPOCH_MAX, LEADER_EPOCH_FILE, LeaderEpochs, decode_epochs

logger = logging.getLogger("trionet.broker.log")


def stored_epochs(
    directory: Directory, name: str, *, is_expected: bool = False
) -> LeaderEpochs | None:
    """What the file says; None if there is none, or it is damaged. Blocks."""
    try:
        return decode_epochs(directory.read(LEADER_EPOCH_FILE))
    except FileNotFoundError:
        if is_expected:
            logger.warning("%s: %s is missing, and made again", name, LEADER_EPOCH_FILE)
        return None
    except ValueError as error:
        logger.warning("%s: %s is made again: %s", name, LEADER_EPOCH_FILE, error)
        return None


def epochs_of_batches(segments: Iterable[Segment]) -> LeaderEpochs:
    """The epochs that the batches bear. Blocks, and reads all of their headers.

    What cannot be read is passed over, up to the next segment.
    """
    epochs = LeaderEpochs()
    for segment in segments:
        try:
            for place in segment.places(0):
                header = read_batch_header(segment, place.position)
                if epochs.latest < header.leader_epoch <= EPOCH_MAX:
                    epochs.assign(header.leader_epoch, header.base_offset)
        except (ApiError, WireFormatError) as error:
            logger.warning("%r: leader epochs may be forgotten: %s", segment, error)
    return epochs


def begin_next_epoch(
    directory: Directory, epochs: LeaderEpochs, end_offset: int, latest: int = 0
) -> None:
    """Begin an epoch at the end of a log whose stop was not clean. Blocks; durable afterwards.

    What was readable behind the end is lost, or nobody can tell that it is not. An epoch that was
    cut away with it is not used again: a consumer may remember it.

    Args:
        directory: the partition's folder.
        epochs: of the log.
        end_offset: its end.
        latest: an epoch that is known to have begun, whether ``epochs`` has it or not.

    Raises:
        OSError: it could not be written down.
    """
    following = max(epochs.latest, latest, 0) + 1
    epochs.remove_from(end_offset)
    epochs.assign(following, end_offset)
    data = epochs.encode()
    directory.replace(LEADER_EPOCH_FILE, data)
    epochs.note_saved(data)
