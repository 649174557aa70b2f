"""Functions of a test that a broker calls: what they may ask, and where their errors are told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import trionet
from support.calls import batch, fetch_request, produce_request
from trionet import LocalProtocolError
from trionet.protocol import error_codes
from trionet.protocol.messages.fetch import FetchResponse
from trionet.protocol.messages.metadata import MetadataRequest, MetadataResponse
from trionet.testing import (
    BlockingRawPeer,
    Record,
    SeenRequest,
    ThreadedBroker,
    control,
    open_raw_peer,
    raw_peer,
)

METADATA = MetadataRequest(topics=[])
BROKEN_ANSWER = MetadataResponse(cluster_id=5)  # type: ignore[arg-type]  # on purpose


@pytest.fixture
def broker() -> Iterator[ThreadedBroker]:
    with trionet.testing.broker(topics={"t": 1}) as running:
        yield running


@pytest.fixture
def peer(broker: ThreadedBroker) -> Iterator[BlockingRawPeer]:
    with raw_peer(broker.bootstrap_servers, "me") as connected:
        yield connected


def fail(_: SeenRequest) -> Any:
    raise ZeroDivisionError("in the test")


def test_a_condition_may_ask_the_broker(broker: ThreadedBroker, peer: BlockingRawPeer) -> None:
    def has_no_records(_: SeenRequest) -> bool:
        return not broker.records("t") and broker.group("g").state == "Dead"

    fault = broker.faults.fail("Produce", "REQUEST_TIMED_OUT", times=None, when=has_no_records)

    refused = peer.call(produce_request("t", batch(b"a")), 12)
    broker.seed("t", ["b"])
    stored = peer.call(produce_request("t", batch(b"c")), 12)

    codes = [each.responses[0].partition_responses[0].error_code for each in (refused, stored)]
    assert [error_codes.REQUEST_TIMED_OUT, error_codes.NONE] == codes
    assert [b"b", b"c"] == broker.values("t")
    assert 1 == fault.hits


def test_a_condition_may_not_wait_for_the_broker(
    broker: ThreadedBroker, peer: BlockingRawPeer
) -> None:
    def seed(_: SeenRequest) -> list[Record]:
        return broker.seed("t", ["a"])

    fault = broker.faults.fail("Metadata", "REQUEST_TIMED_OUT", when=seed)  # type: ignore[arg-type]
    peer.call(METADATA, 12)

    with pytest.raises(LocalProtocolError, match="in the broker's own thread"):
        fault.remove()


@pytest.mark.parametrize(
    ("body", "error", "text"),
    [
        (fail, ZeroDivisionError, "in the test"),
        (lambda _: "text", TypeError, "invalid response 'text'; expected"),
        (lambda _: FetchResponse(), ValueError, "FetchResponse is not a response of Metadata"),
        (BROKEN_ANSWER, Exception, "int"),
    ],
)
def test_a_body_that_cannot_be_made_is_reported_and_the_request_is_done(
    broker: ThreadedBroker, peer: BlockingRawPeer, body: Any, error: type[Exception], text: str
) -> None:
    fault = broker.faults.respond("Metadata", body, times=None)

    answers = [peer.call(METADATA, 12) for _ in range(2)]

    assert [1, 1] == [len(answer.brokers) for answer in answers]
    assert (1, True) == (fault.hits, fault.is_over)
    with pytest.raises(error, match=text):
        fault.remove()
    fault.remove()  # it is told once


def test_a_condition_that_fails_is_reported_at_the_end_of_its_block_and_the_request_is_done(
    broker: ThreadedBroker, peer: BlockingRawPeer
) -> None:
    def use_one() -> None:
        with broker.faults.fail("Metadata", "REQUEST_TIMED_OUT", when=fail) as fault:
            assert 1 == len(peer.call(METADATA, 12).brokers)
            assert (0, True) == (fault.hits, fault.is_over)

    with pytest.raises(ZeroDivisionError, match="in the test"):
        use_one()


def test_a_condition_that_fails_is_reported_at_the_end_of_the_broker() -> None:
    def use_one() -> None:
        with (
            trionet.testing.broker() as broker,
            raw_peer(broker.bootstrap_servers) as peer,
        ):
            broker.faults.fail("Metadata", "REQUEST_TIMED_OUT", when=fail)
            peer.call(METADATA, 12)
            broker.faults.close("Fetch")  # what was not told is kept among others

    with pytest.raises(ZeroDivisionError, match="in the test"):
        use_one()


def test_an_error_of_the_test_mentions_a_condition_that_failed_before() -> None:
    def use_one() -> None:
        with (
            trionet.testing.broker() as broker,
            raw_peer(broker.bootstrap_servers) as peer,
        ):
            broker.faults.fail("Metadata", "REQUEST_TIMED_OUT", when=fail)
            peer.call(METADATA, 12)
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine") as raised:
        use_one()

    [note] = raised.value.__notes__
    assert "failed earlier: ZeroDivisionError('in the test')" in note


async def test_in_trio_it_is_reported_when_faults_are_removed() -> None:
    async with (
        trionet.open_broker() as broker,
        open_raw_peer(broker.bootstrap_servers) as peer,
    ):
        kit = control(broker)
        kit.faults.fail("Metadata", "REQUEST_TIMED_OUT", when=fail)
        await peer.call(METADATA, 12)

        with pytest.raises(ZeroDivisionError, match="in the test"):
            kit.faults.clear()


def test_a_condition_of_another_fault_does_not_disturb_one(
    broker: ThreadedBroker, peer: BlockingRawPeer
) -> None:
    broken = broker.faults.close("Fetch", when=fail)
    next_one = broker.faults.fail("Fetch", "REQUEST_TIMED_OUT")

    peer.call(fetch_request({"t": {0: 0}}), 12)

    assert (0, 1) == (broken.hits, next_one.hits)
    with pytest.raises(ZeroDivisionError):
        broken.remove()
