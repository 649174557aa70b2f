"""What becomes of each batch of a Produce request between a client and its broker. Pure.

A batch is known by the bytes of its records, which stay the same when it is sent again, whatever
number and epoch its producer gives it then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import attrs

from trionet.protocol import error_codes
from trionet.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from trionet.protocol.records._batch import HEADER_SIZE

# Bits before these bytes are not covered by the checksum, or are flags of transactions, which a
# broker checks before it: the error would not be CORRUPT_MESSAGE.
_FIRST_FLIPPED_BYTE = 23


class Arrival(NamedTuple):
    """A batch that has arrived.

    Attributes:
        topic: where it goes.
        partition: where it goes.
        batch: 0 for the first batch that the partition was sent, and so on.
        attempt: how often this one has arrived before.
    """

    topic: str
    partition: int
    batch: int
    attempt: int


@attrs.frozen
class Fate:
    """What is done to one batch; by default it is passed on and so is its response.

    Attributes:
        text: for people.
        delay_seconds: it waits, and everything after it on its connection.
        refused: an error code: it is not passed on, and this is the response.
        flipped_bit: the number of the bit to flip, modulo those of the batch; None for none.
        responded: an error code: it is passed on, and this is the response in place of success.
        is_request_lost: the connection ends in place of the request.
        is_response_lost: the request is passed on, and the connection ends in place of its
            response.
    """

    text: str = "passed"
    delay_seconds: float = 0.0
    refused: int = 0
    flipped_bit: int | None = None
    responded: int = 0
    is_request_lost: bool = False
    is_response_lost: bool = False


PASSED = Fate()
LOST_REQUEST = Fate("request lost", is_request_lost=True)
LOST_RESPONSE = Fate("response lost", is_response_lost=True)

#: What a leader says of a batch that it did not append.
REFUSALS = (
    error_codes.NOT_LEADER_OR_FOLLOWER,
    error_codes.LEADER_NOT_AVAILABLE,
    error_codes.NOT_ENOUGH_REPLICAS,
    error_codes.UNKNOWN_TOPIC_OR_PARTITION,
)
#: What a leader says of a batch that it did append.
AFTER_APPEND = (error_codes.NOT_ENOUGH_REPLICAS_AFTER_APPEND, error_codes.REQUEST_TIMED_OUT)


def refused(code: int) -> Fate:
    return Fate(error_codes.name_of(code), refused=code)


def after_append(code: int) -> Fate:
    return Fate(f"appended, {error_codes.name_of(code)}", responded=code)


def bit_flipped(bit: int) -> Fate:
    return Fate("bit flipped", flipped_bit=bit)


FateOf = Callable[[Arrival], Fate]


class Arrivals:
    """The batches that have arrived at all partitions."""

    def __init__(self) -> None:
        self._batches: dict[tuple[str, int], dict[bytes, Arrival]] = {}

    def of(self, topic: str, partition: int, records: memoryview) -> Arrival:
        """Note that a batch has arrived."""
        batches = self._batches.setdefault((topic, partition), {})
        body = bytes(records[HEADER_SIZE:])
        before = batches.get(body)
        if before is None:
            arrival = Arrival(topic, partition, len(batches), 0)
        else:
            arrival = before._replace(attempt=before.attempt + 1)
        batches[body] = arrival
        return arrival

    def forget(self, topic: str) -> None:
        """Nothing is sent to a topic any more."""
        for place in [each for each in self._batches if each[0] == topic]:
            del self._batches[place]


class FatefulProduce:
    """One Produce request and what becomes of its batches.

    Args:
        request: as it came; it is changed into what is to be passed on.
        topics: names by topic id, for requests that have ids only (KIP-516).
        arrivals: of all connections.
        fate_of: decides.

    Attributes:
        request: without the batches that are refused, and with those that are flipped.
        delay_seconds: before it is passed on.
        is_request_lost: the fate of one batch is that of the whole request.
        is_response_lost: the same of the response.
    """

    def __init__(
        self,
        request: ProduceRequest,
        topics: Mapping[bytes, str],
        arrivals: Arrivals,
        fate_of: FateOf,
    ) -> None:
        self.request = request
        self.delay_seconds = 0.0
        self.is_request_lost = False
        self.is_response_lost = False
        self._topics = topics
        self._codes: dict[tuple[str, bytes, int], int] = {}
        self._refused: list[tuple[str, bytes, int]] = []
        for topic in request.topic_data:
            name = topic.name or topics.get(topic.topic_id, topic.topic_id.hex())
            topic.partition_data = [
                each
                for each in topic.partition_data
                if self._meet(fate_of(_arrival(arrivals, name, each)), topic, each)
            ]
        request.topic_data = [each for each in request.topic_data if each.partition_data]

    @property
    def is_passed_on(self) -> bool:
        return bool(self.request.topic_data) and not self.is_request_lost

    def _meet(self, fate: Fate, topic: TopicProduceData, data: PartitionProduceData) -> bool:
        """Note a batch's fate; whether it is passed on."""
        place = topic.name, topic.topic_id, data.index
        self.delay_seconds += fate.delay_seconds
        self.is_request_lost |= fate.is_request_lost
        self.is_response_lost |= fate.is_response_lost
        if fate.refused:
            self._codes[place] = fate.refused
            self._refused.append(place)
            return False
        if fate.responded:
            self._codes[place] = fate.responded
        if fate.flipped_bit is not None:
            assert data.records is not None
            data.records = _flipped(bytes(data.records), fate.flipped_bit)
        return True

    def response(self, body: ProduceResponse | None) -> ProduceResponse:
        """What the client gets.

        Args:
            body: of the broker; None if nothing was passed on.
        """
        body = ProduceResponse() if body is None else body
        topics = {(each.name, each.topic_id): each for each in body.responses}
        for name, topic_id, index in self._refused:
            if (name, topic_id) not in topics:
                made = TopicProduceResponse(name=name, topic_id=topic_id)
                topics[name, topic_id] = made
                body.responses.append(made)
            refusal = PartitionProduceResponse(index=index)
            topics[name, topic_id].partition_responses.append(refusal)
        for topic in body.responses:
            for each in topic.partition_responses:
                code = self._codes.get((topic.name, topic.topic_id, each.index))
                if code is not None and not each.error_code:
                    each.error_code = code
                    each.base_offset = -1
        return body


def _arrival(arrivals: Arrivals, topic: str, data: PartitionProduceData) -> Arrival:
    assert data.records is not None
    return arrivals.of(topic, data.index, memoryview(data.records))


def _flipped(records: bytes, number: int) -> bytes:
    byte, bit = divmod(number % (8 * (len(records) - _FIRST_FLIPPED_BYTE)), 8)
    changed = bytearray(records)
    changed[_FIRST_FLIPPED_BYTE + byte] ^= 1 << bit
    return bytes(changed)
