"""The error codes in an answer, wherever in it they are.

(Kafka: AbstractResponse.errorCounts.) Which fields of a message can hold one is worked out once per
class, from the types that the generated classes declare.
"""

from __future__ import annotations

import sys
import typing
from collections.abc import Generator, Iterator
from typing import Any

from ...protocol._codec import Message
from ...protocol._stepping import Elements


def errors_in(message: object) -> list[int]:
    """Every error code of a message that is not 0, its nested messages' included.

    Those of arrays that are made when they are written are left out.
    """
    return [code for code in _codes(message) if code] if isinstance(message, Message) else []


def find_errors(message: Message) -> Generator[None, None, list[int]]:
    """As :func:`errors_in`, one code at a time."""
    found = []
    for code in _codes(message):
        if code:
            found.append(code)
        yield
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


def _codes(message: Message) -> Iterator[int]:
    fields = error_fields(type(message))
    for name in fields.codes:
        yield getattr(message, name)
    for name in fields.structs:
        nested = getattr(message, name)
        if nested is not None:
            yield from _codes(nested)
    for name, cls in fields.lists.items():
        nested_list = getattr(message, name) or ()
        if isinstance(nested_list, Elements):
            continue  # counted as they are made
        inner = error_fields(cls)
        if inner.lists or inner.structs:
            for nested in nested_list:
                yield from _codes(nested)
            continue
        # Partitions, mostly: for each of them a generator would take longer than the look at it.
        for code in inner.codes:
            for nested in nested_list:
                yield getattr(nested, code)


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
