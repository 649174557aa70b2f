"""Whether a record that failed may be in the log all the same: each error says it."""

from __future__ import annotations

import attrs
import pytest
import trio
from trio.testing import MockClock

from support.network_clients import with_requests
from support.scripted_leaders import AT_ONCE, Answer, Leaders, hang_up, refusal, say_nothing
from trionet import (
    ApiError,
    DeliveryAbortedError,
    DeliveryTimeoutError,
    DisconnectedError,
    RecordTooLargeError,
    SendBatchError,
    TrionetError,
    open_producer,
)
from trionet.client.producer._settings import ProducerSettings
from trionet.protocol import error_codes
from trionet.protocol.messages.produce import BatchIndexAndErrorMessage
from trionet.testing import MemoryNetwork

PLAIN = attrs.evolve(AT_ONCE, idempotence=False)
TEXT = "the record may have been written"

#: After these a leader may have the batch. With ``acks=all`` the last three come, too, when the
#: leader changes, its disk fails, or the topic is deleted while it waits for the other replicas
#: (Kafka: DelayedProduce.tryComplete).
UNCERTAIN = [
    error_codes.REQUEST_TIMED_OUT,
    error_codes.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    error_codes.NOT_LEADER_OR_FOLLOWER,
    error_codes.KAFKA_STORAGE_ERROR,
    error_codes.UNKNOWN_TOPIC_OR_PARTITION,
]
REFUSED = [
    (error_codes.TOPIC_AUTHORIZATION_FAILED, ApiError),
    (error_codes.INVALID_RECORD, ApiError),
    (error_codes.MESSAGE_TOO_LARGE, RecordTooLargeError),
]


@pytest.fixture(params=[AT_ONCE, PLAIN], ids=["idempotent", "plain"])
def settings(request: pytest.FixtureRequest) -> ProducerSettings:
    assert isinstance(request.param, ProducerSettings)
    return request.param


async def failed(leaders: Leaders, settings: ProducerSettings, *answers: Answer) -> TrionetError:
    """What a record's ``send`` raises when the leader responds so to its attempts."""
    async with leaders.producer(settings) as producer:
        await producer.send("t", b"0")
        leaders.answers = list(answers)
        with pytest.raises(TrionetError) as raised:
            await producer.send("t", b"a")
    return raised.value


@pytest.mark.parametrize(("code", "kind"), REFUSED)
async def test_refusal_of_a_first_attempt_is_certain(
    code: int,
    kind: type[TrionetError],
    settings: ProducerSettings,
    autojump_clock: MockClock,
    leaders: Leaders,
) -> None:
    error = await failed(leaders, settings, refusal(code))

    assert isinstance(error, kind)
    assert not error.may_have_been_written
    assert TEXT not in str(error)


@pytest.mark.parametrize(("code", "kind"), REFUSED)
async def test_refusal_after_a_lost_response_is_not(
    code: int,
    kind: type[TrionetError],
    settings: ProducerSettings,
    autojump_clock: MockClock,
    leaders: Leaders,
) -> None:
    """The first attempt was written, and the topic's settings or ACLs changed before the second."""
    lost = leaders.write_and(hang_up)
    error = await failed(leaders, settings, lost, refusal(code))

    assert [b"0", b"a"] == leaders.values()
    assert isinstance(error, kind)
    assert error.may_have_been_written
    assert TEXT in str(error)


@pytest.mark.parametrize("code", UNCERTAIN, ids=error_codes.name_of)
async def test_refusal_after_a_response_that_says_nothing_definite_is_not(
    code: int, autojump_clock: MockClock, leaders: Leaders
) -> None:
    refused = refusal(error_codes.TOPIC_AUTHORIZATION_FAILED)
    error = await failed(leaders, AT_ONCE, refusal(code), refused)

    assert isinstance(error, ApiError)
    assert error_codes.TOPIC_AUTHORIZATION_FAILED == error.error_code
    assert error.may_have_been_written


