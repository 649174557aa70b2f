"""Decode the consumer protocol embedded in group requests: subscriptions and assignments.

The broker passes these bytes on unread. They start with a version, and a reader decodes a newer
version as the newest it knows (Kafka: ConsumerProtocol), so added fields are omitted here.
"""

from __future__ import annotations

from importlib import import_module
from struct import Struct, error
from typing import Final

from trionet.errors import WireFormatError
from trionet.protocol._codec import Encode
from trionet.protocol._wire import Codecs, Message

from ._whole import end_of

SUBSCRIPTION: Final = "subscription"
ASSIGNMENT: Final = "assignment"

#: The fields that embed the protocol if the members of the group are consumers.
EMBEDDED: Final = {
    "JoinGroupRequestProtocol.metadata": SUBSCRIPTION,
    "JoinGroupResponseMember.metadata": SUBSCRIPTION,
    "DescribedGroupMember.member_metadata": SUBSCRIPTION,
    "SyncGroupRequestAssignment.assignment": ASSIGNMENT,
    "SyncGroupResponse.assignment": ASSIGNMENT,
    "DescribedGroupMember.member_assignment": ASSIGNMENT,
}

_VERSION: Final = Struct(">h")


def embedded(what: str, data: bytes) -> tuple[int, Message, Encode] | None:
    """Return the version, the message and its encoder; None if the bytes are not such a message."""
    module = import_module(f"trionet.protocol.messages.consumer_protocol_{what}")
    codecs: Codecs[Message] = module.MESSAGES
    newest = max(codecs)
    try:
        (version,) = _VERSION.unpack_from(data)
        if version < 0:
            return None
        decode, encode = codecs[min(version, newest)]
        message = decode(data, _VERSION.size)
    except (WireFormatError, error):
        return None
    if version <= newest and end_of(decode, data, _VERSION.size) != len(data):
        return None
    return version, message, encode
