"""The KRaft quorum: voters, observers, leader and their progress (KIP-595, KIP-853)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs

from ....errors import ApiError
from ....protocol import error_codes
from ....protocol._wire import uuid_text
from ....protocol.messages import add_raft_voter, describe_quorum
from ....protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from ..._api_errors import api_error
from ..._argument_checks import items
from ..calls._calls import AdminCalls
from ..calls._conversions import check, id_bytes

_TOPIC: Final = "__cluster_metadata"


@attrs.frozen
class RaftEndpoint:
    """A listener of a controller.

    Attributes:
        listener: the name of the listener.
        host: the host.
        port: the port.
    """

    listener: str
    host: str
    port: int


@attrs.frozen
class QuorumReplica:
    """A replica of the metadata log.

    Attributes:
        id: the node id.
        directory_id: the metadata directory's id; None if not reported.
        log_end_offset: the log end offset; -1 if unknown.
        fetched_ms: when the replica last fetched, in ms since the epoch; None if unknown.
        caught_up_ms: when the replica was last caught up, in ms since the epoch; None if unknown.
    """

    id: int
    directory_id: str | None
    log_end_offset: int
    fetched_ms: int | None
    caught_up_ms: int | None


@attrs.frozen
class MetadataQuorum:
    """The KRaft quorum.

    Attributes:
        leader: the leader's node id.
        leader_epoch: the leader epoch.
        high_watermark: the high watermark of the metadata log.
        voters: the voters.
        observers: the observers, such as brokers.
        endpoints: the voters' listeners, keyed by node id; empty if not reported.
    """

    leader: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]
    endpoints: dict[int, tuple[RaftEndpoint, ...]]


class QuorumCalls(AdminCalls):
    """Admin calls for the KRaft quorum."""

    async def describe(self) -> MetadataQuorum:
        """Describe the quorum.

        Raises:
            TrionetError: the request failed.
        """
        topic = describe_quorum.RequestTopicData(
            topic_name=_TOPIC, partitions=[describe_quorum.RequestPartitionData()]
        )
        body = describe_quorum.DescribeQuorumRequest(topics=[topic])
        return await self._calls.call_controller(body, _quorum)

    async def add_voter(
        self,
        id: int,
        directory_id: str,
        endpoints: Iterable[RaftEndpoint],
        *,
        cluster_id: str | None = None,
    ) -> None:
        """Promote a controller from observer to voter.

        Args:
            id: the node id.
            directory_id: the metadata directory's id, from ``meta.properties``.
            endpoints: the listeners of the controller.
            cluster_id: the expected cluster id; None to skip the check.

        Raises:
            ApiError: the request was rejected, for example with DUPLICATE_VOTER.
            TrionetError: the request failed.
            ValueError: ``directory_id`` is invalid.

        Cancellation: the voter may have been added.
        """

        def added(response: add_raft_voter.AddRaftVoterResponse) -> None:
            check(response.error_code, f"node {id}", response.error_message)

        body = add_raft_voter.AddRaftVoterRequest(
            cluster_id=cluster_id,
            timeout_ms=self._calls.timeout_ms,
            voter_id=id,
            voter_directory_id=id_bytes(directory_id),
            listeners=[
                add_raft_voter.Listener(name=each.listener, host=each.host, port=each.port)
                for each in items(endpoints, RaftEndpoint)
            ],
        )
        await self._calls.call_controller(body, added)

    async def remove_voter(
        self, id: int, directory_id: str, *, cluster_id: str | None = None
    ) -> None:
        """Remove a voter from the quorum.

        Args:
            id: the node id.
            directory_id: the metadata directory's id.
            cluster_id: the expected cluster id; None to skip the check.

        Raises:
            ApiError: the request was rejected, for example with VOTER_NOT_FOUND.
            TrionetError: the request failed.
            ValueError: ``directory_id`` is invalid.

        Cancellation: the voter may have been removed.
        """

        def removed(response: RemoveRaftVoterResponse) -> None:
            check(response.error_code, f"node {id}", response.error_message)

        body = RemoveRaftVoterRequest(
            cluster_id=cluster_id, voter_id=id, voter_directory_id=id_bytes(directory_id)
        )
        await self._calls.call_controller(body, removed)


def _quorum(response: describe_quorum.DescribeQuorumResponse) -> MetadataQuorum:
    check(response.error_code, "the controllers", response.error_message)
    partitions = [each for topic in response.topics for each in topic.partitions]
    if not partitions:
        raise _no_quorum()
    found = partitions[0]
    check(found.error_code, "the controllers", found.error_message)
    return MetadataQuorum(
        found.leader_id,
        found.leader_epoch,
        found.high_watermark,
        tuple(map(_replica, found.current_voters)),
        tuple(map(_replica, found.observers)),
        {
            node.node_id: tuple(
                RaftEndpoint(each.name, each.host, each.port) for each in node.listeners
            )
            for node in response.nodes
        },
    )


def _no_quorum() -> ApiError:
    return api_error(error_codes.UNKNOWN_SERVER_ERROR, "the quorum", "missing from the response")


def _replica(state: describe_quorum.ReplicaState) -> QuorumReplica:
    return QuorumReplica(
        state.replica_id,
        uuid_text(state.replica_directory_id) if any(state.replica_directory_id) else None,
        state.log_end_offset,
        _known(state.last_fetch_timestamp),
        _known(state.last_caught_up_timestamp),
    )


def _known(time: int) -> int | None:
    return None if time < 0 else time