async def test_refusal_after_definite_refusals_is_certain(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    again = refusal(error_codes.NOT_ENOUGH_REPLICAS)
    refused = refusal(error_codes.TOPIC_AUTHORIZATION_FAILED)
    error = await failed(leaders, AT_ONCE, again, again, refused)

    assert not error.may_have_been_written


@pytest.mark.parametrize(
    ("answer", "kind", "is_uncertain"),
    [
        (refusal(error_codes.NOT_ENOUGH_REPLICAS), ApiError, False),
        (refusal(error_codes.NOT_ENOUGH_REPLICAS_AFTER_APPEND), ApiError, True),
        (refusal(error_codes.UNKNOWN_SERVER_ERROR), ApiError, True),
        (hang_up, DisconnectedError, True),
    ],
    ids=["not enough replicas", "after append", "unknown error", "connection lost"],
)
async def test_last_attempt_says_it_of_itself(
    answer: Answer,
    kind: type[TrionetError],
    is_uncertain: bool,
    autojump_clock: MockClock,
    leaders: Leaders,
) -> None:
    error = await failed(leaders, attrs.evolve(AT_ONCE, retries=0), answer)

    assert isinstance(error, kind)
    assert is_uncertain == error.may_have_been_written


async def test_records_of_a_refused_batch_say_it_each(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    """KIP-467: the one that was invalid, and those beside it."""
    invalid = BatchIndexAndErrorMessage(batch_index=1, batch_index_error_message="no key")
    refused = refusal(error_codes.INVALID_RECORD, record_errors=[invalid])
    together = attrs.evolve(AT_ONCE, linger_seconds=0.01)
    async with leaders.producer(together) as producer:
        leaders.answers = [leaders.write_and(hang_up), refused]
        with pytest.raises(SendBatchError) as retried:
            await producer.send_batch("t", [b"a", b"b"])
        leaders.answers = [refused]
        with pytest.raises(SendBatchError) as at_once:
            await producer.send_batch("t", [b"c", b"d"])

    assert retried.value.may_have_been_written
    for _, error in retried.value.failures:
        assert TEXT in str(error)
        assert "nothing of it" not in str(error)
    assert not at_once.value.may_have_been_written
    assert "no record of the batch was written" in str(at_once.value.failures[0][1])


async def test_pieces_of_a_batch_that_was_too_large_at_a_later_attempt_may_have_been_written(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    too_large = refusal(error_codes.MESSAGE_TOO_LARGE)
    together = attrs.evolve(PLAIN, linger_seconds=0.01)
    async with leaders.producer(together) as producer:
        leaders.answers = [leaders.write_and(hang_up), too_large, too_large, too_large]
        with pytest.raises(SendBatchError) as raised:
            await producer.send_batch("t", [b"a", b"b"])

    assert [RecordTooLargeError] * 2 == [type(error) for _, error in raised.value.failures]
    assert all(TEXT in str(error) for _, error in raised.value.failures)


@pytest.mark.parametrize(
    ("answer", "is_uncertain"),
    [
        (say_nothing, True),
        (refusal(error_codes.REQUEST_TIMED_OUT), True),
        (refusal(error_codes.NOT_ENOUGH_REPLICAS), False),
    ],
    ids=["under way", "tried again", "definitely refused"],
)
async def test_delivery_timeout_says_whether_a_leader_may_have_the_record(
    answer: Answer,
    is_uncertain: bool,
    autojump_clock: MockClock,
    leaders: Leaders,
) -> None:
    short = attrs.evolve(
        AT_ONCE, delivery_timeout_seconds=5.0, client=with_requests(timeout_seconds=60.0)
    )
    error = await failed(leaders, short, *[answer] * 1000)

    assert isinstance(error, DeliveryTimeoutError)
    assert is_uncertain == error.may_have_been_written
    assert is_uncertain == (TEXT in str(error))


async def test_record_that_never_was_sent_was_not_written(
    autojump_clock: MockClock, network: MemoryNetwork, leaders: Leaders
) -> None:
    """Its partition had no leader until its time was over."""
    short = attrs.evolve(AT_ONCE, delivery_timeout_seconds=5.0)
    async with leaders.producer(short) as producer:
        await producer.send("t", b"0")
        network.kill_host("10.0.0.1")
        await trio.sleep(1)
        with pytest.raises(DeliveryTimeoutError) as raised:
            await producer.send("t", b"a")

    assert not raised.value.may_have_been_written


async def test_end_of_the_producer_says_it_of_what_is_under_way_only(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    """One batch ends the producer: another one is under way, and a third waits behind it."""
    one_each = attrs.evolve(AT_ONCE, batch_bytes=0, client=with_requests(in_flight_max=2))
    fatal = refusal(error_codes.CLUSTER_AUTHORIZATION_FAILED)
    async with leaders.producer(one_each) as producer:
        await producer.send("t", b"0")
        leaders.answers = [fatal, say_nothing]
        deliveries = [producer.send_nowait("t", b"%d" % number) for number in range(3)]
        with pytest.raises(ApiError):
            await producer.flush()
        errors = [delivery.error for delivery in deliveries]

    assert [False, True, False] == [
        isinstance(error, ApiError) and error.may_have_been_written for error in errors
    ]


async def test_end_of_the_block_says_it_of_what_no_leader_refused(
    autojump_clock: MockClock, network: MemoryNetwork, leaders: Leaders
) -> None:
    """Both wait to be sent again: one was refused, of the other one nothing was heard."""
    slow = attrs.evolve(AT_ONCE, client=with_requests(timeout_seconds=1.0))
    errors = []
    async with leaders.listening():
        for answer in (refusal(error_codes.NOT_ENOUGH_REPLICAS), say_nothing):
            with trio.move_on_after(1.05):
                async with open_producer(leaders.address, slow, network=network) as producer:
                    leaders.answers = [answer] * 1000
                    delivery = await producer.enqueue("t", b"a")
                    await trio.sleep_forever()
            errors.append(delivery.error)

    assert [False, True] == [
        isinstance(error, DeliveryAbortedError) and error.may_have_been_written for error in errors
    ]
