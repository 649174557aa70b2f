"""Finds all error codes in a response (Kafka: AbstractResponse.errorCounts).

The types that a generated message class declares determine which of its fields can contain error
codes. They are inspected once per class.
"""

from __future__ import annotations

import sys
import typing
from collections.abc import Generator, Iterator
from typing import Any

from ...protocol._codec import Message
from ...protocol._stepping import Elements


def errors_in(message: object) -> list[int]:
    """Return the error codes other than 0 in a message and its nested messages.

    Lazily generated arrays are skipped; their errors are counted while they are encoded.
    """
    return [code for code in _codes(message) if code] if isinstance(message, Message) else []


def find_errors(message: Message) -> Generator[None, None, list[int]]:
    """Find the same error codes as :func:`errors_in`, and yield after each one."""
    found = []
    for code in _codes(message):
        if code:
            found.append(code)
        yield
    return found


# The second one occurs only in AddPartitionsToTxn.
_CODES = ("error_code", "partition_error_code")


class ErrorFields(typing.NamedTuple):
    """The fields of a message class that can contain error codes.

    Attributes:
        codes: the fields that are error codes.
        lists: the fields that are lists of messages with error codes, and their message classes.
        structs: the fields that are single messages with error codes, and their message classes.
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
            continue  # counted while they are generated
        inner = error_fields(cls)
        if inner.lists or inner.structs:
            for nested in nested_list:
                yield from _codes(nested)
            continue
        # Usually partitions, for which separate generators would take longer than the lookup.
        for code in inner.codes:
            for nested in nested_list:
                yield getattr(nested, code)


_known: dict[type[Message], ErrorFields] = {}


def error_fields(cls: type[Message]) -> ErrorFields:
    """Return the fields of a message class that can contain error codes (cached)."""
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
    """Yield each message class in a type, and whether the type is a list of that class."""
    if isinstance(hint, type) and issubclass(hint, Message):
        yield hint, is_list
        return
    for part in typing.get_args(hint):
        yield from _messages_of(part, is_list or typing.get_origin(hint) is list)
