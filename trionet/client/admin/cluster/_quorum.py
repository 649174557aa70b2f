"""The controllers of a cluster: who votes, who leads, and how far they are (KIP-595, KIP-853)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs

from ....errors import ApiError
from ....protocol import error_codes
from ....protocol._uuids import uuid_text
from ....protocol.messages import add_raft_voter, describe_quorum
from ....protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from ..._api_errors import api_error
from ..calls._argument_checks import items
from ..calls._conversions import AdminCalls, check, id_bytes

_TOPIC: Final = "__cluster_metadata"


@attrs.frozen
class RaftEndpoint:
    """Where a controller listens.

    Attributes:
        listener: the name of its listener.
        host: its host.
        port: its port.
    """

    listener: str
    host: str
    port: int


@attrs.frozen
class QuorumReplica:
    """One that has the metadata log.

    Attributes:
        id: of the node.
        directory_id: of its metadata folder; None where it is not told.
        log_end_offset: how far it is; -1 where it is not known.
        fetched_ms: when it last asked for more, in milliseconds since 1970; None if not known.
        caught_up_ms: when it last had everything; None if not known.
    """

    id: int
    directory_id: str | None
    log_end_offset: int
    fetched_ms: int | None
    caught_up_ms: int | None


@attrs.frozen
class MetadataQuorum:
    """The controllers.

    Attributes:
        leader: the id of the node that leads.
        leader_epoch: counts the leaders.
        high_watermark: up to where a majority has the log.
        voters: who votes.
        observers: who only reads, such as brokers.
        endpoints: where the voters listen, by node id; nothing where it is not told.
    """

    leader: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]
    endpoints: dict[int, tuple[RaftEndpoint, ...]]


class QuorumCalls(AdminCalls):
    """Calls about the controllers."""

    async def describe_metadata_quorum(self) -> MetadataQuorum:
        """Describe the controllers.

        Raises:
            TrionetError: the request failed.
        """
        topic = describe_quorum.RequestTopicData(
            topic_name=_TOPIC, partitions=[describe_quorum.RequestPartitionData()]
        )
        body = describe_quorum.DescribeQuorumRequest(topics=[topic])
        return await self._calls.ask_controller(body, _quorum)

    async def add_raft_voter(
        self,
        id: int,
        directory_id: str,
        endpoints: Iterable[RaftEndpoint],
        *,
        cluster_id: str | None = None,
    ) -> None:
        """Let a controller vote that only reads so far.

        Args:
            id: of the node.
            directory_id: of its metadata folder, as ``meta.properties`` has it.
            endpoints: where it listens.
            cluster_id: of the cluster that is meant; None for whichever is asked.

        Raises:
            ApiError: such as DUPLICATE_VOTER.
            TrionetError: the request failed.
            ValueError: ``directory_id`` is no id.

        Cancellation: it may be added.
        """

        def added(answer: add_raft_voter.AddRaftVoterResponse) -> None:
            check(answer.error_code, f"node {id}", answer.error_message)

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
        await self._calls.ask_controller(body, added)

    async def remove_raft_voter(
        self, id: int, directory_id: str, *, cluster_id: str | None = None
    ) -> None:
        """Let a controller vote no more.

        Args:
            id: of the node.
            directory_id: of its metadata folder.
            cluster_id: of the cluster that is meant; None for whichever is asked.

        Raises:
            ApiError: such as VOTER_NOT_FOUND.
            TrionetError: the request failed.
            ValueError: ``directory_id`` is no id.

        Cancellation: it may be removed.
        """

        def removed(answer: RemoveRaftVoterResponse) -> None:
            check(answer.error_code, f"node {id}", answer.error_message)

        body = RemoveRaftVoterRequest(
            cluster_id=cluster_id, voter_id=id, voter_directory_id=id_bytes(directory_id)
        )
        await self._calls.ask_controller(body, removed)


def _quorum(answer: describe_quorum.DescribeQuorumResponse) -> MetadataQuorum:
    check(answer.error_code, "the controllers", answer.error_message)
    partitions = [each for topic in answer.topics for each in topic.partitions]
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
            for node in answer.nodes
        },
    )


def _no_quorum() -> ApiError:
    return api_error(
        error_codes.UNKNOWN_SERVER_ERROR, "the controllers", "the answer does not speak of them"
    )


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
