"""For tests of programs that use Kafka: a real broker, started in milliseconds.

``with trionet.testing.broker() as broker:`` serves any synchronous program; pytest has the fixture
``trionet_broker``. Inside a trio program, :func:`trionet.open_broker` is the one to use, with
:func:`control` for what tests ask of it; :func:`run_virtual` and :func:`virtual` give it a network
in memory and a clock that jumps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._wire_peer import BlockingRawPeer as BlockingRawPeer
    from ._wire_peer import RawPeer as RawPeer
    from ._wire_peer import open_raw_peer as open_raw_peer
    from ._wire_peer import raw_peer as raw_peer
    from .brokers._broker_control import BrokerControl as BrokerControl
    from .brokers._broker_control import control as control
    from .brokers._controls import ConnectionView as ConnectionView
    from .brokers._threaded import ThreadedBroker as ThreadedBroker
    from .brokers._threaded import broker as broker
    from .faults._fault import Fault as Fault
    from .faults._faults import Faults as Faults
    from .internals._groups import GroupMember as GroupMember
    from .internals._groups import GroupView as GroupView
    from .internals._records import Record as Record
    from .memory._network import MemoryNetwork as MemoryNetwork
    from .memory._network import NetworkEvent as NetworkEvent
    from .memory._network import NetworkFaults as NetworkFaults
    from .memory._stream import MemoryStream as MemoryStream
    from .memory._virtual_time import run_virtual as run_virtual
    from .memory._virtual_time import virtual as virtual
    from .requests._seen_requests import SeenRequest as SeenRequest

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
    # pytest loads the plugin of this package in every run of everybody who has it installed, so
    # nothing is imported before it is used (PEP 562).
    if name in _MODULES:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
