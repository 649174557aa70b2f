"""Errors that background work has found, until the user's next call raises them."""

from __future__ import annotations

from collections.abc import Callable

from ....errors import TrionetError
from ..._api_errors import LASTING
from ..._topic_partition import TopicPartition
from ._partition_state import PartitionState


class Failures:
    """See the module.

    A partition that has failed is left alone until the user was told, so that no error is found
    again and again meanwhile; a seek forgets it.

    Args:
        on_failure: called when there is one.
    """

    def __init__(self, on_failure: Callable[[], object]) -> None:
        self._on_failure = on_failure
        self._of_partitions: dict[TopicPartition, tuple[PartitionState, int, TrionetError]] = {}
        self._of_client: TrionetError | None = None

    def add(self, error: TrionetError) -> None:
        """Tell the user of something that is wrong with all; of several, the last."""
        self._of_client = error
        self._on_failure()

    def add_if_final(self, error: TrionetError | None) -> bool:
        """Tell the user of what kept a request from being answered, if trying again is no use.

        Returns:
            Whether it is no use.
        """
        if not isinstance(error, LASTING):
            return False
        self.add(error)
        return True

    def add_partition(
        self, name: TopicPartition, state: PartitionState, error: TrionetError
    ) -> None:
        """Tell the user of something that is wrong with a partition."""
        self._of_partitions[name] = state, state.jumps, error
        self._on_failure()

    def has(self, name: TopicPartition, state: PartitionState) -> bool:
        """Whether the user is still to be told of something about a partition."""
        found = self._of_partitions.get(name)
        return found is not None and found[0] is state and found[1] == state.jumps

    def take(self) -> TrionetError | None:
        """The next error to raise; None without any."""
        if self._of_client is not None:
            error, self._of_client = self._of_client, None
            return error
        while self._of_partitions:
            name = next(iter(self._of_partitions))
            state, jumps, error = self._of_partitions.pop(name)
            if state.jumps == jumps:
                return error
        return None
