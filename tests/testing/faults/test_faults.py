"""What a broker does wrong on demand, seen by those who speak to it.

Faults, records and peers by hand on a network in memory, where waiting costs nothing.

Functions of a test that a broker calls: what they may ask, and where their errors are told.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

import trionet
from support.calls import batch, fetch_request, produce_request
from support.faulty import METADATA, produce
from support.leaks import nothing_left_behind
from trionet import LocalProtocolError
from trionet.broker.run._served_apis import APIS as SERVED
from trionet.protocol import error_codes
from trionet.protocol.messages.fetch import FetchResponse
from trionet.protocol.messages.metadata import MetadataRequest, MetadataResponse
from trionet.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from trionet.protocol.messages.offset_fetch import OffsetFetchRequest
from trionet.protocol.messages.registry import APIS
from trionet.testing import (
    BlockingRawPeer,
    Fault,
    MemoryNetwork,
    RawPeer,
    Record,
    SeenRequest,
    ThreadedBroker,
    control,
    open_raw_peer,
    raw_peer,
    run_virtual,
)

NOT_SERVED = next(iter(APIS.keys() - {api.key for api in SERVED}))


# Which requests, and how often.


def test_a_fault_meets_one_request_and_says_which(
    broker: ThreadedBroker, peer: BlockingRawPeer
) -> None:
    fault = broker.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER")

    codes = [produce(peer), produce(peer)]

    assert [error_codes.NOT_LEADER_OR_FOLLOWER, error_codes.NONE] == codes
    assert (1, True) == (fault.hits, fault.is_over)
    [request] = fault.requests
    assert ("Produce", "me", (("t", 0),)) == (request.api, request.client_id, request.topics)
    assert ("NOT_LEADER_OR_FOLLOWER",) == request.errors


@pytest.mark.parametrize(
    ("meets", "hit"),
    [
        ({"times": 2}, [True, True, False, False]),
        ({"times": None}, [True, True, True, True]),
        ({"skip": 1}, [False, True, False, False]),
        ({"skip": 1, "times": 2}, [False, True, True, False]),
        ({"topic": "t", "partition": 1, "times": None}, [False, True, False, True]),
        ({"topic": "other", "times": None}, [False] * 4),
        ({"client_id": "me"}, [True, False, False, False]),
        ({"client_id": "you"}, [False] * 4),
        ({"node": 1}, [True, False, False, False]),
        ({"node": 2}, [False] * 4),
        ({"connection": "another"}, [False] * 4),
        ({"when": lambda request: request.topics == (("t", 1),)}, [False, True, False, False]),
    ],
    ids=str,
)
def test_a_fault_meets_what_it_is_made_for(
    broker: ThreadedBroker, peer: BlockingRawPeer, meets: Any, hit: list[bool]
) -> None:
    fault = broker.faults.fail("Produce", "REQUEST_TIMED_OUT", **meets)

    codes = [produce(peer, partition) for partition in (0, 1, 0, 1)]

    assert hit == [code != 0 for code in codes]
    assert sum(hit) == fault.hits


def test_a_fault_of_one_connection_leaves_another_alone(
    broker: ThreadedBroker, peer: BlockingRawPeer
) -> None:
    produce(peer)
    [mine] = broker.connections()
    fault = broker.faults.fail(None, "REQUEST_TIMED_OUT", connection=mine.id, times=None)

    with raw_peer(broker.bootstrap_servers) as other:
        assert error_codes.NONE == produce(other)
        assert error_codes.REQUEST_TIMED_OUT == produce(peer)
    assert 1 == fault.hits


def test_faults_are_met_in_the_order_in_which_they_were_added(
    broker: ThreadedBroker, peer: BlockingRawPeer
) -> None:
    broker.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=2)
    broker.faults.fail(0, error_codes.REQUEST_TIMED_OUT)

    codes = [produce(peer) for _ in range(4)]

    assert [6, 6, 7, 0] == codes


def test_a_delay_lets_a_request_go_on_to_the_faults_added_later(
    broker: ThreadedBroker, peer: BlockingRawPeer
) -> None:
    slow = broker.faults.delay("Produce", 0.001, times=None)
    wrong = broker.faults.fail("Produce", "REQUEST_TIMED_OUT")

    codes = [produce(peer), produce(peer)]

    assert [error_codes.REQUEST_TIMED_OUT, error_codes.NONE] == codes
    assert (2, 1) == (slow.hits, wrong.hits)
    first, second = broker.requests("Produce")
    assert ((slow, wrong), wrong) == (first.faults, first.fault)
    assert [first, second] == slow.requests
    assert [first] == wrong.requests


@pytest.mark.parametrize(("topics", "version"), [(None, 9), ([], 0)])
def test_a_fault_of_a_topic_meets_a_request_for_all_topics(
    broker: ThreadedBroker, peer: BlockingRawPeer, topics: Any, version: int
) -> None:
    broker.create_topic("other")
    fault = broker.faults.fail("Metadata", "LEADER_NOT_AVAILABLE", topic="t")

    answer = peer.call(MetadataRequest(topics=topics), version)

    codes = {topic.name: topic.error_code for topic in answer.topics}
    assert {"t": error_codes.LEADER_NOT_AVAILABLE, "other": 0} == codes
    assert 1 == fault.hits


def test_a_fault_of_a_topic_is_in_the_response_of_all_offsets(
    broker: ThreadedBroker, peer: BlockingRawPeer
) -> None:
    committed = [OffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
    names = ("t", "other")
    broker.create_topic("other")
    topics = [OffsetCommitRequestTopic(name=name, partitions=committed) for name in names]
    peer.call(OffsetCommitRequest(group_id="g", topics=topics), 7)
    fault = broker.faults.fail("OffsetFetch", "UNSTABLE_OFFSET_COMMIT", topic="t")

    answer = peer.call(OffsetFetchRequest(group_id="g", topics=None), 7)

    codes = {topic.name: topic.partitions[0].error_code for topic in answer.topics}
    assert {"t": error_codes.UNSTABLE_OFFSET_COMMIT, "other": 0} == codes
    assert 1 == fault.hits


def test_a_fault_ends_with_its_block(broker: ThreadedBroker, peer: BlockingRawPeer) -> None:
    with broker.faults.fail(["Produce", "Fetch"], "REQUEST_TIMED_OUT", times=None) as fault:
        inside = produce(peer)

    assert (error_codes.REQUEST_TIMED_OUT, error_codes.NONE) == (inside, produce(peer))
    assert (1, True) == (fault.hits, fault.is_over)


def test_an_error_may_have_the_name_that_it_had_before(
    broker: ThreadedBroker, peer: BlockingRawPeer
) -> None:
    broker.faults.fail("Produce", "NOT_LEADER_FOR_PARTITION")

    assert error_codes.NOT_LEADER_OR_FOLLOWER == produce(peer)


def test_all_faults_can_be_removed(broker: ThreadedBroker, peer: BlockingRawPeer) -> None:
    broker.faults.fail("Produce", "REQUEST_TIMED_OUT", times=None)
    broker.faults.close("Fetch")

    broker.faults.clear()

    assert [] == broker.faults.active
    assert error_codes.NONE == produce(peer)


@pytest.mark.parametrize(
    ("tell", "error", "text"),
    [
        (lambda f: f.fail("Prduce", 7), ValueError, "the closest match is Produce"),
        (lambda f: f.fail(99, 7), ValueError, "unknown API key 99"),
        (lambda f: f.fail(True, 7), ValueError, "unknown API key True"),
        (lambda f: f.fail("Produce", True), ValueError, "unknown error code True"),
        (lambda f: f.fail("Produce", 7, topic="t", partition=True), TypeError, "must be int"),
        (lambda f: f.fail("Produce", 7, node=True), TypeError, "node must be int, not bool"),
        (lambda f: f.cut("Produce", at=True), ValueError, "invalid at=True"),
        (lambda f: f.fail("Produce", "NOT_LEADER"), ValueError, "the closest match is NOT_LEADER_"),
        (lambda f: f.fail("Produce", 0), ValueError, "unknown error code 0"),
        (lambda f: f.fail(NOT_SERVED, 7), ValueError, "not supported by this broker"),
        (lambda f: f.fail("SaslHandshake", 7), ValueError, "part of authentication"),
        (lambda f: f.fail("Produce", 7, partition=1), ValueError, "requires a topic"),
        (lambda f: f.fail("Produce", 7, topik="t"), TypeError, "topik.*allowed: topic, "),
        (lambda f: f.fail("Produce", 7, times=0), ValueError, "times must be 1 or more"),
        (lambda f: f.delay("Produce", -1), ValueError, "0 or more"),
        (lambda f: f.fail("Produce", 7, times=1.5), TypeError, "times=1.5.*or None for all"),
        (lambda f: f.fail("Produce", 7, times=True), TypeError, "times=True"),
        (lambda f: f.fail("Produce", 7, skip=None), TypeError, "skip=None.*0 or more"),
        (lambda f: f.delay("Produce", "1"), TypeError, "delay='1'.*seconds"),
        (lambda f: f.delay("Produce", float("nan")), TypeError, "delay=nan"),
        (lambda f: f.fail("Produce", 7, when="x"), TypeError, "when='x'.*a function"),
        (lambda f: f.answer("Produce", None), TypeError, "invalid response None"),
        (lambda f: f.fail("Produce", "ZZZZ"), ValueError, "unknown error 'ZZZZ'$"),
        (lambda f: f.cut("Produce", at=1.5), ValueError, "a fraction from 0.0 to 1.0"),
        (lambda f: f.throttle("Fetch", -1), ValueError, "throttle_ms=-1"),
        (lambda f: f.answer("Fetch", MetadataResponse()), ValueError, "not a response of Fetch"),
    ],
)
def test_a_fault_that_could_never_be_met_is_refused(
    broker: ThreadedBroker, tell: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        tell(broker.faults)

    assert [] == broker.faults.active


# What it does with them.


def test_a_request_gets_the_response_that_the_test_says(
    broker: ThreadedBroker, peer: BlockingRawPeer
) -> None:
    broker.faults.respond("Metadata", MetadataResponse(cluster_id="mine"))
    broker.faults.respond(
        "Metadata", lambda request: MetadataResponse(cluster_id=request.client_id)
    )
    broker.faults.respond("Metadata", b"\x00garbage")

    answers = [peer.call(METADATA, 12).cluster_id for _ in range(2)]
    peer.send(METADATA, 12)
    raw = peer.receive_frame()

    assert ["mine", "me"] == answers
    assert raw.endswith(b"\x00garbage")


def test_a_request_that_is_held_goes_on_when_the_fault_is_removed(
    broker: ThreadedBroker, peer: BlockingRawPeer
) -> None:
    fault = broker.faults.hold("Produce")
    peer.send(produce_request("t", batch(b"a")), 12)
    [request] = broker.wait_for_requests("Produce")
    with raw_peer(broker.bootstrap_servers) as other:
        assert 1 == len(other.call(METADATA, 12).brokers)

    before = (broker.values("t"), request.errors)
    fault.remove()

    assert 0 == peer.receive().responses[0].partition_responses[0].error_code
    assert ([], None) == before
    assert [b"a"] == broker.values("t")


def test_a_fault_that_is_removed_as_it_takes_a_request_does_not_hold_it(
    broker: ThreadedBroker, peer: BlockingRawPeer
) -> None:
    def remove(_: object) -> bool:
        fault.remove_now()
        return True

    fault = broker.faults.hold("Metadata", when=remove)

    assert 1 == len(peer.call(METADATA, 12).brokers)
    assert 1 == fault.hits


def test_held_requests_outlive_their_connections(broker: ThreadedBroker) -> None:
    # As if there were so many delayed requests that those without a client are let go.
    broker._call(lambda: setattr(broker._broker._state.purgatory, "_sweep_at", 1))
    fault = broker.faults.hold("Produce", times=None)
    for number in range(3):
        with raw_peer(broker.bootstrap_servers) as leaving:
            leaving.send(produce_request("t", batch(b"%d" % number)), 12)
            broker.wait_for_requests("Produce", number + 1)
            broker.faults.reset_connections()
    before = broker.values("t")
    fault.remove()

    assert {b"0", b"1", b"2"} == {record.value for record in broker.wait_for_records("t", 3)}
    assert [] == before


def test_held_requests_hold_no_handler(broker: ThreadedBroker) -> None:
    fault = broker.faults.hold("Metadata", times=None)
    handlers = 8  # num.io.threads
    peers = []
    try:
        for _ in range(2 * handlers):
            connecting = raw_peer(broker.bootstrap_servers)
            peers.append((connecting, connecting.__enter__()))
        for _, each in peers:
            each.send(METADATA, 12)
        broker.wait_for_requests("Metadata", 2 * handlers)

        with raw_peer(broker.bootstrap_servers) as other:
            assert error_codes.NONE == produce(other)
        fault.remove()
        for _, each in peers:
            assert 1 == len(each.receive().brokers)
    finally:
        for connecting, _ in peers:
            connecting.__exit__(None, None, None)


async def test_a_delayed_request_is_done_when_its_time_has_come(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with (
        trionet.open_broker() as broker,
        trionet.testing.open_raw_peer(broker.bootstrap_servers) as peer,
    ):
        control = trionet.testing.control(broker)
        control.faults.delay("Metadata", 30.0)
        begun = trio.current_time()

        answer = await peer.call(METADATA, 12)

        assert 1 == len(answer.brokers)
        assert 30 <= trio.current_time() - begun < 31


@pytest.mark.slow
@pytest.mark.parametrize("executed", [False, True])
def test_a_request_that_is_swallowed_has_no_response_until_the_broker_ends(executed: bool) -> None:
    with (
        nothing_left_behind(),
        trionet.testing.broker(topics={"t": 1}) as broker,
        raw_peer(broker.bootstrap_servers) as peer,
    ):
        broker.faults.swallow("Produce", executed=executed)
        peer.send(produce_request("t", batch(b"a")), 12)
        [request] = broker.wait_for_requests("Produce")
        if executed:
            broker.wait_for_records("t")

        peer.send(METADATA, 12)  # after it, nothing is read any more
        with raw_peer(broker.bootstrap_servers) as other:
            assert error_codes.NONE == produce(other)

        assert request.errors is None
        assert [] == broker.requests("Metadata")
        assert [b"a"] * (1 + executed) == broker.values("t")


def test_a_broker_with_a_swallowed_request_stops_without_waiting_for_its_response() -> None:
    with trionet.testing.broker() as broker:
        broker.faults.swallow("Metadata")
        with raw_peer(broker.bootstrap_servers) as peer:
            peer.send(METADATA, 12)
            broker.wait_for_requests("Metadata")

            purgatory = broker._broker._state.purgatory
            broker._call(purgatory.close)  # what a stop begins with
            broker._call(purgatory.complete_all)

            assert b"" == peer.receive_to_end()


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("executed", [False, True])
def test_the_connection_is_closed_in_place_of_a_response(
    broker: ThreadedBroker, peer: BlockingRawPeer, executed: bool, reset: bool
) -> None:
    broker.faults.close("Produce", executed=executed, reset=reset)

    peer.send(produce_request("t", batch(b"a")), 12)

    if reset:
        with pytest.raises(ConnectionResetError):
            peer.socket.recv(1)
    else:
        assert b"" == peer.socket.recv(1)
    assert ([b"a"] if executed else []) == broker.values("t")


def test_a_connection_is_closed_though_the_response_would_have_come_later(
    broker: ThreadedBroker, peer: BlockingRawPeer
) -> None:
    broker.faults.close("Fetch", executed=True)
    peer.send(fetch_request({"t": {0: 0}}, max_wait_ms=2**31 - 1), 12)
    broker.wait_for_requests("Fetch")

    broker.seed("t", [{"value": "a", "partition": 0}])

    assert b"" == peer.receive_to_end()


def test_a_produce_without_response_that_waits_for_the_disk_ends_as_the_fault_says(
    tmp_path: Path,
) -> None:
    topics = {"t": {"flush_messages": 1}}
    with (
        trionet.testing.broker(log_dir=str(tmp_path), topics=topics) as broker,
        raw_peer(broker.bootstrap_servers) as peer,
    ):
        broker.faults.close("Produce", executed=True)

        peer.send_unanswered(produce_request("t", batch(b"a"), acks=0), 12)

        assert b"" == peer.receive_to_end()
        assert [b"a"] == broker.values("t")


def test_errors_in_responses_are_counted_as_without_a_test(
    broker: ThreadedBroker, peer: BlockingRawPeer
) -> None:
    counts = broker._broker._apis.counts
    produce(peer)
    peer.call(produce_request("missing", batch(b"a")), 12)
    broker.faults.fail("Produce", "REQUEST_TIMED_OUT")
    produce(peer)

    errors = {name: count for (api, name), count in counts.errors().items() if api == "Produce"}

    assert {"NONE": 1, "UNKNOWN_TOPIC_OR_PARTITION": 1, "REQUEST_TIMED_OUT": 1} == errors


@pytest.mark.parametrize(("at", "part"), [(6, None), (0.5, 0.5), (0, None), (10**6, 1.0)])
def test_a_response_is_cut_in_the_middle_of_its_frame(
    broker: ThreadedBroker, peer: BlockingRawPeer, at: float, part: float | None
) -> None:
    broker.seed("t", [{"value": "a" * 100_000, "partition": 0}])
    with raw_peer(broker.bootstrap_servers) as other:
        other.send(fetch_request({"t": {0: 0}}), 12)
        whole = 4 + len(other.receive_frame())
    broker.faults.cut("Fetch", at=at)

    peer.send(fetch_request({"t": {0: 0}}), 12)
    received = peer.receive_to_end()

    assert (max(1, at) if part is None else int(part * whole)) == len(received)
    assert (whole - 4).to_bytes(4, "big").startswith(received[:4])


def test_a_client_is_asked_to_wait(broker: ThreadedBroker, peer: BlockingRawPeer) -> None:
    fault = broker.faults.throttle("Metadata", 4321)

    answers = [peer.call(METADATA, 12).throttle_time_ms for _ in range(2)]

    assert [4321, 0] == answers
    assert 1 == fault.hits


async def test_a_client_that_is_asked_to_wait_is_not_read_for_as_long(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with (
        trionet.open_broker() as broker,
        trionet.testing.open_raw_peer(broker.bootstrap_servers) as peer,
    ):
        control = trionet.testing.control(broker)
        control.faults.throttle("Metadata", 5000, mute=True)
        begun = trio.current_time()
        throttled = await peer.call(METADATA, 12)
        answered_after = trio.current_time() - begun

        await peer.call(METADATA, 12)

        assert 5000 == throttled.throttle_time_ms
        assert answered_after < 1
        assert 5 <= trio.current_time() - begun < 6


def test_what_a_fault_is_can_be_read(broker: ThreadedBroker, peer: BlockingRawPeer) -> None:
    fault: Fault = broker.faults.fail(["Produce"], 7, topic="t", times=2)
    produce(peer)

    assert "<Fault Produce, topic t: fail with REQUEST_TIMED_OUT; 1 of 2 hits>" == repr(fault)
    assert "fault: Produce, topic t: fail with REQUEST_TIMED_OUT" in broker.log()


def test_a_peer_by_hand_and_faults_work_on_a_network_in_memory() -> None:
    async def main(network: MemoryNetwork) -> None:
        async with trionet.open_broker(network=network) as broker:
            kit = control(broker)
            await kit.create_topic("t")
            kit.faults.delay("Produce", 500)
            kit.faults.throttle("Metadata", 60_000, mute=True)
            began = trio.current_time()
            async with await network.open_stream(broker.bootstrap_servers) as stream:
                peer = RawPeer(stream)
                await peer.call(produce_request("t", batch(b"a")), 12)
                delayed = trio.current_time() - began
                await peer.call(METADATA, 12)
                await peer.call(METADATA, 12)

                assert [b"a"] == kit.values("t")
                assert 500 <= delayed < 501
                assert 560 <= trio.current_time() - began < 561

    run_virtual(main)


@pytest.mark.parametrize("reset", [False, True])
def test_a_connection_in_memory_is_closed_or_reset(reset: bool) -> None:
    ends: list[str] = []

    async def main(network: MemoryNetwork) -> None:
        async with trionet.open_broker(network=network) as broker:
            kit = control(broker)
            kit.faults.close("Metadata", reset=reset)
            async with await network.open_stream(broker.bootstrap_servers) as stream:
                peer = RawPeer(stream)
                await peer.send(METADATA, 12)
                assert b"" == await peer.receive_to_end()
            async with await network.open_stream(broker.bootstrap_servers) as stream:
                peer = RawPeer(stream)
                await peer.call(METADATA, 12)
                assert 1 == kit.faults.reset_connections()
                assert b"" == await peer.receive_to_end()

    run_virtual(main, trace=lambda event: ends.append(event.what))

    assert 1 + reset == ends.count("reset")


def test_a_response_in_memory_is_cut() -> None:
    async def main(network: MemoryNetwork) -> None:
        async with trionet.open_broker(network=network) as broker:
            control(broker).faults.cut("Metadata", at=10)
            async with await network.open_stream(broker.bootstrap_servers) as stream:
                peer = RawPeer(stream)
                await peer.send(METADATA, 12)
                assert 10 == len(await peer.receive_to_end())

    run_virtual(main)


BROKEN_ANSWER = MetadataResponse(cluster_id=5)  # type: ignore[arg-type]  # on purpose


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
