"""A Kafka broker in one process: logs, topics, consumer groups, and one handler per API."""

from __future__ import annotations

from .broker import Broker, BrokerStatistics, open_broker

__all__ = ["Broker", "BrokerStatistics", "open_broker"]
