"""What a session of Spark is asked to measure, and what its responses are."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence

import attrs

OURS = "trionet"
EXACTLY_ONCE = "trionet, exactly once"
CONNECTOR = "JVM connector"
SYNTHETIC = "synthetic source"


@attrs.frozen
class Task:
    """What to measure.

    Attributes:
        work: the function of `bench.spark_session`.
        bootstrap: of the broker.
        topics: the topic of each side that takes part.
        rows: how many there are in a topic, or are written in one action.
        size: bytes of a value.
        is_keyed: records have keys, of which each is in a few records.
        has_headers: records have two headers each.
        codec: of the batches.
        batch_bytes: of a batch, at most, where Spark fills the topic; 0 for the producer's default.
        has_unix_sockets: Spark and its Python workers are connected by them, and not by TCP.
    """

    work: str
    bootstrap: str
    topics: Mapping[str, str]
    rows: int
    size: int
    is_keyed: bool = False
    has_headers: bool = False
    codec: str = "none"
    batch_bytes: int = 0
    has_unix_sockets: bool = False

    def as_text(self) -> str:
        """For a command line."""
        return json.dumps(attrs.asdict(self))

    @classmethod
    def of_text(cls, text: str) -> Task:
        """The inverse of `as_text`."""
        return cls(**json.loads(text))


@attrs.frozen
class Outcome:
    """What one side has taken.

    Attributes:
        side: which.
        ask: what was asked, where a session asks several things.
        amount: rows in one action; 1 where its length is what matters.
        seconds: of each action.
    """

    side: str
    ask: str
    amount: int
    seconds: Sequence[float]

    def as_text(self) -> str:
        """One line."""
        return json.dumps(attrs.asdict(self))

    @classmethod
    def of_text(cls, text: str) -> Outcome:
        """The inverse of `as_text`."""
        return cls(**json.loads(text))

    def figures(self) -> dict[str, float]:
        """Of the median action and of the best."""
        median = statistics.median(self.seconds)
        return {
            "per_s": self.amount / median,
            "best": self.amount / min(self.seconds),
            "ms": 1000 * median,
        }
