"""Which topics the members of a consumer group read, as far as their metadata tells."""

from __future__ import annotations

from typing import Final

from ...errors import WireFormatError
from ...protocol.messages.consumer_protocol_subscription import MESSAGES
from ._group import Group

CONSUMER: Final = "consumer"
"""The protocol type of members that speak Kafka's consumer protocol."""

_VERSION_BYTES: Final = 2
# Every version begins like the first one, also those that are newer than what we know.
_decode = MESSAGES[0][0]


def subscribed_topics(group: Group) -> frozenset[str] | None:
    """The topics that the members have subscribed to; None if one of them does not say.

    (Kafka: ClassicGroup.computeSubscribedTopics.)
    """
    if group.protocol_type != CONSUMER or group.protocol_name is None:
        return None if len(group.members) else frozenset()
    topics: set[str] = set()
    for member in group.members:
        metadata = member.protocols.get(group.protocol_name)
        if metadata is None:
            return None
        try:
            topics.update(_decode(metadata, _VERSION_BYTES).topics)
        except WireFormatError:
            return None
    return frozenset(topics)
