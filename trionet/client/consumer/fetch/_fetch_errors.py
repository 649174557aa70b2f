"""Partition errors in fetch responses (Kafka: FetchCollector.handleInitializeErrors)."""

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
from ...network._connections import RESPONSE_LIMIT
from ..state._partition_state import FetchPosition, PartitionState
from ..state._reset_strategy import NONE
from ..state._subscription_state import SubscriptionState

logger = logging.getLogger("trionet.client.consumer")

#: Errors of a node that is not up to date yet. A retry of the same request will soon succeed.
_NOT_YET: Final = frozenset({error_codes.UNKNOWN_LEADER_EPOCH, error_codes.OFFSET_NOT_AVAILABLE})


class FetchErrorAction(NamedTuple):
    """The action to take after a fetch error.

    Attributes:
        is_metadata_old: whether the metadata is stale and must be refreshed.
        error: the error to raise in the user's task; None to retry.
    """

    is_metadata_old: bool = False
    error: TrionetError | None = None


def fetch_error_action(
    name: TopicPartition,
    position: FetchPosition,
    error_code: int,
    state: PartitionState,
    subscriptions: SubscriptionState,
) -> FetchErrorAction:
    """Return the action for an error; if so configured, reset a position that is out of range.

    Args:
        name: the partition.
        position: the position in the fetch request.
        error_code: the partition's error code in the response; not 0.
        state: the state of the partition.
        subscriptions: holds the assigned partitions.
    """
    logger.info("fetching %s failed: %s", name, error_codes.name_of(error_code))
    if error_code == error_codes.OFFSET_OUT_OF_RANGE:
        return _out_of_range(name, position, state, subscriptions)
    if error_code in STALE_METADATA:
        return FetchErrorAction(is_metadata_old=True)
    if error_code in _NOT_YET:
        return FetchErrorAction()
    error = api_error(error_code, f"fetching {name}")
    return FetchErrorAction(error=None if is_retriable(error) else error)


def _out_of_range(
    name: TopicPartition,
    position: FetchPosition,
    state: PartitionState,
    subscriptions: SubscriptionState,
) -> FetchErrorAction:
    if state.forget_replica() is not None:
        return FetchErrorAction()  # a follower may lag: ask the leader
    if subscriptions.assignment.default_reset == NONE:
        message = (
            f"offset {position.offset} of {name} is out of range, and auto.offset.reset is none;"
            " seek() to an existing offset"
        )
        return FetchErrorAction(error=OffsetOutOfRangeError(message, *name, position.offset))
    subscriptions.assignment.request_reset(name)
    return FetchErrorAction()


def batch_too_large(
    name: TopicPartition, position: FetchPosition, error: ResponseTooLargeError
) -> FetchTooLargeError:
    """Return the error for a single-partition response that exceeds the client's size limit."""
    found = FetchTooLargeError(
        f"cannot read {name} at offset {position.offset}: the response with the next record batch"
        f" is {error.size} bytes long, more than {RESPONSE_LIMIT} = {error.bytes_max}; set"
        f" {RESPONSE_LIMIT} to {error.size} or more, or seek() past the batch",
        *name,
        position.offset,
        error.size,
        error.bytes_max,
    )
    found.__cause__ = error
    return found
