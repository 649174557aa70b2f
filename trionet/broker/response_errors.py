"""The error codes in an answer, wherever in it they are.

(Kafka: AbstractResponse.errorCounts.) Which fields of a message can hold one is worked out once per
class, from the types that the generated classes declare.
"""

from __future__ import annotations

import sys
import typing
from collections.abc import Generator, Iterator
from typing import Any

from ..protocol.codec import Message
from ..protocol.stepping import Elements


def errors_in(message: object) -> list[int]:
    """Every error code of a message that is not 0, its nested messages' included.

    Those of arrays that are made when they are written are left out.
    """
    found: list[int] = []
    if isinstance(message, Message):
        for _ in _collecting(message, found):
            pass
    return found


def find_errors(message: Message) -> Generator[None, None, list[int]]:
    """As :func:`errors_in`, stopping at each nested message."""
    found: list[int] = []
    yield from _collecting(message, found)
    return found


# AddPartitionsToTxn alone has the second one.
_CODES = ("error_code", "partition_error_code")


class ErrorFields(typing.NamedTuple):
    """Where a class of messages can hold an error.

    Attributes:
        codes: its own error codes.
        lists: lists of messages that can hold one, and of which class those are.
        structs: the same of single messages.
    """

    codes: tuple[str, ...]
    lists: dict[str, type[Message]]
    structs: dict[str, type[Message]]


def _collecting(message: Message, found: list[int]) -> Iterator[None]:
    # In the order of the fields. Not recursive: each code would pass through all generators.
    left = [message]
    while left:
        message = left.pop()
        codes, lists, structs = error_fields(type(message))
        for name in codes:
            code: int = getattr(message, name)
            if code:
                found.append(code)
        for name in reversed(lists):
            nested = getattr(message, name)
            if nested and not isinstance(nested, Elements):  # counted as they are made
                left += reversed(nested)
        for name in reversed(structs):
            nested = getattr(message, name)
            if nested is not None:
                left.append(nested)
        yield


_known: dict[type[Message], ErrorFields] = {}


def error_fields(cls: type[Message]) -> ErrorFields:
    """Where messages of a class can hold an error."""
    fields = _known.get(cls)
    if fields is None:
        fields = _known[cls] = _find_fields(cls)
    return fields


def _find_fields(cls: type[Message]) -> ErrorFields:
    hints = typing.get_type_hints(cls.__init__, vars(sys.modules[cls.__module__]))
    lists: dict[str, type[Message]] = {}
    structs: dict[str, type[Message]] = {}
    for name, hint in hints.items():
        for nested, is_list in _messages_of(hint):
            fields = error_fields(nested)
            if any(fields):
                (lists if is_list else structs)[name] = nested
    codes = tuple(name for name in _CODES if name in hints)
    return ErrorFields(codes, lists, structs)


def _messages_of(hint: Any, is_list: bool = False) -> Iterator[tuple[type[Message], bool]]:
    """The classes of messages in a type, and whether a list is around them."""
    if isinstance(hint, type) and issubclass(hint, Message):
        yield hint, is_list
        return
    for part in typing.get_args(hint):
        yield from _messages_of(part, is_list or typing.get_origin(hint) is list)
