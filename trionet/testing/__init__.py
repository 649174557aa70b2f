"""For tests of programs that use Kafka: a real broker, started in milliseconds.

``with trionet.testing.broker() as broker:`` serves any synchronous program; pytest has the fixture
``trionet_broker``. Inside a trio program, :func:`trionet.open_broker` is the one to use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .threaded import ThreadedBroker as ThreadedBroker
    from .threaded import broker as broker

__all__ = ["ThreadedBroker", "broker"]


def __getattr__(name: str) -> object:
    # pytest loads the plugin of this package in every run of everybody who has it installed, so
    # nothing is imported before it is used (PEP 562).
    if name in __all__:
        from . import threaded

        return getattr(threaded, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
