"""Admin calls for topics: creation, deletion, listing, description and new partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import attrs
import trio

from ...errors import TrionetError, UnsupportedVersionError, WireFormatError
from ...protocol import error_codes
from ...protocol._wire import uuid_text
from ...protocol.messages import create_partitions, create_topics, delete_topics
from ...protocol.messages import describe_topic_partitions as topic_partitions
from ...protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from .._api_errors import api_error
from .._argument_checks import integer, items, mapping, names
from ..network._cluster import Node
from ._calls import AdminCalls, Outcomes, Results
from ._conversions import AclOperation, Setting, failure, id_bytes, operations, setting_text

DEFAULT: Final = -1
"""Use the broker's default."""

_RETRIED: Final = frozenset({error_codes.THROTTLING_QUOTA_EXCEEDED})
_CREATE_WITH_DEFAULTS_VERSION: Final = 4  # KIP-464
_DELETE_BY_ID_VERSION: Final = 6  # KIP-516

PARTITIONS_PER_RESPONSE: Final = 2000
"""The maximum number of partitions per response (Kafka: DescribeTopicsOptions)."""

_METADATA_WITH_OPERATIONS_VERSION: Final = 8  # KIP-430
_METADATA_BY_ID_VERSION: Final = 10  # KIP-516


@attrs.frozen
class NewTopic:
    """A topic to create.

    Attributes:
        name: the topic's name.
        partitions: the number of partitions; -1 for the broker's ``num.partitions``.
        replication_factor: the number of replicas; -1 for ``default.replication.factor``.
        configs: the topic's configuration, under Kafka's keys.
        assignments: the broker ids of each partition's replicas, with the preferred leader first,
            in place of ``partitions`` and ``replication_factor``.

    Raises:
        ValueError: ``assignments`` is given beside one of the numbers that it determines.
    """

    name: str
    partitions: int = DEFAULT
    replication_factor: int = DEFAULT
    configs: Mapping[str, Setting] = attrs.field(factory=dict)
    assignments: Mapping[int, Sequence[int]] | None = None

    def __attrs_post_init__(self) -> None:
        if self.assignments is None:
            return
        for number in ("partitions", "replication_factor"):
            if getattr(self, number) != DEFAULT:
                raise ValueError(
                    f"topic {self.name}: {number}={getattr(self, number)} and assignments cannot"
                    f" be combined, since the assignments determine {number}; give one of the two"
                )


@attrs.frozen
class CreatedTopic:
    """A topic that was created.

    Attributes:
        name: the topic's name.
        id: the topic id.
        partitions: the number of partitions; -1 without permission to describe configs.
        replication_factor: the number of replicas; -1 without that permission.
        configs: the topic's configuration; None without that permission.
    """

    name: str
    id: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str | None] | None


@attrs.frozen
class TopicListing:
    """A topic in a listing.

    Attributes:
        name: the topic's name.
        id: the topic id.
        is_internal: whether the topic is internal to Kafka.
    """

    name: str
    id: str
    is_internal: bool


@attrs.frozen
class NewPartitions:
    """How many partitions a topic is to have.

    Attributes:
        total: the new total number of partitions.
        assignments: the broker ids of each new partition's replicas; None to let the cluster
            choose.
    """

    total: int
    assignments: Sequence[Sequence[int]] | None = None


@attrs.frozen
class PartitionDescription:
    """A partition of a topic.

    Attributes:
        number: the partition number.
        leader: the broker id of the leader; -1 if there is none.
        leader_epoch: the leader epoch; -1 if unknown.
        replicas: the broker ids of the replicas; the first is the preferred leader.
        in_sync: the broker ids of the in-sync replicas.
        offline: the broker ids of the offline replicas.
        eligible_leaders: the eligible leader replicas (ELR) that are not in sync; None if the
            broker does not report them.
        last_known_leaders: the last known eligible leader replicas; None if the broker does not
            report them.
    """

    number: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...]
    eligible_leaders: tuple[int, ...] | None = None
    last_known_leaders: tuple[int, ...] | None = None


