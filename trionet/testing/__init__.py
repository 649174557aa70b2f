"""Test support: a real broker that starts in milliseconds, for programs that use Kafka.

``with trionet.testing.broker() as broker:`` starts a broker for a synchronous program; the pytest
fixture ``trionet_broker`` starts one for a test. Trio programs use :func:`trionet.open_broker`,
with :func:`control` for inspection and fault injection. :func:`run_virtual` and :func:`virtual`
provide an in-memory network and a clock that jumps to the next deadline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._util._imports import lazy_exports

if TYPE_CHECKING:
    from ._asyncio_waits import AsyncioWaits as AsyncioWaits
    from ._controls import BrokerControl as BrokerControl
    from ._controls import ConnectionView as ConnectionView
    from ._controls import control as control
    from ._operations import GroupMember as GroupMember
    from ._operations import GroupView as GroupView
    from ._operations import TransactionView as TransactionView
    from ._records import Record as Record
    from ._seen_requests import Fault as Fault
    from ._seen_requests import SeenRequest as SeenRequest
    from ._threaded import ThreadedBroker as ThreadedBroker
    from ._threaded import broker as broker
    from ._wire_peer import BlockingRawPeer as BlockingRawPeer
    from ._wire_peer import RawPeer as RawPeer
    from ._wire_peer import open_raw_peer as open_raw_peer
    from ._wire_peer import raw_peer as raw_peer
    from .faults._faults import Faults as Faults
    from .memory._medium import NetworkEvent as NetworkEvent
    from .memory._medium import NetworkFaults as NetworkFaults
    from .memory._network import MemoryNetwork as MemoryNetwork
    from .memory._network import run_virtual as run_virtual
    from .memory._network import virtual as virtual
    from .memory._stream import MemoryStream as MemoryStream

_HOMES = {
    "_asyncio_waits": "AsyncioWaits",
    "_wire_peer": "BlockingRawPeer RawPeer open_raw_peer raw_peer",
    "_controls": "BrokerControl ConnectionView control",
    "_operations": "GroupMember GroupView TransactionView",
    "_records": "Record",
    "_seen_requests": "Fault SeenRequest",
    "_threaded": "ThreadedBroker broker",
    "faults._faults": "Faults",
    "memory._medium": "NetworkEvent NetworkFaults",
    "memory._network": "MemoryNetwork run_virtual virtual",
    "memory._stream": "MemoryStream",
}

__all__ = [
    "AsyncioWaits",
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
    "TransactionView",
    "broker",
    "control",
    "open_raw_peer",
    "raw_peer",
    "run_virtual",
    "virtual",
]


# pytest loads the plugin of this package in every run where trionet is installed, so nothing is
# imported before it is used.
if not TYPE_CHECKING:  # a type checker would take every misspelt name for a loadable one
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
