"""What becomes of records, against leaders that respond as a test says, in virtual time."""

from __future__ import annotations

import logging
from itertools import pairwise
from typing import Any, cast

import attrs
import pytest
import trio
import trio.testing
from trio.testing import MockClock

from support.network_clients import with_requests
from support.scripted_leaders import AT_ONCE, Leaders, hang_up, refusal, say_nothing
from support.scripted_node import Seen
from trionet import ApiError, DisconnectedError, open_producer
from trionet.client.producer._settings import ProducerSettings
from trionet.errors import RecordTooLargeError
from trionet.protocol import error_codes
from trionet.protocol._wire import Message
from trionet.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    ProduceResponse,
)
from trionet.testing import MemoryNetwork

ONE_EACH = attrs.evolve(AT_ONCE, batch_bytes=0)

PLAIN = attrs.evolve(AT_ONCE, idempotence=False)

T0 = ("t", 0)


async def test_record_is_sent_and_its_offset_is_reported(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    """D1: one request is in flight until the response is there."""
    async with leaders.producer(AT_ONCE) as producer:
        first = await producer.send("t", b"a")
        second = await producer.send("t", b"b")

    assert [("t", 0, 0), ("t", 0, 1)] == [first[:3], second[:3]]
    assert [b"a", b"b"] == leaders.values()


async def test_lost_connection_is_made_again_and_the_batch_sent_again(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    """D4: with one retry a second loss is the end."""
    leaders.answers = [hang_up, leaders.write, hang_up, hang_up]
    settings = attrs.evolve(PLAIN, retries=1)
    async with leaders.producer(settings) as producer:
        assert 0 == (await producer.send("t", b"a")).offset
        with pytest.raises(DisconnectedError):
            await producer.send("t", b"b")

    assert [b"a"] == leaders.values()


async def test_with_one_in_flight_a_partition_is_muted_until_the_response(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    """D5, K15: nor is the second sent to a new leader while the first is under way."""
    leaders = Leaders(network, nodes=2)
    requests = with_requests(in_flight_max=1)
    times = attrs.evolve(requests.metadata, max_age_seconds=1.0)
    client = attrs.evolve(requests, metadata=times)
    settings = attrs.evolve(ONE_EACH, idempotence=False, client=client)
    async with leaders.producer(settings) as producer:
        await producer.send("t", b"0")
        leaders.answers = [say_nothing]
        first = await producer.enqueue("t", b"a")
        second = await producer.enqueue("t", b"b")
        leaders.leaders[T0] = (2, 2)
        await trio.sleep(10)  # the new leader is known by now

        assert [b"0", b"a"] == [value for each in leaders.batches for value in each.values]
        await first
        await second
    assert [b"0", b"a", b"b"] == leaders.values()
    assert [1, 1, 2, 2] == [each.node for each in leaders.batches]


async def test_bootstrap_server_is_sent_no_records_while_the_leaders_are_unknown(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    """A producer that has lost all brokers begins anew at that server (KIP-899)."""
    leaders = Leaders(network, nodes=2)
    leaders.leaders[T0] = (2, 1)
    bootstrap = leaders.nodes[1]
    describe = bootstrap.replies["Metadata"]
    asked: list[Seen] = []
    settings = attrs.evolve(PLAIN, retries=0)
    async with open_producer(bootstrap.address, settings, network=network) as producer:
        async with leaders.listening():
            await producer.send("t", b"a")
        bootstrap.replies["Metadata"] = asked.append
        await trio.sleep(1)
        async with leaders.listening():
            await trio.sleep(2)
            delivery = await producer.enqueue("t", b"b")
            await trio.sleep(1)
            bootstrap.replies["Metadata"] = describe
            await asked[0].respond(cast(Message, describe(asked[0])))
            await delivery

    assert [(2, [b"a"]), (2, [b"b"])] == [(each.node, each.values) for each in leaders.batches]


async def test_error_that_is_no_passing_one_fails_the_record_at_once(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    """D10: and what comes after it is not held up."""
    leaders.answers = [refusal(error_codes.TOPIC_AUTHORIZATION_FAILED)]
    async with leaders.producer(PLAIN) as producer:
        with pytest.raises(ApiError, match="TOPIC_AUTHORIZATION_FAILED"):
            await producer.send("t", b"a")
        await producer.send("t", b"b")

    assert [[b"a"], [b"b"]] == [each.values for each in leaders.batches]
    assert [b"b"] == leaders.values()


async def test_retry_waits_for_its_backoff(autojump_clock: MockClock, leaders: Leaders) -> None:
    """D17: which doubles with each attempt."""
    leaders.answers = [refusal(error_codes.NOT_ENOUGH_REPLICAS)] * 3
    async with leaders.producer(PLAIN) as producer:
        await producer.send("t", b"a")
    times = [each.at for each in leaders.batches]
    waits = [later - earlier for earlier, later in pairwise(times)]

    assert 4 == len(times)
    for number, wait in enumerate(waits):
        assert 0.1 * 2**number * 0.8 <= wait <= 0.1 * 2**number * 1.2 + 0.001


async def test_retry_waits_for_no_other_partition_of_its_leader(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    """Partition 0 has moved there, but its first batch is still with the old leader, which hangs.

    So its second one has to wait, although it could be sent right away.
    """
    leaders = Leaders(network, nodes=2, topics={"t": 2})
    async with leaders.producer(ONE_EACH) as producer:
        await producer.send("t", b"a", partition=1)
        leaders.answers = [say_nothing]
        held_up = [await producer.enqueue("t", each, partition=0) for each in (b"b", b"c")]
        await trio.testing.wait_all_tasks_blocked()
        leaders.leaders[T0] = (2, 2)
        leaders.answers = [refusal(error_codes.NOT_LEADER_OR_FOLLOWER)]
        await producer.send("t", b"d", partition=1)  # and learn of the new leader
        leaders.answers = [refusal(error_codes.NOT_ENOUGH_REPLICAS)]
        await producer.send("t", b"e", partition=1)

        assert trio.current_time() < 1
        assert not any(each.is_done for each in held_up)
    assert {T0: [b"b", b"c"], ("t", 1): [b"a", b"d", b"e"]} == leaders.log


async def test_new_leader_that_a_response_names_is_sent_to_at_once(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    """D18: without a wait, and without waiting for metadata (KIP-951)."""
    leaders = Leaders(network, nodes=2)
    async with leaders.producer(AT_ONCE) as producer:
        await producer.send("t", b"a")
        leaders.leaders[T0] = (2, 2)
        for node in leaders.nodes.values():
            node.replies["Metadata"] = lambda _: None
        produce = leaders.replier(1)
        leaders.nodes[1].replies["Produce"] = lambda seen: with_endpoint(produce(seen))
        leaders.answers = [
            refusal(
                error_codes.NOT_LEADER_OR_FOLLOWER,
                current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=2),
            )
        ]
        began = trio.current_time()
        await producer.send("t", b"b")

        assert trio.current_time() - began < 0.05
    assert [1, 1, 2] == [each.node for each in leaders.batches]


def with_endpoint(answer: ProduceResponse) -> ProduceResponse:
    answer.node_endpoints = [NodeEndpoint(node_id=2, host="10.0.0.2", port=9092)]
    return answer


async def test_new_leader_that_no_response_names_is_found_by_metadata(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    """D18: after the wait."""
    leaders = Leaders(network, nodes=2)
    async with leaders.producer(AT_ONCE) as producer:
        await producer.send("t", b"a")
        leaders.leaders[T0] = (2, 2)
        await producer.send("t", b"b")

    assert [b"a", b"b"] == leaders.values()
    assert [1, 2] == [leaders.batches[0].node, leaders.batches[-1].node]


async def test_what_was_wrong_with_single_records_is_reported_to_these(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    """D19: and the others hear that they were in bad company (KIP-467)."""
    wrong = [
        BatchIndexAndErrorMessage(batch_index=0, batch_index_error_message="no key"),
        BatchIndexAndErrorMessage(batch_index=2),
    ]
    invalid = error_codes.INVALID_TIMESTAMP
    settings = ProducerSettings(linger_seconds=1.0)
    async with leaders.producer(settings) as producer:
        await producer.send("t", b"0")
        leaders.answers = [
            refusal(invalid, record_errors=wrong, error_message="bad records"),
            refusal(invalid, record_errors=wrong[:1]),
        ]
        several = [await producer.enqueue("t", b"%d" % each) for each in range(3)]
        await producer.flush()
        single = [await producer.enqueue("t", b"%d" % each) for each in range(2)]
        await producer.flush()
        texts = []
        for delivery in [*several, *single]:
            with pytest.raises(ApiError) as caught:
                delivery.result()
            texts.append((caught.value.error_code, str(caught.value)))

    of_record = error_codes.INVALID_RECORD
    company = "the record was in a batch with rejected records; no record of the batch was written"
    others = (of_record, f"t-0: INVALID_RECORD: {company}")
    assert [
        (of_record, "t-0, a record: INVALID_RECORD: no key"),
        others,
        (of_record, "t-0, a record: INVALID_RECORD: bad records"),
        (invalid, "t-0, a record: INVALID_TIMESTAMP: no key"),
        others,
    ] == texts


async def test_record_that_is_too_large_for_its_topic_is_refused(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    """D22: a batch of one cannot be split."""
    leaders.answers = [refusal(error_codes.MESSAGE_TOO_LARGE)]
    async with leaders.producer(AT_ONCE) as producer:
        with pytest.raises(RecordTooLargeError, match=r"max\.message\.bytes"):
            await producer.send("t", b"a")
        await producer.send("t", b"b")


async def test_nothing_is_acknowledged_with_acks_0_but_that_it_left(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    settings = attrs.evolve(PLAIN, acks=0)
    async with leaders.producer(settings) as producer:
        assert -1 == (await producer.send("t", b"a")).offset

    assert [b"a"] == leaders.values()


async def test_idle_topic_leaves_the_metadata_and_comes_back(
    autojump_clock: MockClock,
    network: MemoryNetwork,
) -> None:
    """D7: after the idle time, and with the next record."""
    leaders = Leaders(network, topics={"t": 1, "u": 1})
    settings = attrs.evolve(AT_ONCE, metadata_idle_seconds=400.0)
    async with leaders.producer(settings) as producer:
        await producer.send("t", b"a")
        for _ in range(100):
            await producer.send("u", b"b")
            await trio.sleep(10)
        asked = [each.name for each in leaders.nodes[1].last("Metadata").body.topics]
        assert ["u"] == asked
        await producer.send("t", b"c")
        asked = [each.name for each in leaders.nodes[1].last("Metadata").body.topics]
        assert ["t"] == asked

    assert [b"a", b"c"] == leaders.values()


async def test_errors_of_many_partitions_are_one_warning_per_cause_and_second(
    autojump_clock: MockClock, network: MemoryNetwork, caplog: pytest.LogCaptureFixture
) -> None:
    leaders = Leaders(network, topics={"t": 40})
    errors = error_codes.NOT_LEADER_OR_FOLLOWER, error_codes.NOT_ENOUGH_REPLICAS
    async with leaders.producer(AT_ONCE) as producer:
        await producer.send("t", b"a")
        for _ in range(2):
            leaders.answers = [refusal(code) for code in errors * 20]
            deliveries = [producer.send_nowait("t", b"a", partition=each) for each in range(40)]
            for each in deliveries:
                await each
            await trio.sleep(1)

    retries = [record for record in caplog.records if "; retrying 1 record" in record.message]
    warnings = [each for each in retries if each.levelno >= logging.WARNING]
    assert 4 == len(warnings)
    assert {"NOT_LEADER_OR_FOLLOWER", "NOT_ENOUGH_REPLICAS"} == {
        each.message.split(": ")[1].split(";")[0] for each in warnings
    }


async def test_new_topic_is_asked_for_alone(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    """With those that are known in each request, n new topics would cost n²."""
    topics = [f"t{number}" for number in range(50)]
    leaders = Leaders(network, topics=dict.fromkeys(topics, 1))
    async with leaders.producer(AT_ONCE) as producer:
        for topic in topics:
            await producer.send(topic, b"a")

    bodies = [seen.body for seen in leaders.nodes[1].seen if seen.name == "Metadata"]
    assert [[topic] for topic in topics] == [[each.name for each in body.topics] for body in bodies]


async def test_topic_that_is_being_created_is_asked_for_alone(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    """Brokers first respond that it does not exist, or that it has no leader."""
    leaders = Leaders(network, topics={"t": 1})
    asked: list[list[str]] = []

    def describe(seen: Seen) -> Any:
        names = [each.name for each in seen.body.topics]
        response = known(seen)
        asked.append(names)
        leaders.topics.update(dict.fromkeys(names, 1))
        leaders.leaders.update({(name, 0): (1, 1) for name in names})
        return response

    known = leaders.nodes[1].replies["Metadata"]
    leaders.nodes[1].replies["Metadata"] = describe
    async with leaders.producer(AT_ONCE) as producer:
        for topic in ("t", "u", "v"):
            await producer.send(topic, b"a")

    assert [["t"], ["u"], ["u"], ["v"], ["v"]] == asked


async def test_throttle_times_of_responses_are_counted(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    """D2: those of Produce alone, and a node that asked for silence gets nothing meanwhile."""
    produce = leaders.replier(1)
    times = iter([100, 200, 300])

    def throttled(seen: Seen) -> ProduceResponse:
        answer: ProduceResponse = produce(seen)
        answer.throttle_time_ms = next(times)
        return answer

    leaders.nodes[1].replies["Produce"] = throttled
    async with leaders.producer(AT_ONCE) as producer:
        for value in (b"a", b"b", b"c"):
            await producer.send("t", value)
        told = producer.statistics()

    assert 3 == told["record-send-total"]
    assert 1 == told["records-per-request-avg"]
    assert 200 == told["produce-throttle-time-avg"]
    assert 300 == told["produce-throttle-time-max"]
    assert [0.1, 0.2] == pytest.approx(
        [later.at - each.at for each, later in pairwise(leaders.batches)], abs=0.001
    )


async def test_records_without_a_key_avoid_a_node_that_takes_nothing(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    """D8: what it last took is long ago, though there is always something for it."""
    leaders = Leaders(network, nodes=2, topics={"t": 2})
    settings = attrs.evolve(
        ONE_EACH,
        idempotence=False,
        partitioner_availability_timeout_seconds=1.0,
        client=with_requests(in_flight_max=2),
    )
    async with leaders.producer(settings) as producer:
        for partition in (0, 1):
            await producer.send("t", b"", partition=partition)
        leaders.answers = [say_nothing]
        for _ in range(3):
            _ = await producer.enqueue("t", b"", partition=0)
        await trio.sleep(2)
        for _ in range(3):  # the choice is as old as the last batch
            _ = await producer.enqueue("t", b"")
        placed = [await producer.send("t", b"") for _ in range(20)]

    assert {1} == {each.partition for each in placed}


async def test_partition_that_was_added_is_found_by_who_does_not_wait(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    async with leaders.producer(AT_ONCE) as producer:
        await producer.send("t", b"a")
        leaders.leaders["t", 1] = (1, 1)
        with pytest.raises(trio.WouldBlock):
            _ = producer.send_nowait("t", b"b", partition=1)
        await trio.sleep(2)
        delivery = producer.send_nowait("t", b"b", partition=1)

        assert ("t", 1, 0) == (await delivery)[:3]


async def test_records_do_not_linger_when_there_was_no_room_for_another(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    """K3: also for those who do not wait."""
    settings = ProducerSettings(linger_seconds=60.0, buffer_bytes=20_000)
    async with leaders.producer(settings) as producer:
        delivery = await producer.enqueue("t", bytes(10_000))
        await trio.sleep(1)
        began = trio.current_time()
        with pytest.raises(trio.WouldBlock):
            _ = producer.send_nowait("t", bytes(10_000))
        await delivery
        assert began == pytest.approx(trio.current_time())


async def test_negative_partition_is_refused_at_once(leaders: Leaders) -> None:
    """Also for a topic that is not known: no wait makes it better."""
    async with leaders.producer(AT_ONCE) as producer:
        for call in (producer.send, producer.enqueue):
            with pytest.raises(ValueError, match="partition must be 0 or more, or None, not -1"):
                await call("t", b"a", partition=-1)
        with pytest.raises(ValueError, match="partition must be 0 or more, or None, not -1"):
            await producer.send_batch("t", [b"a"], partition=-1)
