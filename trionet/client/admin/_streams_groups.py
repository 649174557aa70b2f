"""Streams groups (KIP-1071); :class:`.GroupCalls` has the calls for their committed offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from ...protocol.messages import streams_group_describe as streams
from .._argument_checks import names
from ..network._cluster import Node
from ._calls import AdminCalls, Results, SendTo
from ._conversions import AclOperation, operations
from ._group_descriptions import describing

Tasks = dict[str, tuple[int, ...]]
"""The tasks' partition numbers, keyed by subtopology id."""


@attrs.frozen
class StreamsAssignment:
    """The tasks assigned to a member.

    Attributes:
        active: active tasks.
        standby: standby tasks, whose state the member replicates.
        warmup: warm-up tasks, whose state the member restores so that they can become active.
    """

    active: Tasks
    standby: Tasks
    warmup: Tasks


@attrs.frozen
class StreamsMember:
    """A member of a streams group.

    Attributes:
        id: the member id.
        epoch: the member epoch.
        instance_id: the ``group.instance.id`` of a static member.
        rack: the member's rack, if known.
        client_id: the ``client.id``.
        client_host: the host that the member connects from.
        topology_epoch: the epoch of the member's topology.
        process_id: the id of the member's process.
        endpoint: the host and port for interactive queries, if any.
        tags: the client's tags.
        task_offsets: the tasks' changelog offsets, keyed by subtopology id and partition.
        task_end_offsets: the tasks' changelog end offsets, keyed likewise.
        assignment: the current assignment.
        target_assignment: the target assignment.
        is_classic: whether the member uses the classic protocol.
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
    """An internal topic of Kafka Streams.

    Attributes:
        name: the topic's name.
        partitions: the number of partitions; 0 to derive it from the source topics.
        replication_factor: the number of replicas; 0 for the broker's default.
        configs: the configuration of the topic.
    """

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]


@attrs.frozen
class Subtopology:
    """A subtopology of a Kafka Streams application.

    Attributes:
        source_topics: the topics that the subtopology reads.
        repartition_sink_topics: the repartition topics that the subtopology writes to.
        changelog_topics: the changelog topics of the subtopology's state stores.
        repartition_source_topics: the repartition topics that the subtopology reads.
    """

    source_topics: tuple[str, ...]
    repartition_sink_topics: tuple[str, ...]
    changelog_topics: tuple[InternalTopic, ...]
    repartition_source_topics: tuple[InternalTopic, ...]


@attrs.frozen
class StreamsGroupDescription:
    """The description of a streams group.

    Attributes:
        id: the group id.
        state: Kafka's name of the state, such as ``Stable``.
        epoch: the group epoch.
        assignment_epoch: the epoch of the target assignment.
        topology_epoch: the epoch of the group's topology; None if the group has none yet.
        subtopologies: the subtopologies, keyed by id.
        members: the members.
        coordinator: the group's coordinator.
        operations: the caller's authorized operations; None if not requested.
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
    """Admin calls for streams groups."""

    async def describe(
        self, groups: Iterable[str], *, include_operations: bool = False
    ) -> Results[str, StreamsGroupDescription]:
        """Describe streams groups.

        Args:
            groups: group ids.
            include_operations: whether to include the caller's authorized operations.

        Returns:
            For each group id, the group or the error.

        Raises:
            TrionetError: the request as a whole failed.
        """
        send: SendTo[str, StreamsGroupDescription] = describing(
            self._calls,
            streams.StreamsGroupDescribeRequest,
            _group,
            include_operations=include_operations,
        )
        return await self._calls.for_each(names(groups), self._nodes.at_groups, send)


def _group(group: streams.DescribedGroup, node: Node) -> StreamsGroupDescription:
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
        operations(group.authorized_operations),
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
