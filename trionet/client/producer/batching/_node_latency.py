"""How long a node has been unable to accept batches (Kafka: NodeLatencyStats, KIP-794)."""

# Compiled by mypyc.

from __future__ import annotations


class NodeLatency:
    """When one node last had batches and last could accept them, on the loop's clock.

    Attributes:
        ready_at: when batches were last ready for it.
        drained_at: when it could last accept a request.
    """

    __slots__ = ("drained_at", "ready_at")

    def __init__(self, now: float) -> None:
        self.ready_at = now
        self.drained_at = now

    def update(self, now: float, *, can_drain: bool) -> None:
        """Record that batches are ready for the node, and whether it can accept a request."""
        self.ready_at = now
        if can_drain:
            self.drained_at = now

    @property
    def held_up_seconds(self) -> float:
        """For how long it has accepted nothing."""
        return self.ready_at - self.drained_at
