"""Topics: making, deleting, enlarging and listing them."""

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
from ..._node import Node
from ..calls._argument_checks import items, mapping, names
from ..calls._conversions import AdminCalls, Setting, failure, id_bytes, setting_text
from ..calls._nodes import CONTROLLER_CODES
from ..calls._results import Results

DEFAULT: Final = -1
"""What the broker's configuration says."""

_RETRIED: Final = frozenset({*CONTROLLER_CODES, error_codes.THROTTLING_QUOTA_EXCEEDED})
_WITH_DEFAULTS_VERSION: Final = 4  # KIP-464
_WITH_IDS_VERSION: Final = 6  # KIP-516


@attrs.frozen
class NewTopic:
    """A topic to make.

    Attributes:
        name: of the topic.
        partitions: how many; -1 for the broker's ``num.partitions``.
        replication_factor: how many replicas each has; -1 for ``default.replication.factor``.
        configs: its settings by Kafka's keys.
        assignments: the brokers of each partition's replicas, by its number, in place of
            ``partitions`` and ``replication_factor``; the first is to lead.
    """

    name: str
    partitions: int = DEFAULT
    replication_factor: int = DEFAULT
    configs: Mapping[str, Setting] = attrs.field(factory=dict)
    assignments: Mapping[int, Sequence[int]] | None = None


@attrs.frozen
class CreatedTopic:
    """A topic that was made, as far as the broker tells.

    Attributes:
        name: of the topic.
        id: its id.
        partitions: how many it has; -1 where the caller may not know.
        replication_factor: how many replicas each has; -1 where the caller may not know.
        configs: its settings; None where the caller may not know.
    """

    name: str
    id: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str | None] | None


@attrs.frozen
class TopicListing:
    """A topic in a list.

    Attributes:
        name: of the topic.
        id: its id.
        is_internal: it is Kafka's own.
    """

    name: str
    id: str
    is_internal: bool


@attrs.frozen
class NewPartitions:
    """How large a topic is to be.

    Attributes:
        total: how many partitions it has then.
        assignments: the brokers of the replicas of each new one; None to let the cluster choose.
    """

    total: int
    assignments: Sequence[Sequence[int]] | None = None


class TopicCalls(AdminCalls):
    """Calls about topics as a whole."""

    async def create_topics(
        self, topics: Iterable[NewTopic | str], *, validate_only: bool = False
    ) -> Results[str, CreatedTopic]:
        """Make topics.

        All brokers know a new topic a moment later.

        Args:
            topics: the topics; a name alone takes the broker's defaults.
            validate_only: only look whether they could be made.

        Returns:
            By name, the topic or why it was not made, such as TOPIC_ALREADY_EXISTS: also if an
            attempt whose answer was lost has made it.

        Raises:
            TrionetError: the request as a whole failed.
            ValueError: a topic is named twice.

        Cancellation: topics may be made.
        """
        wanted: dict[str, NewTopic] = {}
        for each in items(topics, str, NewTopic):
            topic = NewTopic(each) if isinstance(each, str) else each
            if topic.name in wanted:
                raise ValueError(f"topic {topic.name} is named twice")
            wanted[topic.name] = topic

        async def ask(node: Node, keys: Sequence[str]) -> dict[str, CreatedTopic | TrionetError]:
            answer: CreateTopicsResponse = await self._calls.client.request(
                node,
                CreateTopicsRequest(
                    topics=[_creatable(wanted[key]) for key in keys],
                    timeout_ms=self._calls.timeout_ms,
                    validate_only=validate_only,
                ),
                version_min=_WITH_DEFAULTS_VERSION,
            )
            return {each.name: _created(each) for each in answer.topics}

        return await self._calls.each(wanted, self._calls.at_controller, ask, _RETRIED)

    async def delete_topics(
        self, topics: Iterable[str] = (), *, ids: Iterable[str] = ()
    ) -> Results[str, None]:
        """Delete topics and all their records.

        Args:
            topics: their names.
            ids: the ids of others; who deletes by id cannot hit a new topic of the same name.

        Returns:
            By name or id, None or why it was not deleted.

        Raises:
            TrionetError: the request as a whole failed.
            ValueError: an id is none.

        Cancellation: topics may be deleted.
        """
        states = {name: DeleteTopicState(name=name) for name in names(topics)}
        states |= {id: DeleteTopicState(topic_id=id_bytes(id)) for id in names(ids)}
        has_ids = any(state.name is None for state in states.values())

        async def ask(node: Node, keys: Sequence[str]) -> dict[str, TrionetError | None]:
            request = self._calls.client.request
            timeout_ms = self._calls.timeout_ms
            await self._calls.client.until_ready(node)
            versions = self._calls.client.versions(node)
            if has_ids or versions is None or _WITH_IDS_VERSION in versions.versions(DELETE_TOPICS):
                body = DeleteTopicsRequest(
                    topics=[states[key] for key in keys], timeout_ms=timeout_ms
                )
                answer: DeleteTopicsResponse = await request(
                    node, body, version_min=_WITH_IDS_VERSION
                )
            else:
                body = DeleteTopicsRequest(topic_names=list(keys), timeout_ms=timeout_ms)
                answer = await request(node, body, version_max=_WITH_IDS_VERSION - 1)
            return _deleted(keys, answer.responses)

        return await self._calls.each(states, self._calls.at_controller, ask, _RETRIED)

    async def create_partitions(
        self, topics: Mapping[str, NewPartitions | int], *, validate_only: bool = False
    ) -> Results[str, None]:
        """Give topics more partitions; records with keys go to other ones then.

        Args:
            topics: by name, how many partitions it is to have in all.
            validate_only: only look whether that could be done.

        Returns:
            By name, None or why not.

        Raises:
            TrionetError: the request as a whole failed.

        Cancellation: partitions may be made.
        """
        topics = mapping(topics, str, int, NewPartitions)

        async def ask(node: Node, keys: Sequence[str]) -> dict[str, TrionetError | None]:
            answer: CreatePartitionsResponse = await self._calls.client.request(
                node,
                CreatePartitionsRequest(
                    topics=[_larger(key, topics[key]) for key in keys],
                    timeout_ms=self._calls.timeout_ms,
                    validate_only=validate_only,
                ),
            )
            return {
                each.name: failure(each.error_code, f"topic {each.name}", each.error_message)
                for each in answer.results
            }

        return await self._calls.each(topics, self._calls.at_controller, ask, _RETRIED)

    async def list_topics(self, *, internal: bool = False) -> dict[str, TopicListing]:
        """All topics that the caller may see, by name.

        Args:
            internal: Kafka's own, too.

        Raises:
            TrionetError: the request failed.
        """

        def listed(answer: MetadataResponse) -> dict[str, TopicListing]:
            return {
                each.name: TopicListing(each.name, uuid_text(each.topic_id), each.is_internal)
                for each in answer.topics
                if each.name is not None and (internal or not each.is_internal)
            }

        return await self._calls.ask_any(MetadataRequest(topics=None), listed)


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
    is_told = not result.topic_config_error_code and result.configs is not None
    return CreatedTopic(
        result.name,
        uuid_text(result.topic_id),
        result.num_partitions,
        result.replication_factor,
        {each.name: each.value for each in result.configs or ()} if is_told else None,
    )


def _deleted(
    keys: Iterable[str], results: Iterable[DeletableTopicResult]
) -> dict[str, TrionetError | None]:
    """By the names and ids that were asked for; an answer may tell both."""
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
