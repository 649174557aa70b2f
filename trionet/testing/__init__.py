"""For tests of programs that use Kafka: a real broker, started in milliseconds.

``with trionet.testing.broker() as broker:`` serves any synchronous program; pytest has the fixture
``trionet_broker``. Trio programs use :func:`trionet.open_broker`, with :func:`control` for
inspection and faults; :func:`run_virtual` and :func:`virtual` add an in-memory network and a clock
that jumps.
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
    from .memory_network import MemoryNetwork as MemoryNetwork
    from .memory_network import NetworkEvent as NetworkEvent
    from .memory_network import NetworkFaults as NetworkFaults
    from .memory_stream import MemoryStream as MemoryStream
    from .records import Record as Record
    from .seen_requests import SeenRequest as SeenRequest
    from .threaded import ThreadedBroker as ThreadedBroker
    from .threaded import broker as broker
    from .virtual_time import run_virtual as run_virtual
    from .virtual_time import virtual as virtual
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
    "MemoryNetwork": "memory_network",
    "MemoryStream": "memory_stream",
    "NetworkEvent": "memory_network",
    "NetworkFaults": "memory_network",
    "RawPeer": "wire_peer",
    "Record": "records",
    "SeenRequest": "seen_requests",
    "ThreadedBroker": "threaded",
    "broker": "threaded",
    "control": "broker_control",
    "open_raw_peer": "wire_peer",
    "raw_peer": "wire_peer",
    "run_virtual": "virtual_time",
    "virtual": "virtual_time",
}

__all__ = [
    "BlockingRawPeer",
    "BrokerControl",
    "ConnectionView",
    "Fault",
    "Faults",
    "GroupMember",
    "GroupView",
    "MemoryNetwork",
    "MemoryStream",
    "NetworkEvent",
    "NetworkFaults",
    "RawPeer",
    "Record",
    "SeenRequest",
    "ThreadedBroker",
    "broker",
    "control",
    "open_raw_peer",
    "raw_peer",
    "run_virtual",
    "virtual",
]


def __getattr__(name: str) -> object:
    # pytest loads this package's plugin in every run where trionet is installed, so nothing is
    # imported before it is used (PEP 562).
    if name in _MODULES:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
