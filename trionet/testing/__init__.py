"""For tests of programs that use Kafka: a real broker, started in milliseconds.

``with trionet.testing.broker() as broker:`` serves any synchronous program; pytest has the fixture
``trionet_broker``. Inside a trio program, :func:`trionet.open_broker` is the one to use, with
:func:`control` for what tests ask of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .broker_control import BrokerControl as BrokerControl
    from .broker_control import control as control
    from .controls import ConnectionView as ConnectionView
    from .fault import Fault as Fault
    from .faults import Faults as Faults
    from .groups import GroupMember as GroupMember
    from .groups import GroupView as GroupView
    from .records import Record as Record
    from .seen_requests import SeenRequest as SeenRequest
    from .threaded import ThreadedBroker as ThreadedBroker
    from .threaded import broker as broker
    from .wire_peer import BlockingRawPeer as BlockingRawPeer
    from .wire_peer import RawPeer as RawPeer
    from .wire_peer import open_raw_peer as open_raw_peer
    from .wire_peer import raw_peer as raw_peer

_MODULES = {
    "BlockingRawPeer": "wire_peer",
    "BrokerControl": "broker_control",
    "ConnectionView": "controls",
    "Fault": "fault",
    "Faults": "faults",
    "GroupMember": "groups",
    "GroupView": "groups",
    "RawPeer": "wire_peer",
    "Record": "records",
    "SeenRequest": "seen_requests",
    "ThreadedBroker": "threaded",
    "broker": "threaded",
    "control": "broker_control",
    "open_raw_peer": "wire_peer",
    "raw_peer": "wire_peer",
}

__all__ = [
    "BlockingRawPeer",
    "BrokerControl",
    "ConnectionView",
    "Fault",
    "Faults",
    "GroupMember",
    "GroupView",
    "RawPeer",
    "Record",
    "SeenRequest",
    "ThreadedBroker",
    "broker",
    "control",
    "open_raw_peer",
    "raw_peer",
]


def __getattr__(name: str) -> object:
    # pytest loads the plugin of this package in every run of everybody who has it installed, so
    # nothing is imported before it is used (PEP 562).
    if name in _MODULES:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
