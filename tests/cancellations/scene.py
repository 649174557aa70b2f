"""Where one schedule takes place: a broker in memory, and a cut."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import attrs

from cancellations.cut import Cut
from trionet.testing import BrokerControl, MemoryNetwork

BROKER_HOST = "10.0.0.1"
ADDRESS = f"{BROKER_HOST}:9092"
PARTITIONS = 2


class UserError(Exception):
    """What a user's own code raises."""


@attrs.define
class Scene:
    """One schedule.

    Attributes:
        name: no other schedule of this broker has it; of topics and groups.
        kit: looks into the broker.
        network: where it is.
        rng: draws the same for each schedule of a program.
        cut: its one cancellation.
    """

    name: str
    kit: BrokerControl
    network: MemoryNetwork
    rng: random.Random
    cut: Cut

    async def make_topic(self) -> str:
        """A topic that nobody else uses."""
        topic = f"t-{self.name}"
        await self.kit.create_topic(topic, PARTITIONS)
        return topic


Program: TypeAlias = Callable[[Scene], Awaitable[None]]
"""What a user does, and what has to hold then."""
