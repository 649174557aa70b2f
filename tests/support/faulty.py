"""What tests of faults ask of a broker with a topic ``t``."""

from __future__ import annotations

from support.calls import batch, produce_request
from trionet.protocol.messages.metadata import MetadataRequest
from trionet.testing import BlockingRawPeer

METADATA = MetadataRequest(topics=[])


def produce(peer: BlockingRawPeer, partition: int = 0, value: bytes = b"a") -> int:
    """Write one record; the error code of the answer."""
    answer = peer.call(produce_request("t", {partition: batch(value)}), 12)
    code: int = answer.responses[0].partition_responses[0].error_code
    return code
