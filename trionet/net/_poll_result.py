"""What one poll of a Selector achieved."""

# Compiled by mypyc.

from __future__ import annotations

from ._channel import Channel
from .wire._framing import Frame


class PollResult:
    """What one poll achieved; valid until the next poll.

    Attributes:
        connected: outgoing connections that were made; their TLS and authentication may still be
            to be done.
        completed_receives: ``(channel, frame)``, at most one per channel.
        completed_sends: channels whose Send was written to its last byte during the poll.
        disconnected: channels that ended since the last poll, each once, except those that their
            owner closed with :meth:`Selector.close`.
    """

    __slots__ = ("completed_receives", "completed_sends", "connected", "disconnected")

    def __init__(self) -> None:
        self.connected: list[Channel] = []
        self.completed_receives: list[tuple[Channel, Frame]] = []
        self.completed_sends: list[Channel] = []
        self.disconnected: list[Channel] = []

    @property
    def is_empty(self) -> bool:
        return not (
            self.completed_receives or self.completed_sends or self.disconnected or self.connected
        )
