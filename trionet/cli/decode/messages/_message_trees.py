"""Messages as trees: the fields that their version has, with what they mean."""

from __future__ import annotations

from trionet.protocol._codec import Encode
from trionet.protocol._uuids import uuid_text
from trionet.protocol._wire import Message

from ._allowance import Allowance
from ._batches import record_batches
from ._consumer_protocol import EMBEDDED, embedded
from ._fields import Fields
from ._meanings import meaning
from ._tree import Blob, Tree


def message_tree(message: Message, encode: Encode | None) -> dict[str, Tree]:
    """A message's fields by name.

    Args:
        message: whole, or one whose decoding stopped.
        encode: the encoder of its version; None for a message that is not whole, whose fields are
            those that are set.
    """
    return _struct(message, Fields(encode, message), Allowance())


def tags_tree(tags: tuple[tuple[int, bytes], ...]) -> list[Tree]:
    """Tagged fields that are not known."""
    return [{"tag": tag, "data": Blob(data)} for tag, data in tags]


def _struct(struct: Message, fields: Fields, allowance: Allowance) -> dict[str, Tree]:
    tree = {
        name: _value(struct, name, getattr(struct, name), fields, allowance)
        for name in fields.of(struct)
    }
    if tags := getattr(struct, "unknown_tags", ()):
        tree["unknown_tags"] = tags_tree(tags)
    return tree


def _value(struct: Message, name: str, value: object, fields: Fields, allowance: Allowance) -> Tree:
    match value:
        case None | bool() | float():
            return value
        case str():
            return str(value)
        case int():
            return meaning(type(struct).__name__, name, value)
        case list():
            return [_value(struct, name, item, fields, allowance) for item in value]
        case Message():
            return _struct(value, fields, allowance)
        case bytes() | bytearray() | memoryview():
            return _bytes(struct, name, value, allowance)
        case _:
            raise TypeError(f"{type(struct).__name__}.{name} is a {type(value).__name__}")


def _bytes(
    struct: Message, name: str, value: bytes | bytearray | memoryview, allowance: Allowance
) -> Tree:
    if name in struct._uuids:  # noqa: SLF001  # the package's own
        return uuid_text(bytes(value))
    if name == "records":
        return record_batches(value, allowance)
    data = bytes(value)
    what = EMBEDDED.get(f"{type(struct).__name__}.{name}")
    found = embedded(what, data) if what else None
    if found is None:
        return Blob(data)
    version, message, encode = found
    return {"version": version, **message_tree(message, encode)}
