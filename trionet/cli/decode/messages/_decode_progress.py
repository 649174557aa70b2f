"""Finds out how far a decoder got in a malformed message.

Decoders do not record their progress, but the traceback of an error holds the local variables: the
incomplete message, its structs and lists, and the position.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType
from typing import Final, NamedTuple

from trionet.protocol._wire import Message

_DECODERS: Final = "trionet.protocol.messages."


class DecodeProgress(NamedTuple):
    """How far a decoder got before it failed.

    Attributes:
        message: the message with the decoded fields; None if unknown.
        pos: the position reached in the bytes; None if unknown.
        after: the path of the last decoded field, such as ``topics[0].name``.
    """

    message: Message | None = None
    pos: int | None = None
    after: str = ""


def decode_progress(error: BaseException) -> DecodeProgress:
    """Return how far the decoder that raised ``error`` got."""
    frames = list(_decoder_frames(error))
    if not frames:
        return DecodeProgress()
    message = frames[0].f_locals.get("message")
    pos = frames[-1].f_locals.get("pos")
    if not isinstance(message, Message):
        return DecodeProgress()
    _attach_unfinished(frames[0], message)
    return DecodeProgress(message, pos if isinstance(pos, int) else None, _last_path(message))


def _decoder_frames(error: BaseException) -> Iterator[FrameType]:
    traceback = error.__traceback__
    while traceback is not None:
        if str(traceback.tb_frame.f_globals.get("__name__")).startswith(_DECODERS):
            yield traceback.tb_frame
        traceback = traceback.tb_next


def _attach_unfinished(frame: FrameType, message: Message) -> None:
    """Append incompletely decoded structs to the lists that should contain them.

    A decoder creates a list before the structs in it, so a struct belongs to the list that
    precedes it among the local variables.
    """
    target: list[object] | None = None
    for value in list(frame.f_locals.values()):
        if isinstance(value, list):
            target = value
        elif isinstance(value, Message) and value is not message and target is not None:
            is_finished = all(hasattr(value, name) for name in value.__slots__)
            if not is_finished and not any(value is item for item in target):
                target.append(value)


def _last_path(struct: Message) -> str:
    names = [name for name in struct.__slots__ if hasattr(struct, name)]
    if not names:
        return ""
    value = getattr(struct, names[-1])
    if isinstance(value, list) and value and isinstance(value[-1], Message):
        inner = _last_path(value[-1])
        return f"{names[-1]}[{len(value) - 1}]{'.' if inner else ''}{inner}"
    return names[-1]
