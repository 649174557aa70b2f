"""Error codes in answers, where each API carries them.

(Kafka: AbstractRequest.getErrorResponse.) An answer mirrors its request: for each topic, partition,
group or resource that was asked for it has an item, and that holds the code. Where that is follows
from the messages' classes, so that an API needs nothing written here to be refused.
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
from ..requests._topic_items import (
    PARTITIONS,
    TOPIC_LISTS,
    TopicName,
    partition_of,
    partitions_in,
    topic_of,
)

Hits = Callable[[str, int | None], bool]
"""Whether a topic, or a partition of it, is one of those that an error is for."""

# What names an item; it stands in the request and in the answer.
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
)
# What stands beside an error code, where 0 would be a value (Kafka: the UNKNOWN_ constants).
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
# Errors of the whole answer in APIs that otherwise tell them by partition or topic.
_OF_THE_WHOLE = {
    api_keys.FETCH: (
        error_codes.FETCH_SESSION_ID_NOT_FOUND,
        error_codes.INVALID_FETCH_SESSION_EPOCH,
        error_codes.FETCH_SESSION_TOPIC_ID_ERROR,
    ),
    api_keys.METADATA: (error_codes.REBOOTSTRAP_REQUIRED,),
}


def response_class(api_key: int) -> type[Message]:
    """The class of an API's answers."""
    module, name = APIS[api_key][:2]
    found: type[Message] = getattr(
        importlib.import_module(f"trionet.protocol.messages.{module}"), f"{name}Response"
    )
    return found


def is_of_the_whole(api_key: int, code: int) -> bool:
    """Whether an error stands at the top of the answer only."""
    return code in _OF_THE_WHOLE.get(api_key, ())


class ErrorAnswers:
    """Answers with one error.

    Args:
        codec: of the calls to be answered.
        code: the error.
        text: goes with the code where the API has a place for it.
        hits: which topics and partitions get it; None for everything.
        name_of: names topics that a request names by id.
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

    def refusal(self, request: Message) -> Any:
        """The answer to a request of which nothing was done."""
        answer = response_class(self._codec.api_key)()
        fields = error_fields(type(answer))
        _copy_keys(request, answer)
        if self._is_by_item(fields.lists):
            for name, asked in _paired(request, list(fields.lists)):
                items = [self._item(each, fields.lists[name]) for each in asked]
                setattr(answer, name, [each for each in items if each is not None])
        if fields.codes and not self._is_by_item_only:
            self._mark(answer)
        return answer

    def mark(self, answer: Message) -> None:
        """Put the error into an answer that is there."""
        fields = error_fields(type(answer))
        if self._is_by_item(fields.lists):
            for name in fields.lists:
                for item in getattr(answer, name) or ():
                    self._mark_item(item)
        if fields.codes and not self._is_by_item_only:
            self._mark(answer)

    @property
    def _is_by_item_only(self) -> bool:
        """A client takes a code at the top for one of the whole answer, and looks no further."""
        key = self._codec.api_key
        return key in _OF_THE_WHOLE and not is_of_the_whole(key, self._code)

    def _is_by_item(self, lists: dict[str, type[Message]]) -> bool:
        return bool(lists) and not is_of_the_whole(self._codec.api_key, self._code)

    def _item(self, asked: object, cls: type[Message]) -> Message | None:
        """The item of an answer for what was asked; None if it is not to get the error."""
        topic = topic_of(asked, self._name_of)
        item = cls()
        _copy_keys(asked, item)
        fields = error_fields(cls)
        if fields.codes:
            if not self._is_hit(topic, None):
                return None
            self._mark(item)
            return item
        [(name, nested)] = fields.lists.items()
        found = []
        for each in partitions_in(asked) or ():
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
        for name in fields.lists:
            for each in getattr(item, name) or ():
                if self._is_hit(topic, partition_of(each)):
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
    """The lists of an answer, each with the list of the request that it mirrors."""
    asked = {
        name: found
        for name in request.__slots__
        if isinstance(found := getattr(request, name), list) and found
    }
    for name in names:
        if name in asked:
            yield name, asked.pop(name)
            return
    if asked:
        yield names[0], next(iter(asked.values()))


def _copy_keys(asked: object, item: Message) -> None:
    slots = item.__slots__
    if isinstance(asked, Message):
        for name in _KEYS:
            if name in slots and name in asked.__slots__:
                setattr(item, name, getattr(asked, name))
        index = partition_of(asked)
        if index is not None and "partition_index" in slots:
            item.partition_index = index  # type: ignore[attr-defined]
        return
    kind = {str: ("name", "key", "group_id"), int: ("partition_index",)}.get(type(asked), ())
    for name in kind:
        if name in slots:
            setattr(item, name, asked)
            return


def merge(answer: Message, refused: Message) -> None:
    """Add the items of a refusal to the answer for the rest of the request."""
    for name in error_fields(type(answer)).lists:
        items = getattr(answer, name)
        by_key = {_key(each): each for each in items}
        for item in getattr(refused, name) or ():
            known = by_key.get(_key(item))
            if known is None:
                items.append(item)
                continue
            for inner in error_fields(type(item)).lists:
                getattr(known, inner).extend(getattr(item, inner))


def _key(item: Message) -> tuple[Any, ...]:
    return tuple(getattr(item, name) for name in _KEYS if name in item.__slots__)


def rest_of(request: Message, hits: Hits, name_of: TopicName) -> Message | None:
    """A request without the topics and partitions that get an error; None if nothing is left."""
    rest = copy.copy(request)
    is_something_left = False
    for name in TOPIC_LISTS:
        asked = getattr(request, name, None)
        if not asked:
            continue
        kept = [left for each in asked if (left := _rest_of_topic(each, hits, name_of)) is not None]
        setattr(rest, name, kept)
        is_something_left = is_something_left or bool(kept)
    return rest if is_something_left else None


def _rest_of_topic(asked: Any, hits: Hits, name_of: TopicName) -> Any | None:
    topic = topic_of(asked, name_of)
    if topic is None:
        return asked
    for name in PARTITIONS:
        partitions = getattr(asked, name, None)
        if isinstance(partitions, list):
            rest = copy.copy(asked)
            kept = [each for each in partitions if not hits(topic, partition_of(each))]
            setattr(rest, name, kept)
            return rest if kept else None
    return None if hits(topic, None) else asked
