"""Sets error codes in the response fields in which each API reports errors.

(Kafka: AbstractRequest.getErrorResponse.) A response mirrors its request: it has an item for each
requested topic, partition, group or resource, and the item holds the code. The fields are derived
from the message classes, so no API needs code of its own.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable, Iterator
from typing import Any

from ...broker.api._response_errors import error_fields
from ...protocol import api_keys, error_codes
from ...protocol._codec import ApiVersionCodec
from ...protocol._wire import Message
from ...protocol.messages.registry import APIS
from .._names import PARTITIONS, TOPIC_LISTS, TopicName, partition_of, partitions_in, topic_of

# pytest leaves the frames of this module out of its reports.
__tracebackhide__ = True

Hits = Callable[[str, int | None], bool]
"""Returns whether a topic, or one of its partitions, gets the error."""

# Fields that identify an item, in requests and in responses.
_KEYS = (
    "name",
    "topic",
    "topic_id",
    "partition_index",
    "index",
    "partition",
    "group_id",
    "member_id",
    "group_instance_id",
    "key",
    "resource_type",
    "resource_name",
    "transactional_id",
    "producer_id",
)
# Fields next to an error code, where 0 would be a value (Kafka: the UNKNOWN_ constants).
_BESIDE_ERRORS: dict[str, Any] = {
    "base_offset": -1,
    "committed_offset": -1,
    "generation_id": -1,
    "high_watermark": -1,
    "last_stable_offset": -1,
    "log_append_time_ms": -1,
    "log_start_offset": -1,
    "low_watermark": -1,
    "node_id": -1,
    "offset": -1,
    "port": -1,
    "producer_epoch": -1,
    "producer_id": -1,
    "timestamp": -1,
}
# Errors of the whole response in APIs that report others per partition or topic.
_TOP_LEVEL_ERRORS = {
    api_keys.FETCH: (
        error_codes.FETCH_SESSION_ID_NOT_FOUND,
        error_codes.INVALID_FETCH_SESSION_EPOCH,
        error_codes.FETCH_SESSION_TOPIC_ID_ERROR,
    ),
    api_keys.METADATA: (error_codes.REBOOTSTRAP_REQUIRED,),
}


def response_class(api_key: int) -> type[Message]:
    """Return the response class of an API."""
    module, name = APIS[api_key][:2]
    found: type[Message] = getattr(
        importlib.import_module(f"trionet.protocol.messages.{module}"), f"{name}Response"
    )
    return found


def is_top_level(api_key: int, code: int) -> bool:
    """Return whether an API reports an error only at the top level of its responses."""
    return code in _TOP_LEVEL_ERRORS.get(api_key, ())


class ErrorResponses:
    """Builds responses that report an error, and sets the error in existing responses.

    Args:
        codec: the codec of the request and its response.
        code: the error code.
        text: the error message, for APIs that have a field for it.
        hits: selects the topics and partitions that get the error; None for all.
        name_of: returns the name of a topic that a request identifies by id.
    """

    def __init__(
        self,
        codec: ApiVersionCodec,
        code: int,
        text: str | None,
        hits: Hits | None,
        name_of: TopicName,
    ) -> None:
        self._codec = codec
        self._code = code
        self._text = text
        self._hits = hits
        self._name_of = name_of

    def rejection(self, request: Message) -> Any:
        """Build the response that rejects a request."""
        response = response_class(self._codec.api_key)()
        fields = error_fields(type(response))
        _copy_keys(request, response)
        if self._is_by_item(fields.lists):
            for name, requested in _paired(request, list(fields.lists)):
                items = [self._item(each, fields.lists[name]) for each in requested]
                setattr(response, name, [each for each in items if each is not None])
        if fields.codes and not self._is_by_item_only:
            self._mark(response)
        return response

    def mark(self, response: Message) -> None:
        """Set the error in an existing response."""
        fields = error_fields(type(response))
        if self._is_by_item(fields.lists):
            for name in fields.lists:
                for item in getattr(response, name) or ():
                    self._mark_item(item)
        if fields.codes and not self._is_by_item_only:
            self._mark(response)

    @property
    def _is_by_item_only(self) -> bool:
        """Whether a top-level error code would hide the per-item errors from clients."""
        key = self._codec.api_key
        return key in _TOP_LEVEL_ERRORS and not is_top_level(key, self._code)

    def _is_by_item(self, lists: dict[str, type[Message]]) -> bool:
        return bool(lists) and not is_top_level(self._codec.api_key, self._code)

    def _item(self, requested: object, cls: type[Message]) -> Message | None:
        """Build the response item for a requested item; None if the item does not get the error."""
        topic = topic_of(requested, self._name_of)
        item = cls()
        _copy_keys(requested, item)
        fields = error_fields(cls)
        if fields.codes:
            if not self._is_hit(topic, None):
                return None
            self._mark(item)
            return item
        [(name, nested)] = fields.lists.items()
        found = []
        if not error_fields(nested).codes:  # a transaction, whose topics have partitions
            topics: list[Message] = getattr(requested, "topics", [])
            found = [each for inner in topics if (each := self._item(inner, nested)) is not None]
        for each in partitions_in(requested) or ():
            if self._is_hit(topic, partition_of(each)):
                partition = nested()
                _copy_keys(each, partition)
                self._mark(partition)
                found.append(partition)
        setattr(item, name, found)
        return item if found else None

    def _mark_item(self, item: Message) -> None:
        topic = topic_of(item, self._name_of)
        fields = error_fields(type(item))
        if fields.codes:
            if self._is_hit(topic, None):
                self._mark(item)
            return
        for name, nested in fields.lists.items():
            for each in getattr(item, name) or ():
                if not error_fields(nested).codes:
                    self._mark_item(each)
                elif self._is_hit(topic, partition_of(each)):
                    self._mark(each)

    def _is_hit(self, topic: str | None, partition: int | None) -> bool:
        return self._hits is None or topic is None or self._hits(topic, partition)

    def _mark(self, item: Message) -> None:
        for name in item.__slots__:
            if name in _BESIDE_ERRORS:
                setattr(item, name, _BESIDE_ERRORS[name])
        for name in error_fields(type(item)).codes:
            setattr(item, name, self._code)
        if self._text is not None and "error_message" in item.__slots__:
            item.error_message = self._text  # type: ignore[attr-defined]
        if "records" in item.__slots__:
            item.records = b""  # type: ignore[attr-defined]


def _paired(request: Message, names: list[str]) -> Iterator[tuple[str, list[Any]]]:
    """Yield the response list that mirrors a list of the request, with that list; none if empty."""
    requested = {
        name: found
        for name in request.__slots__
        if isinstance(found := getattr(request, name), list) and found
    }
    for name in names:
        if name in requested:
            yield name, requested.pop(name)
            return
    if requested:
        yield names[0], next(iter(requested.values()))


def _copy_keys(requested: object, item: Message) -> None:
    slots = item.__slots__
    if isinstance(requested, Message):
        for name in _KEYS:
            if name in slots and name in requested.__slots__:
                setattr(item, name, getattr(requested, name))
        index = partition_of(requested)
        if index is not None and "partition_index" in slots:
            item.partition_index = index  # type: ignore[attr-defined]
        return
    names = {str: ("name", "key", "group_id", "transactional_id"), int: ("partition_index",)}
    for name in names.get(type(requested), ()):
        if name in slots:
            setattr(item, name, requested)
            return


def merge(response: Message, rejected: Message) -> None:
    """Merge the items of a rejection into the response to the rest of the request."""
    for name in error_fields(type(response)).lists:
        items = getattr(response, name)
        by_key = {_key(each): each for each in items}
        for item in getattr(rejected, name) or ():
            known = by_key.get(_key(item))
            if known is None:
                items.append(item)
                continue
            for inner in error_fields(type(item)).lists:
                getattr(known, inner).extend(getattr(item, inner))


def _key(item: Message) -> tuple[Any, ...]:
    return tuple(getattr(item, name) for name in _KEYS if name in item.__slots__)


def rest_of(request: Message, hits: Hits, name_of: TopicName) -> Message | None:
    """Return a copy of a request without the items that get the error; None if none remain."""
    rest = copy.copy(request)
    is_something_left = False
    for name in TOPIC_LISTS:
        requested = getattr(request, name, None)
        if not requested:
            continue
        kept = [
            left for each in requested if (left := _rest_of_topic(each, hits, name_of)) is not None
        ]
        setattr(rest, name, kept)
        is_something_left = is_something_left or bool(kept)
    return rest if is_something_left else None


def _rest_of_topic(requested: Any, hits: Hits, name_of: TopicName) -> Any | None:
    topic = topic_of(requested, name_of)
    if topic is None:
        return requested
    for name in PARTITIONS:
        partitions = getattr(requested, name, None)
        if isinstance(partitions, list):
            rest = copy.copy(requested)
            kept = [each for each in partitions if not hits(topic, partition_of(each))]
            setattr(rest, name, kept)
            return rest if kept else None
    return None if hits(topic, None) else requested
