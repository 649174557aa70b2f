"""For tests of programs that use Kafka: a real broker, started in milliseconds.

``with trionet.testing.broker() as broker:`` serves any synchronous program; pytest has the fixture
``trionet_broker``. Inside a trio program, :func:`trionet.open_broker` is the one to use.
"""

from __future__ import annotations

from .threaded import ThreadedBroker, broker

__all__ = ["ThreadedBroker", "broker"]
