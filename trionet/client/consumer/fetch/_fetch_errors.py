"""What a consumer makes of a partition that could not be fetched.

(Kafka: FetchCollector.handleInitializeErrors.)
"""

from __future__ import annotations

import logging
from typing import Final, NamedTuple

from ....errors import (
    FetchTooLargeError,
    OffsetOutOfRangeError,
    ResponseTooLargeError,
    TrionetError,
)
from ....protocol import error_codes
from ..._api_errors import STALE_METADATA, api_error, is_retriable
from ..._topic_partition import TopicPartition
from ...connections._connections import RESPONSE_LIMIT
from ..state._partition_state import FetchPosition, PartitionState
from ..state._reset_strategy import NONE
from ..state._subscription_state import SubscriptionState

logger = logging.getLogger("trionet.client.consumer")

#: The node is behind, or is not sure yet; the same question will be answered soon.
_NOT_YET: Final = frozenset({error_codes.UNKNOWN_LEADER_EPOCH, error_codes.OFFSET_NOT_AVAILABLE})


class Refusal(NamedTuple):
    """What is to be done.

    Attributes:
        is_metadata_old: ask for them.
        error: tell the user.
    """

    is_metadata_old: bool = False
    error: TrionetError | None = None


def refused(
    name: TopicPartition,
    position: FetchPosition,
    error_code: int,
    state: PartitionState,
    subscriptions: SubscriptionState,
) -> Refusal:
    """A partition was not fetched; a position that is not there is reset, if that is wished.

    Args:
        name: of the partition.
        position: where it was to be fetched from.
        error_code: from the answer; not 0.
        state: of the partition.
        subscriptions: what the partition is part of.
    """
    logger.info("%s cannot be fetched: %s", name, error_codes.name_of(error_code))
    if error_code == error_codes.OFFSET_OUT_OF_RANGE:
        return _out_of_range(name, position, state, subscriptions)
    if error_code in STALE_METADATA:
        return Refusal(is_metadata_old=True)
    if error_code in _NOT_YET:
        return Refusal()
    error = api_error(error_code, f"fetching {name}")
    return Refusal(error=None if is_retriable(error) else error)


def _out_of_range(
    name: TopicPartition,
    position: FetchPosition,
    state: PartitionState,
    subscriptions: SubscriptionState,
) -> Refusal:
    if state.forget_replica() is not None:
        return Refusal()  # a follower may be behind: the leader knows
    if subscriptions.default_reset == NONE:
        message = (
            f"{name} has no offset {position.offset}, and auto.offset.reset is none; "
            "seek() to one that is there"
        )
        return Refusal(error=OffsetOutOfRangeError(message, *name, position.offset))
    subscriptions.request_reset(name)
    return Refusal()


def too_large(
    name: TopicPartition, position: FetchPosition, error: ResponseTooLargeError
) -> FetchTooLargeError:
    """The response about a partition alone is larger than the client takes."""
    found = FetchTooLargeError(
        f"{name} cannot be read at offset {position.offset}: the response with its next record"
        f" batch has {error.size} bytes, more than {RESPONSE_LIMIT} = {error.bytes_max} of this"
        f" consumer allows; set it to {error.size} or more, or seek() past the batch",
        *name,
        position.offset,
        error.size,
        error.bytes_max,
    )
    found.__cause__ = error
    return found
