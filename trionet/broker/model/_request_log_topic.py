"""Detects requests that use the request log's topic; these must not be logged themselves.

Requests are detected by the topics that they name. Fetches that continue a session are detected by
the topics of the session (:meth:`RequestLogTopic.is_read_by`).
"""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from ...protocol import api_keys
from ..config._alterations import TOPIC
from ._fetch_sessions import FetchContext
from ._topic_registry import TopicRegistry

FIELDS: Final[dict[int, tuple[str, str, str]]] = {
    api_keys.PRODUCE: ("topic_data", "name", "topic_id"),
    api_keys.FETCH: ("topics", "topic", "topic_id"),
    api_keys.LIST_OFFSETS: ("topics", "name", ""),
    api_keys.METADATA: ("topics", "name", "topic_id"),
    api_keys.OFFSET_COMMIT: ("topics", "name", "topic_id"),
    api_keys.OFFSET_FOR_LEADER_EPOCH: ("topics", "topic", ""),
    api_keys.OFFSET_DELETE: ("topics", "name", ""),
    api_keys.CREATE_TOPICS: ("topics", "name", ""),
    api_keys.CREATE_PARTITIONS: ("topics", "name", ""),
    api_keys.DELETE_RECORDS: ("topics", "name", ""),
    api_keys.DESCRIBE_TOPIC_PARTITIONS: ("topics", "name", ""),
    api_keys.DESCRIBE_LOG_DIRS: ("topics", "topic", ""),
    api_keys.TXN_OFFSET_COMMIT: ("topics", "name", ""),
    api_keys.DESCRIBE_PRODUCERS: ("topics", "name", ""),
}
"""For each API whose requests name topics in a single list: the field of the request that contains
the list, and the fields of its items that contain the topic name and the topic id, if any."""


def _offsets_of_groups(request: Any) -> Iterable[Any]:
    for topic in request.topics or ():
        yield topic.name
    for group in request.groups:
        for topic in group.topics or ():
            yield topic.name
            yield topic.topic_id


def _deleted(request: Any) -> Iterable[Any]:
    for topic in request.topics:
        yield topic.name
        yield topic.topic_id
    yield from request.topic_names


def _configured(request: Any) -> Iterable[Any]:
    for resource in request.resources:
        if resource.resource_type == TOPIC:
            yield resource.resource_name


def _added(request: Any) -> Iterable[str]:
    for topic in request.v3_and_below_topics:
        yield topic.name
    for transaction in request.transactions:
        for topic in transaction.topics:
            yield topic.name


def _marked(request: Any) -> Iterable[str]:
    for marker in request.markers:
        for topic in marker.topics:
            yield topic.name


NAMES_OF: Final[dict[int, Callable[[Any], Iterable[Any]]]] = {
    api_keys.OFFSET_FETCH: _offsets_of_groups,
    api_keys.DELETE_TOPICS: _deleted,
    api_keys.DESCRIBE_CONFIGS: _configured,
    api_keys.ALTER_CONFIGS: _configured,
    api_keys.INCREMENTAL_ALTER_CONFIGS: _configured,
    api_keys.ADD_PARTITIONS_TO_TXN: _added,
    api_keys.WRITE_TXN_MARKERS: _marked,
}
"""For each other API: a function that returns the topic names and ids in a request."""


class RequestLogTopic:
    """The topic of the request log.

    Args:
        name: the topic's name.
        topics: the registry, which provides the current topic id.
    """

    def __init__(self, name: str, topics: TopicRegistry) -> None:
        self.name = name
        self._topics = topics

    def is_named_in(self, api_key: int, request: Any) -> bool:
        """Return whether a request contains the name or id of the topic."""
        fields = FIELDS.get(api_key)
        if fields is not None:
            topics, name, id_field = fields
            return self._is_in(request, topics, name, id_field)
        names_of = NAMES_OF.get(api_key)
        if names_of is None:
            return False
        id = self._id
        return any(
            each == self.name or (id is not None and each == id) for each in names_of(request)
        )

    def _is_in(self, request: Any, topics: str, name_field: str, id_field: str) -> bool:
        own = self.name
        for topic in getattr(request, topics) or ():
            name = getattr(topic, name_field)
            if name:  # a request has either names or ids
                if name == own:
                    return True
            elif id_field and getattr(topic, id_field) == self._id:
                return True
        return False

    def is_read_by(self, context: FetchContext) -> bool:
        """Return whether a fetch reads the topic, whether by its request or by its session."""
        own = self.name
        for partition in context.partitions:
            topic = partition.key[0]
            if topic == own if isinstance(topic, str) else topic == self._id:
                return True
        return False

    @property
    def _id(self) -> bytes | None:
        topic = self._topics.get(self.name)
        return None if topic is None else topic.id