@attrs.frozen
class TopicDescription:
    """A topic with its partitions.

    Attributes:
        name: the topic's name.
        id: the topic id.
        is_internal: whether the topic is internal to Kafka.
        partitions: the partitions, keyed by number.
        operations: the caller's authorized operations; None if not requested.
    """

    name: str
    id: str
    is_internal: bool
    partitions: dict[int, PartitionDescription]
    operations: frozenset[AclOperation] | None


class TopicCalls(AdminCalls):
    """Admin calls for topics."""

    async def create(
        self, topics: Iterable[NewTopic | str], *, validate_only: bool = False
    ) -> Results[str, CreatedTopic]:
        """Create topics.

        It may take a moment for all brokers to learn about a new topic.

        Args:
            topics: the topics; a topic given by name alone has the broker's defaults.
            validate_only: whether to validate the topics without creating them.

        Returns:
            For each topic, the created topic or the error. The error may be TOPIC_ALREADY_EXISTS
            because an earlier attempt, whose response was lost, created the topic.

        Raises:
            TrionetError: the request as a whole failed.
            TypeError: a topic is neither a name nor a NewTopic, or a field has the wrong type.
            ValueError: a topic is given twice.

        Cancellation: topics may have been created.
        """
        if isinstance(topics, Mapping):
            raise TypeError(
                "expected a list of names and NewTopics, such as [NewTopic('orders', 3)], not"
                f" {topics!r}"
            )
        wanted: dict[str, NewTopic] = {}
        for each in items(topics, str, NewTopic):
            topic = NewTopic(each) if isinstance(each, str) else each
            _check(topic)
            if topic.name in wanted:
                raise ValueError(f"duplicate topic {topic.name!r}")
            wanted[topic.name] = topic

        async def send(node: Node, keys: Sequence[str]) -> Outcomes[str, CreatedTopic]:
            body = create_topics.CreateTopicsRequest(
                topics=[_creatable(wanted[key]) for key in keys],
                timeout_ms=self._calls.timeout_ms,
                validate_only=validate_only,
            )
            response: create_topics.CreateTopicsResponse = await self._request(
                node, body, version_min=_CREATE_WITH_DEFAULTS_VERSION
            )
            return {
                each.name: failure(each, f"topic {each.name}") or _created(each)
                for each in response.topics
            }

        place = self._nodes.at_controller
        return await self._calls.for_each(wanted, place, send, retried=_RETRIED)

    async def delete(
        self, topics: Iterable[str] = (), *, ids: Iterable[str] = ()
    ) -> Results[str, None]:
        """Delete topics and all their records.

        Args:
            topics: topic names.
            ids: topic ids. Unlike a name, an id never refers to a recreated topic.

        Returns:
            For each topic, None on success or the error.

        Raises:
            TrionetError: the request as a whole failed.
            ValueError: an id is invalid.

        Cancellation: topics may have been deleted.
        """
        states = {name: delete_topics.DeleteTopicState(name=name) for name in names(topics)}
        states |= {id: delete_topics.DeleteTopicState(topic_id=id_bytes(id)) for id in names(ids)}
        has_ids = any(state.name is None for state in states.values())

        async def send(node: Node, keys: Sequence[str]) -> Outcomes[str, None]:
            body = delete_topics.DeleteTopicsRequest(
                topics=[states[key] for key in keys], timeout_ms=self._calls.timeout_ms
            )
            response: delete_topics.DeleteTopicsResponse
            try:
                response = await self._request(node, body, version_min=_DELETE_BY_ID_VERSION)
            except UnsupportedVersionError:
                if has_ids:
                    raise
            else:
                return _deleted(keys, response)
            body = delete_topics.DeleteTopicsRequest(
                topic_names=list(keys), timeout_ms=self._calls.timeout_ms
            )
            response = await self._request(node, body, version_max=_DELETE_BY_ID_VERSION - 1)
            return _deleted(keys, response)

        place = self._nodes.at_controller
        return await self._calls.for_each(states, place, send, retried=_RETRIED)

    async def create_partitions(
        self, topics: Mapping[str, NewPartitions | int], *, validate_only: bool = False
    ) -> Results[str, None]:
        """Add partitions to topics; keys may then map to different partitions than before.

        Args:
            topics: the new total number of partitions of each topic.
            validate_only: whether to validate the request without adding partitions.

        Returns:
            For each topic, None on success or the error.

        Raises:
            TrionetError: the request as a whole failed.

        Cancellation: partitions may have been added.
        """
        topics = mapping(topics, str, int, NewPartitions)

        async def send(node: Node, keys: Sequence[str]) -> Outcomes[str, None]:
            body = create_partitions.CreatePartitionsRequest(
                topics=[_larger(key, topics[key]) for key in keys],
                timeout_ms=self._calls.timeout_ms,
                validate_only=validate_only,
            )
            response: create_partitions.CreatePartitionsResponse = await self._request(node, body)
            return {each.name: failure(each, f"topic {each.name}") for each in response.results}

        place = self._nodes.at_controller
        return await self._calls.for_each(topics, place, send, retried=_RETRIED)

    async def list(self, *, internal: bool = False) -> dict[str, TopicListing]:
        """Return the topics that the caller may describe, keyed by name.

        Args:
            internal: whether to include Kafka's internal topics.

        Raises:
            TrionetError: the request failed.
        """
        response: MetadataResponse = await self._calls.call_any(
            MetadataRequest(topics=None), "the topics"
        )
        return {
            each.name: TopicListing(each.name, uuid_text(each.topic_id), each.is_internal)
            for each in response.topics
            if each.name is not None and (internal or not each.is_internal)
        }

    async def describe(
        self,
        topics: Iterable[str] = (),
        *,
        ids: Iterable[str] = (),
        include_operations: bool = False,
    ) -> Results[str, TopicDescription]:
        """Describe topics.

        Args:
            topics: topic names.
            ids: topic ids.
            include_operations: whether to include the caller's authorized operations.

        Returns:
            For each topic, the description or the error.

        Raises:
            TrionetError: the request as a whole failed.
            ValueError: an id is invalid.
        """

        async def send(node: Node, keys: Sequence[str]) -> Outcomes[str, TopicDescription]:
            with suppress(UnsupportedVersionError):
                return await self._with_cursor(node, keys, include_operations)
            wanted = [MetadataRequestTopic(name=key) for key in keys]
            return await self._by_metadata(node, wanted, 4, include_operations)

        async def send_ids(node: Node, keys: Sequence[str]) -> Outcomes[str, TopicDescription]:
            wanted = [MetadataRequestTopic(topic_id=id_bytes(key), name=None) for key in keys]
            version_min = _METADATA_BY_ID_VERSION
            found = await self._by_metadata(node, wanted, version_min, include_operations)
            by_id = {each.id: each for each in found.values() if isinstance(each, TopicDescription)}
            return {
                key: by_id.get(key) or found[key] for key in keys if key in by_id or key in found
            }

        results = await self._calls.for_each(names(topics), self._nodes.at_any, send)
        results.update(await self._calls.for_each(names(ids), self._nodes.at_any, send_ids))
        return results

    async def _with_cursor(
        self, node: Node, keys: Sequence[str], include_operations: bool
    ) -> Outcomes[str, TopicDescription]:
        found: Outcomes[str, TopicDescription] = {}
        cursor: topic_partitions.RequestCursor | None = None
        left = sorted(keys)
        await trio.lowlevel.checkpoint()
        while left:
            body = topic_partitions.DescribeTopicPartitionsRequest(
                topics=[topic_partitions.TopicRequest(name=name) for name in left],
                response_partition_limit=PARTITIONS_PER_RESPONSE,
                cursor=cursor,
            )
            response: topic_partitions.DescribeTopicPartitionsResponse = await self._request(
                node, body
            )
            for topic in response.topics:
                if topic.name is None:
                    continue  # none that was requested
                before = found.get(topic.name)
                after = _described(topic, include_operations)
                if isinstance(before, TopicDescription) and isinstance(after, TopicDescription):
                    before.partitions.update(after.partitions)
                else:
                    found[topic.name] = after
            following = response.next_cursor
            if following is None:
                break
            if cursor is not None and (following.topic_name, following.partition_index) <= (
                cursor.topic_name,
                cursor.partition_index,
            ):
                raise WireFormatError("the cursor of DescribeTopicPartitions does not move on")
            # The last topic of this response may continue in the next one.
            left = [name for name in left if name >= following.topic_name]
            cursor = topic_partitions.RequestCursor(
                topic_name=following.topic_name, partition_index=following.partition_index
            )
        return found

    async def _by_metadata(
        self,
        node: Node,
        topics: Sequence[MetadataRequestTopic],
        version_min: int,
        include_operations: bool,
    ) -> Outcomes[str, TopicDescription]:
        body = MetadataRequest(
            topics=[*topics],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=include_operations,
        )
        version_min = _METADATA_WITH_OPERATIONS_VERSION if include_operations else version_min
        response: MetadataResponse = await self._request(node, body, version_min=version_min)
        return {
            each.name or uuid_text(each.topic_id): _described(each, include_operations)
            for each in response.topics
        }


