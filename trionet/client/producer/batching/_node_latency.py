"""How long each node has not taken what was there for it (Kafka: NodeLatencyStats, KIP-794)."""

# Compiled by mypyc.

from __future__ import annotations


class NodeLatency:
    """The times of one node, on the loop's clock.

    Attributes:
        ready_at: when there was something for it the last time.
        drained_at: when it could take it the last time.
    """

    __slots__ = ("drained_at", "ready_at")

    def __init__(self, now: float) -> None:
        self.ready_at = now
        self.drained_at = now

    def update(self, now: float, *, can_drain: bool) -> None:
        """There is something for the node; whether it can take it."""
        self.ready_at = now
        if can_drain:
            self.drained_at = now

    @property
    def held_up_seconds(self) -> float:
        """For how long it has not taken anything."""
        return self.ready_at - self.drained_at
