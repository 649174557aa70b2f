"""Errors of background tasks, kept until the user's next request for a record raises them."""

from __future__ import annotations

from collections.abc import Callable

from ....errors import TrionetError
from ..._api_errors import LASTING
from ..._topic_partition import TopicPartition
from ._partition_state import PartitionState


class PendingErrors:
    """A collection of errors for the task that reads records.

    A failed partition is not retried until its error has been raised, so that the same error is not
    collected repeatedly. A seek discards the error.

    Args:
        on_failure: called when an error is added.
    """

    def __init__(self, on_failure: Callable[[], object]) -> None:
        self._on_failure = on_failure
        self._of_partitions: dict[TopicPartition, tuple[PartitionState, int, TrionetError]] = {}
        self._of_client: TrionetError | None = None

    def add(self, error: TrionetError) -> None:
        """Add an error that concerns the whole consumer, replacing any earlier one."""
        self._of_client = error
        self._on_failure()

    def add_if_final(self, error: TrionetError | None) -> bool:
        """Add the error of a request if it is one that a retry cannot fix.

        Returns:
            Whether the error was added.
        """
        if not isinstance(error, LASTING):
            return False
        self.add(error)
        return True

    def add_partition(
        self, name: TopicPartition, state: PartitionState, error: TrionetError
    ) -> None:
        """Add an error that concerns one partition, replacing any earlier one."""
        self._of_partitions[name] = state, state.jumps, error
        self._on_failure()

    def has(self, name: TopicPartition, state: PartitionState) -> bool:
        """Whether the partition has an error that has not been raised yet."""
        found = self._of_partitions.get(name)
        return found is not None and found[0] is state and found[1] == state.jumps

    def take(self) -> TrionetError | None:
        """Remove and return the next error to raise; None if there is none."""
        if self._of_client is not None:
            error, self._of_client = self._of_client, None
            return error
        while self._of_partitions:
            name = next(iter(self._of_partitions))
            state, jumps, error = self._of_partitions.pop(name)
            if state.jumps == jumps:
                return error
        return None