def _creatable(topic: NewTopic) -> create_topics.CreatableTopic:
    return create_topics.CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        assignments=[
            create_topics.CreatableReplicaAssignment(
                partition_index=partition, broker_ids=list(brokers)
            )
            for partition, brokers in (topic.assignments or {}).items()
        ],
        configs=[
            create_topics.CreatableTopicConfig(name=name, value=setting_text(value))
            for name, value in topic.configs.items()
        ],
    )


def _check(topic: NewTopic) -> None:
    if not isinstance(topic.name, str):
        raise TypeError(f"the name of a topic must be str, not {topic.name!r}")
    integer(f"the number of partitions of topic {topic.name}", topic.partitions)
    integer(f"the replication factor of topic {topic.name}", topic.replication_factor)
    mapping(topic.configs, str, object)


def _deleted(
    keys: Iterable[str], response: delete_topics.DeleteTopicsResponse
) -> Outcomes[str, None]:
    """Return results keyed by the requested names and ids; a response item may have both."""
    wanted = set(keys)
    found: Outcomes[str, None] = {}
    for each in response.responses:
        key = each.name if each.name in wanted else uuid_text(each.topic_id)
        found[key] = failure(each, f"topic {key}")
    return found


def _created(result: create_topics.CreatableTopicResult) -> CreatedTopic:
    has_configs = not result.topic_config_error_code and result.configs is not None
    return CreatedTopic(
        result.name,
        uuid_text(result.topic_id),
        result.num_partitions,
        result.replication_factor,
        {each.name: each.value for each in result.configs or ()} if has_configs else None,
    )


