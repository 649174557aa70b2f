"""A Kafka broker of one node: logs, topics, one handler per API, ``open_broker``."""

from __future__ import annotations

from .run._broker import Broker, BrokerStatistics, open_broker

__all__ = ["Broker", "BrokerStatistics", "open_broker"]
