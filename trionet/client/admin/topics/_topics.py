"""Create, delete, list and enlarge topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

from ....errors import TrionetError
from ....protocol import error_codes
from ....protocol._uuids import uuid_text
from ....protocol.api_keys import DELETE_TOPICS
from ....protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from ....protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ....protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from ....protocol.messages.metadata import MetadataRequest, MetadataResponse
from ..._api_errors import api_error
from ..._argument_checks import items, mapping, names
from ..._node import Node
from ..calls._calls import AdminCalls, Results
from ..calls._conversions import Setting, failure, id_bytes, setting_text
from ..calls._nodes import CONTROLLER_CODES

DEFAULT: Final = -1
"""The broker's default."""

_RETRIED: Final = frozenset({*CONTROLLER_CODES, error_codes.THROTTLING_QUOTA_EXCEEDED})
_WITH_DEFAULTS_VERSION: Final = 4  # KIP-464
_WITH_IDS_VERSION: Final = 6  # KIP-516


@attrs.frozen
class NewTopic:
    """A topic to create.

    Attributes:
        name: the topic's name.
        partitions: the number of partitions; -1 for the broker's ``num.partitions``.
        replication_factor: the number of replicas; -1 for ``default.replication.factor``.
        configs: the topic's configuration by Kafka's keys.
        assignments: the broker ids of the replicas by partition, in place of ``partitions`` and
            ``replication_factor``; the first is the preferred leader.
    """

    name: str
    partitions: int = DEFAULT
    replication_factor: int = DEFAULT
    configs: Mapping[str, Setting] = attrs.field(factory=dict)
    assignments: Mapping[int, Sequence[int]] | None = None


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
        is_internal: whether it is one of Kafka's internal topics.
    """

    name: str
    id: str
    is_internal: bool


@attrs.frozen
class NewPartitions:
    """The new number of a topic's partitions.

    Attributes:
        total: the total number of partitions.
        assignments: the broker ids of the replicas of each new partition; None to let the cluster
            choose.
    """

    total: int
    assignments: Sequence[Sequence[int]] | None = None


class TopicCalls(AdminCalls):
    """Calls for topics."""

    async def create_topics(
        self, topics: Iterable[NewTopic | str], *, validate_only: bool = False
    ) -> Results[str, CreatedTopic]:
        """Create topics.

        It takes a moment until all brokers know a new topic.

        Args:
            topics: the topics; a name alone gets the broker's defaults.
            validate_only: only check whether the topics could be created.

        Returns:
            The created topic or the error by name. The error is TOPIC_ALREADY_EXISTS also if an
            earlier attempt, whose response was lost, created the topic.

        Raises:
            TrionetError: the request as a whole failed.
            ValueError: a topic is given twice.

        Cancellation: topics may have been created.
        """
        wanted: dict[str, NewTopic] = {}
        for each in items(topics, str, NewTopic):
            topic = NewTopic(each) if isinstance(each, str) else each
            if topic.name in wanted:
                raise ValueError(f"duplicate topic {topic.name!r}")
            wanted[topic.name] = topic

        async def send(node: Node, keys: Sequence[str]) -> dict[str, CreatedTopic | TrionetError]:
            response: CreateTopicsResponse = await self._calls.client.request(
                node,
                CreateTopicsRequest(
                    topics=[_creatable(wanted[key]) for key in keys],
                    timeout_ms=self._calls.timeout_ms,
                    validate_only=validate_only,
                ),
                version_min=_WITH_DEFAULTS_VERSION,
            )
            return {each.name: _created(each) for each in response.topics}

        return await self._calls.for_each(wanted, self._calls.at_controller, send, _RETRIED)

    async def delete_topics(
        self, topics: Iterable[str] = (), *, ids: Iterable[str] = ()
    ) -> Results[str, None]:
        """Delete topics and all their records.

        Args:
            topics: topic names.
            ids: topic ids. Deleting by id cannot hit a new topic with the same name.

        Returns:
            None or the error by name or id.

        Raises:
            TrionetError: the request as a whole failed.
            ValueError: an id is invalid.

        Cancellation: topics may have been deleted.
        """
        states = {name: DeleteTopicState(name=name) for name in names(topics)}
        states |= {id: DeleteTopicState(topic_id=id_bytes(id)) for id in names(ids)}
        has_ids = any(state.name is None for state in states.values())

        async def send(node: Node, keys: Sequence[str]) -> dict[str, TrionetError | None]:
            request = self._calls.client.request
            timeout_ms = self._calls.timeout_ms
            await self._calls.client.until_ready(node)
            versions = self._calls.client.versions(node)
            if has_ids or versions is None or _WITH_IDS_VERSION in versions.versions(DELETE_TOPICS):
                body = DeleteTopicsRequest(
                    topics=[states[key] for key in keys], timeout_ms=timeout_ms
                )
                response: DeleteTopicsResponse = await request(
                    node, body, version_min=_WITH_IDS_VERSION
                )
            else:
                body = DeleteTopicsRequest(topic_names=list(keys), timeout_ms=timeout_ms)
                response = await request(node, body, version_max=_WITH_IDS_VERSION - 1)
            return _deleted(keys, response.responses)

        return await self._calls.for_each(states, self._calls.at_controller, send, _RETRIED)

    async def create_partitions(
        self, topics: Mapping[str, NewPartitions | int], *, validate_only: bool = False
    ) -> Results[str, None]:
        """Add partitions to topics; keys are then mapped to other partitions than before.

        Args:
            topics: the new total number of partitions by topic name.
            validate_only: only check whether the partitions could be added.

        Returns:
            None or the error by name.

        Raises:
            TrionetError: the request as a whole failed.

        Cancellation: partitions may have been added.
        """
        topics = mapping(topics, str, int, NewPartitions)

        async def send(node: Node, keys: Sequence[str]) -> dict[str, TrionetError | None]:
            response: CreatePartitionsResponse = await self._calls.client.request(
                node,
                CreatePartitionsRequest(
                    topics=[_larger(key, topics[key]) for key in keys],
                    timeout_ms=self._calls.timeout_ms,
                    validate_only=validate_only,
                ),
            )
            return {
                each.name: failure(each.error_code, f"topic {each.name}", each.error_message)
                for each in response.results
            }

        return await self._calls.for_each(topics, self._calls.at_controller, send, _RETRIED)

    async def list_topics(self, *, internal: bool = False) -> dict[str, TopicListing]:
        """Return the topics that the caller may describe, by name.

        Args:
            internal: whether to include Kafka's internal topics.

        Raises:
            TrionetError: the request failed.
        """

        def listed(response: MetadataResponse) -> dict[str, TopicListing]:
            return {
                each.name: TopicListing(each.name, uuid_text(each.topic_id), each.is_internal)
                for each in response.topics
                if each.name is not None and (internal or not each.is_internal)
            }

        return await self._calls.call_any(MetadataRequest(topics=None), listed)


def _creatable(topic: NewTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=DEFAULT if topic.assignments is not None else topic.partitions,
        replication_factor=DEFAULT if topic.assignments is not None else topic.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=partition, broker_ids=list(brokers))
            for partition, brokers in (topic.assignments or {}).items()
        ],
        configs=[
            CreatableTopicConfig(name=name, value=setting_text(value))
            for name, value in topic.configs.items()
        ],
    )


def _created(result: CreatableTopicResult) -> CreatedTopic | TrionetError:
    if result.error_code:
        return api_error(result.error_code, f"topic {result.name}", result.error_message)
    has_configs = not result.topic_config_error_code and result.configs is not None
    return CreatedTopic(
        result.name,
        uuid_text(result.topic_id),
        result.num_partitions,
        result.replication_factor,
        {each.name: each.value for each in result.configs or ()} if has_configs else None,
    )


def _deleted(
    keys: Iterable[str], results: Iterable[DeletableTopicResult]
) -> dict[str, TrionetError | None]:
    """Return results by the requested names and ids; a response may have both."""
    wanted = set(keys)
    found: dict[str, TrionetError | None] = {}
    for each in results:
        key = each.name if each.name in wanted else uuid_text(each.topic_id)
        assert key is not None
        found[key] = failure(each.error_code, f"topic {key}", each.error_message)
    return found


def _larger(name: str, topic: NewPartitions | int) -> CreatePartitionsTopic:
    if isinstance(topic, int):
        return CreatePartitionsTopic(name=name, count=topic, assignments=None)
    assignments = topic.assignments
    return CreatePartitionsTopic(
        name=name,
        count=topic.total,
        assignments=None
        if assignments is None
        else [CreatePartitionsAssignment(broker_ids=list(brokers)) for brokers in assignments],
    )
