"""A Kafka broker of one node: logs, topics, one handler per API, ``open_broker``."""

from __future__ import annotations

from .run._broker import Broker, BrokerStatistics, open_broker
from .storage._disk import SYSTEM_DISK, Disk

__all__ = ["SYSTEM_DISK", "Broker", "BrokerStatistics", "Disk", "open_broker"]
