"""Decodes the subscriptions and assignments embedded in group requests and responses.

The broker forwards these bytes without decoding them. They start with a version. A version that the
reader does not know is decoded as the newest that it knows (Kafka: ConsumerProtocol), so fields
added by newer versions are omitted.
"""

from __future__ import annotations

from importlib import import_module
from struct import Struct, error
from typing import Final

from trionet.errors import WireFormatError
from trionet.protocol._codec import Encode
from trionet.protocol._wire import Message
from trionet.protocol.unrolling._codecs import Codecs

from ._whole import end_of

SUBSCRIPTION: Final = "subscription"
ASSIGNMENT: Final = "assignment"

#: The fields that contain the consumer protocol if the group members are consumers.
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
    """Return the version, the message and its encoder, or None if the bytes are not a message."""
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
