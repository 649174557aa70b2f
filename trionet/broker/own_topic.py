"""Which requests are about the topic of the request log, which would feed itself if it had them.

Of a request whose topics a fetch session knows, :meth:`OwnTopic.is_read_by` tells; of all others
what they name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from ..protocol import api_keys
from .fetch_sessions import FetchContext
from .topics import TopicRegistry

_Names = Callable[[Any], Iterable[Any]]
# Kafka: ConfigResource.Type.TOPIC.
_TOPIC_RESOURCE: Final = 2


def _named(request: Any) -> Iterable[Any]:
    for topic in request.topics or ():
        yield topic.name


def _named_or_with_id(request: Any) -> Iterable[Any]:
    for topic in request.topics or ():
        yield topic.name
        yield topic.topic_id


def _topic(request: Any) -> Iterable[Any]:
    for topic in request.topics or ():
        yield topic.topic


def _topic_or_with_id(request: Any) -> Iterable[Any]:
    for topic in request.topics:
        yield topic.topic
        yield topic.topic_id


def _produced(request: Any) -> Iterable[Any]:
    for topic in request.topic_data:
        yield topic.name
        yield topic.topic_id


def _offsets_of_groups(request: Any) -> Iterable[Any]:
    yield from _named(request)
    for group in request.groups:
        yield from _named_or_with_id(group)


def _deleted(request: Any) -> Iterable[Any]:
    yield from _named_or_with_id(request)
    yield from request.topic_names


def _configured(request: Any) -> Iterable[Any]:
    for resource in request.resources:
        if resource.resource_type == _TOPIC_RESOURCE:
            yield resource.resource_name


NAMES_OF: Final[dict[int, _Names]] = {
    api_keys.PRODUCE: _produced,
    api_keys.FETCH: _topic_or_with_id,
    api_keys.LIST_OFFSETS: _named,
    api_keys.METADATA: _named_or_with_id,
    api_keys.OFFSET_COMMIT: _named_or_with_id,
    api_keys.OFFSET_FETCH: _offsets_of_groups,
    api_keys.OFFSET_FOR_LEADER_EPOCH: _topic,
    api_keys.OFFSET_DELETE: _named,
    api_keys.CREATE_TOPICS: _named,
    api_keys.CREATE_PARTITIONS: _named,
    api_keys.DELETE_TOPICS: _deleted,
    api_keys.DELETE_RECORDS: _named,
    api_keys.DESCRIBE_TOPIC_PARTITIONS: _named,
    api_keys.DESCRIBE_LOG_DIRS: _topic,
    api_keys.DESCRIBE_CONFIGS: _configured,
    api_keys.ALTER_CONFIGS: _configured,
    api_keys.INCREMENTAL_ALTER_CONFIGS: _configured,
}
"""By API: the names and ids of the topics in a request, of every API that names any."""


class OwnTopic:
    """The topic of the request log.

    Args:
        name: of the topic.
        topics: knows its id, which is another one if it was made again.
    """

    def __init__(self, name: str, topics: TopicRegistry) -> None:
        self.name = name
        self._topics = topics

    def is_touched_by(self, api_key: int, request: Any) -> bool:
        """Whether a request names the topic, or has its id."""
        names_of = NAMES_OF.get(api_key)
        if names_of is None:
            return False
        name, id = self.name, self._id
        return any(each in (name, id) for each in names_of(request))

    def is_read_by(self, context: FetchContext) -> bool:
        """Whether a fetch reads it, by what its session knows."""
        name, id = self.name, self._id
        return any(partition.key[0] in (name, id) for partition in context.partitions)

    @property
    def _id(self) -> bytes | None:
        topic = self._topics.get(self.name)
        return None if topic is None else topic.id
