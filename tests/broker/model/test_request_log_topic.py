"""Which requests touch a topic: every way in which any API can name one is known."""

from __future__ import annotations

import sys
import typing
from types import SimpleNamespace
from typing import Any, cast

import pytest

from trionet.broker.model._request_log_topic import FIELDS, NAMES_OF, RequestLogTopic
from trionet.broker.model._topic_registry import TopicRegistry
from trionet.broker.run._served_apis import APIS
from trionet.protocol import api_keys
from trionet.protocol._codec import Message, lookup
from trionet.protocol._wire import NO_UUID
from trionet.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

# Groups' own: what members subscribe to is bytes, which nobody but they reads.
_NAME_TOPICS = {"topic", "topics", "topic_names", "topic_data", "topic_id", "resource_name"}


def _fields(cls: type[Message], found: set[str]) -> set[str]:
    """The names of all fields of a message, its nested messages' included."""
    hints = typing.get_type_hints(cls.__init__, vars(sys.modules[cls.__module__]))
    for name, hint in hints.items():
        found.add(name)
        for part in (hint, *_parts(hint)):
            if isinstance(part, type) and issubclass(part, Message):
                _fields(part, found)
    return found


def _parts(hint: Any) -> list[Any]:
    parts = list(typing.get_args(hint))
    return parts + [inner for part in parts for inner in _parts(part)]


def _request_class(key: int) -> type[Message]:
    name = api_keys.name_of(key)
    codec = lookup(key, next(api.min_version for api in APIS if api.key == key))
    assert codec is not None
    found = vars(sys.modules[codec.decode_request.__module__])[f"{name}Request"]
    assert issubclass(found, Message)
    return typing.cast(type[Message], found)


@pytest.mark.parametrize("key", [api.key for api in APIS], ids=api_keys.name_of)
def test_an_api_that_names_topics_is_known(key: int) -> None:
    names_topics = bool(_NAME_TOPICS & _fields(_request_class(key), set()))
    if key == api_keys.CREATE_ACLS:
        names_topics = False  # without an authorizer, it uses no topic
    assert names_topics == (key in FIELDS or key in NAMES_OF)


@pytest.mark.parametrize("key", FIELDS, ids=api_keys.name_of)
def test_a_request_names_it_or_has_its_id(key: int) -> None:
    list_field, name_field, id_field = FIELDS[key]
    own = RequestLogTopic("log", cast(TopicRegistry, {"log": SimpleNamespace(id=b"i" * 16)}))

    def is_touched(name: str | None, id: bytes) -> bool:
        topics = [
            SimpleNamespace(**{name_field: each_name, id_field or "_": each_id})
            for each_name, each_id in (("other", NO_UUID), (name, id))
        ]
        return own.is_named_in(key, SimpleNamespace(**{list_field: topics}))

    assert is_touched("log", NO_UUID)
    assert not is_touched("logs", NO_UUID)
    assert not is_touched("", b"j" * 16)
    assert bool(id_field) == is_touched("", b"i" * 16)


def test_without_the_topic_no_id_is_its() -> None:
    own = RequestLogTopic("log", cast(TopicRegistry, {}))
    request = MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=b"i" * 16)])
    assert not own.is_named_in(api_keys.METADATA, request)


def test_a_field_that_is_looked_at_is_there() -> None:
    for key, (list_field, name_field, id_field) in FIELDS.items():
        found = _fields(_request_class(key), set())
        assert {list_field, name_field, id_field or name_field} <= found
        assert bool(id_field) == ("topic_id" in found)
