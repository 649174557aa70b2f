"""A Kafka broker in one process: its logs, topics, consumer groups and API handlers."""

from __future__ import annotations

from .log.compaction._cleaner import LastCleaning
from .run._broker import Broker, BrokerStatistics, open_broker
from .storage._disk import SYSTEM_DISK, Disk

__all__ = ["SYSTEM_DISK", "Broker", "BrokerStatistics", "Disk", "LastCleaning", "open_broker"]
