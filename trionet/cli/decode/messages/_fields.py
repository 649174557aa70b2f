"""Which fields a version of a message has.

A message class has the fields of all versions, and a decoder sets those that its version lacks to
their defaults. The encoder of the version knows: it stumbles over a value that no field can carry,
but not where there is no such field.
"""

from __future__ import annotations

from typing import Final

from trionet.errors import LocalProtocolError
from trionet.protocol._codec import Encode
from trionet.protocol._wire import Message

#: What an encoder says of a field that is set, but that its version lacks.
_LACKING: Final = "no such field"


class _Unencodable:
    """What no field can carry, not even a boolean."""

    def __bool__(self) -> bool:
        raise TypeError("neither true nor false")


_UNENCODABLE: Final = _Unencodable()
#: What looks as if it were set to encoders that ask whether an array is empty.
_SET: Final = object()


class Fields:
    """The fields of the structs of one message at one version.

    Args:
        encode: the encoder of that version; None to take all fields that are set.
        message: a whole message that the structs belong to. Its fields are changed for a moment.
    """

    def __init__(self, encode: Encode | None, message: Message) -> None:
        self._encode = encode
        self._message = message
        self._known: dict[type[Message], tuple[str, ...]] = {}

    def of(self, struct: Message) -> tuple[str, ...]:
        """The fields of a struct, in their order."""
        if self._encode is None:
            return tuple(name for name in _named(struct) if hasattr(struct, name))
        known = self._known.get(type(struct))
        if known is None:
            known = tuple(name for name in _named(struct) if self._has(struct, name))
            self._known[type(struct)] = known
        return known

    def _has(self, struct: Message, name: str) -> bool:
        return bool(complaint := self._complaint(struct, name, _UNENCODABLE)) and not any(
            _LACKING in each for each in (complaint, self._complaint(struct, name, _SET))
        )

    def _complaint(self, struct: Message, name: str, value: object) -> str:
        """What the encoder says of a value in place of the field's."""
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