def _larger(name: str, topic: NewPartitions | int) -> create_partitions.CreatePartitionsTopic:
    new = NewPartitions(topic) if isinstance(topic, int) else topic
    assignments = None
    if new.assignments is not None:
        assignments = [
            create_partitions.CreatePartitionsAssignment(broker_ids=list(brokers))
            for brokers in new.assignments
        ]
    return create_partitions.CreatePartitionsTopic(
        name=name, count=new.total, assignments=assignments
    )


def _described(
    topic: topic_partitions.DescribeTopicPartitionsResponseTopic | MetadataResponseTopic,
    include_operations: bool,
) -> TopicDescription | TrionetError:
    id = uuid_text(topic.topic_id)
    if topic.error_code and topic.error_code != error_codes.LEADER_NOT_AVAILABLE:
        return api_error(topic.error_code, f"topic {topic.name or id}")
    return TopicDescription(
        topic.name or "",
        id,
        topic.is_internal,
        {each.partition_index: _partition(each) for each in topic.partitions},
        operations(topic.topic_authorized_operations) if include_operations else None,
    )


def _partition(
    partition: topic_partitions.DescribeTopicPartitionsResponsePartition
    | MetadataResponsePartition,
) -> PartitionDescription:
    described = PartitionDescription(
        partition.partition_index,
        partition.leader_id,
        partition.leader_epoch,
        tuple(partition.replica_nodes),
        tuple(partition.isr_nodes),
        tuple(partition.offline_replicas),
    )
    if isinstance(partition, MetadataResponsePartition):
        return described
    eligible, last_known = partition.eligible_leader_replicas, partition.last_known_elr
    return attrs.evolve(
        described,
        eligible_leaders=None if eligible is None else tuple(eligible),
        last_known_leaders=None if last_known is None else tuple(last_known),
    )
