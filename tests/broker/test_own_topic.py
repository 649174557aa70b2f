"""Which requests touch a topic: every way in which any API can name one is known."""

from __future__ import annotations

import sys
import typing
from typing import Any

import pytest

from trionet.broker.own_topic import NAMES_OF
from trionet.broker.served import _SERVED
from trionet.protocol import api_keys
from trionet.protocol.codec import Message, lookup

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
    codec = lookup(key, 0)
    assert codec is not None
    found = vars(sys.modules[codec.decode_request.__module__])[f"{name}Request"]
    assert issubclass(found, Message)
    return typing.cast(type[Message], found)


@pytest.mark.parametrize("key", [key for key, *_ in _SERVED], ids=api_keys.name_of)
def test_an_api_that_names_topics_is_known(key: int) -> None:
    names_topics = bool(_NAME_TOPICS & _fields(_request_class(key), set()))
    assert names_topics == (key in NAMES_OF)
