"""Helpers for Produce and Fetch responses: error codes for old versions, and current leaders.

A client that sends a request to the wrong node receives the current leader and its address with the
error, and so need not send a Metadata request (KIP-951).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from ...protocol import api_keys, error_codes
from ..api._call import Call
from ..model._broker_state import BrokerState

L = TypeVar("L")
E = TypeVar("E")

# The first versions whose clients know KAFKA_STORAGE_ERROR (KIP-112).
_STORAGE_ERROR_SINCE: Final = {api_keys.PRODUCE: 4, api_keys.FETCH: 6}
# The first versions with the fields current_leader and node_endpoints (KIP-951).
_CURRENT_LEADER_SINCE: Final = {api_keys.PRODUCE: 10, api_keys.FETCH: 16}
_LEADER_CHANGED: Final = (error_codes.NOT_LEADER_OR_FOLLOWER, error_codes.FENCED_LEADER_EPOCH)


def error_code_for(call: Call, error_code: int) -> int:
    """Return an error code that clients of the call's version understand.

    Instead of KAFKA_STORAGE_ERROR, older clients receive NOT_LEADER_OR_FOLLOWER, which they also
    retry.
    """
    is_unknown = (
        error_code == error_codes.KAFKA_STORAGE_ERROR
        and call.version < _STORAGE_ERROR_SINCE[call.codec.api_key]
    )
    return error_codes.NOT_LEADER_OR_FOLLOWER if is_unknown else error_code


def has_current_leader(call: Call) -> bool:
    """Return whether responses of the call's version have the fields of KIP-951."""
    return call.version >= _CURRENT_LEADER_SINCE[call.codec.api_key]


class CurrentLeaders:
    """The current leaders to include in one response.

    Args:
        broker: the state of the node that responds.
        call: the call to respond to.
    """

    def __init__(self, broker: BrokerState, call: Call) -> None:
        self._broker = broker
        self._call = call
        self._ids: set[int] = set()

    def find(
        self, topic: str | bytes, partition: int, error_code: int, create: Callable[..., L]
    ) -> L | None:
        """Return the current leader of a partition if the error code indicates a leader change.

        Args:
            topic: the topic name or topic id.
            partition: the partition number.
            error_code: the error code of the partition in the response.
            create: the ``LeaderIdAndEpoch`` class of the API.
        """
        if error_code not in _LEADER_CHANGED:
            return None
        found = self._broker.leader_of(topic, partition)
        if found is None:
            return None
        self._ids.add(found.leader)
        return create(leader_id=found.leader, leader_epoch=found.epoch)

    def endpoints(self, create: Callable[..., E]) -> list[E]:
        """Return the addresses of the leaders that :meth:`find` returned.

        Args:
            create: the ``NodeEndpoint`` class of the API.
        """
        return [
            create(node_id=node.node_id, host=address.host, port=address.port, rack=node.rack)
            for node, address in self._broker.addresses(self._call.listener_name, self._ids)
        ]
