"""Groups of Kafka Streams (KIP-1071); their offsets are those of any group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from ....errors import TrionetError
from ....protocol.messages import streams_group_describe as streams
from ..._api_errors import api_error
from ..._node import Node
from ..access._acl_operation import AclOperation
from ..calls._argument_checks import names
from ..calls._calls import Ask
from ..calls._conversions import AdminCalls, operations
from ..calls._nodes import COORDINATOR_CODES
from ..calls._results import Results
from ._group_descriptions import describing

Tasks = dict[str, tuple[int, ...]]
"""The partitions of tasks by their subtopology."""


@attrs.frozen
class StreamsAssignment:
    """The tasks of a member.

    Attributes:
        active: what it works on.
        standby: what it keeps a copy of.
        warmup: what it gets a copy of, to work on it later.
    """

    active: Tasks
    standby: Tasks
    warmup: Tasks


@attrs.frozen
class StreamsMember:
    """A member of a group of Kafka Streams.

    Attributes:
        id: chosen by the member.
        epoch: counts what it was told.
        instance_id: of a static member.
        rack: where it stands, if it says.
        client_id: what the client calls itself.
        client_host: where it connects from.
        topology_epoch: of the topology that it has.
        process_id: of the process that it is in.
        endpoint: where others may ask it for its state: host and port.
        tags: of the client.
        task_offsets: how far its copies are, by subtopology and partition.
        task_end_offsets: how far they could be.
        assignment: its tasks now.
        target_assignment: the tasks that it is to have.
        is_classic: it speaks the protocol of classic groups.
    """

    id: str
    epoch: int
    instance_id: str | None
    rack: str | None
    client_id: str
    client_host: str
    topology_epoch: int
    process_id: str
    endpoint: tuple[str, int] | None
    tags: dict[str, str]
    task_offsets: dict[tuple[str, int], int]
    task_end_offsets: dict[tuple[str, int], int]
    assignment: StreamsAssignment
    target_assignment: StreamsAssignment
    is_classic: bool


@attrs.frozen
class InternalTopic:
    """A topic that Kafka Streams makes for itself.

    Attributes:
        name: of the topic.
        partitions: how many; 0 for as many as what is read.
        replication_factor: how many replicas each has; 0 for the broker's default.
        configs: its settings.
    """

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]


@attrs.frozen
class Subtopology:
    """A part of a topology that shares no state with the others.

    Attributes:
        source_topics: what it reads.
        repartition_sink_topics: what it writes for other parts.
        changelog_topics: where it keeps its state.
        repartition_source_topics: what other parts write for it.
    """

    source_topics: tuple[str, ...]
    repartition_sink_topics: tuple[str, ...]
    changelog_topics: tuple[InternalTopic, ...]
    repartition_source_topics: tuple[InternalTopic, ...]


@attrs.frozen
class StreamsGroupDescription:
    """A group of Kafka Streams.

    Attributes:
        id: its name.
        state: as Kafka names it, such as ``Stable``.
        epoch: counts its changes.
        assignment_epoch: of the last assignment.
        topology_epoch: of its topology; None before it has one.
        subtopologies: by their ids.
        members: who is in it.
        coordinator: the broker that keeps it.
        operations: what the caller may do with it; None if that was not asked for.
    """

    id: str
    state: str
    epoch: int
    assignment_epoch: int
    topology_epoch: int | None
    subtopologies: dict[str, Subtopology]
    members: tuple[StreamsMember, ...]
    coordinator: Node
    operations: frozenset[AclOperation] | None


class StreamsGroupCalls(AdminCalls):
    """Calls about groups of Kafka Streams."""

    async def describe_streams_groups(
        self, groups: Iterable[str], *, include_operations: bool = False
    ) -> Results[str, StreamsGroupDescription]:
        """Describe groups of Kafka Streams.

        Args:
            groups: their names.
            include_operations: tell, too, what the caller may do with them.

        Returns:
            By name, the group or why it is not known.

        Raises:
            TrionetError: the request as a whole failed.
        """
        ask: Ask[str, StreamsGroupDescription] = describing(
            self._calls,
            streams.StreamsGroupDescribeRequest,
            _group,
            include_operations=include_operations,
        )
        return await self._calls.each(names(groups), self._calls.at_groups, ask, COORDINATOR_CODES)


def _group(
    group: streams.DescribedGroup, node: Node, include_operations: bool
) -> StreamsGroupDescription | TrionetError:
    if group.error_code:
        return api_error(group.error_code, f"group {group.group_id}", group.error_message)
    topology = group.topology
    return StreamsGroupDescription(
        group.group_id,
        group.group_state,
        group.group_epoch,
        group.assignment_epoch,
        None if topology is None else topology.epoch,
        {
            each.subtopology_id: _subtopology(each)
            for each in (() if topology is None else topology.subtopologies or ())
        },
        tuple(map(_member, group.members)),
        node,
        operations(group.authorized_operations) if include_operations else None,
    )


def _subtopology(part: streams.Subtopology) -> Subtopology:
    return Subtopology(
        tuple(part.source_topics),
        tuple(part.repartition_sink_topics),
        tuple(map(_internal_topic, part.state_changelog_topics)),
        tuple(map(_internal_topic, part.repartition_source_topics)),
    )


def _internal_topic(topic: streams.TopicInfo) -> InternalTopic:
    configs = {each.key: each.value for each in topic.topic_configs}
    return InternalTopic(topic.name, topic.partitions, topic.replication_factor, configs)


def _member(member: streams.Member) -> StreamsMember:
    endpoint = member.user_endpoint
    return StreamsMember(
        member.member_id,
        member.member_epoch,
        member.instance_id,
        member.rack_id,
        member.client_id,
        member.client_host,
        member.topology_epoch,
        member.process_id,
        None if endpoint is None else (endpoint.host, endpoint.port),
        {each.key: each.value for each in member.client_tags},
        _task_offsets(member.task_offsets),
        _task_offsets(member.task_end_offsets),
        _assignment(member.assignment),
        _assignment(member.target_assignment),
        member.is_classic,
    )


def _task_offsets(offsets: Iterable[streams.TaskOffset]) -> dict[tuple[str, int], int]:
    return {(each.subtopology_id, each.partition): each.offset for each in offsets}


def _assignment(assignment: streams.Assignment) -> StreamsAssignment:
    return StreamsAssignment(
        _tasks(assignment.active_tasks),
        _tasks(assignment.standby_tasks),
        _tasks(assignment.warmup_tasks),
    )


def _tasks(tasks: Iterable[streams.TaskIds]) -> Tasks:
    return {each.subtopology_id: tuple(each.partitions) for each in tasks}
