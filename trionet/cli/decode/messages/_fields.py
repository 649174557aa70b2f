"""Finds the fields that a version of a message has.

A message class has the fields of all versions, and a decoder sets the fields that its version lacks
to their defaults. This module finds the fields of a version by probing the encoder, which rejects
an unencodable value only in fields that the version has. A table of fields per version would be
more direct, but the code generator emits no such table for the codecs of the hot paths.
"""

from __future__ import annotations

from typing import Final

from trionet.errors import LocalProtocolError
from trionet.protocol._codec import Encode
from trionet.protocol._wire import Message

#: Part of an encoder's error about a field that is set but does not exist in the version.
_NO_SUCH_FIELD: Final = "no such field"


class _Unencodable:
    """A value that no field can encode, not even a boolean field."""

    def __bool__(self) -> bool:
        raise TypeError("cannot be used as a boolean")


_UNENCODABLE: Final = _Unencodable()
#: A truthy value, for encoders that test whether an array is empty.
_SET: Final = object()


class Fields:
    """The fields of the structs of one message at one version.

    Args:
        encode: the encoder of that version; None to return all fields that are set.
        message: the complete message that contains the structs. Probing changes its fields
            temporarily.
    """

    def __init__(self, encode: Encode | None, message: Message) -> None:
        self._encode = encode
        self._message = message
        self._known: dict[type[Message], tuple[str, ...]] = {}

    def of(self, struct: Message) -> tuple[str, ...]:
        """Return the names of the fields of a struct, in order."""
        if self._encode is None:
            return tuple(name for name in _named(struct) if hasattr(struct, name))
        known = self._known.get(type(struct))
        if known is None:
            known = tuple(name for name in _named(struct) if self._has(struct, name))
            self._known[type(struct)] = known
        return known

    def _has(self, struct: Message, name: str) -> bool:
        return bool(found := self._error(struct, name, _UNENCODABLE)) and not any(
            _NO_SUCH_FIELD in each for each in (found, self._error(struct, name, _SET))
        )

    def _error(self, struct: Message, name: str, value: object) -> str:
        """Return the error from encoding the field with this value; empty if there is none."""
        assert self._encode is not None
        own = getattr(struct, name)
        try:
            setattr(struct, name, value)
            self._encode(self._message, [])
        except LocalProtocolError as error:
            return str(error)
        finally:
            setattr(struct, name, own)
        return ""


def _named(struct: Message) -> tuple[str, ...]:
    return tuple(name for name in struct.__slots__ if name != "unknown_tags")
