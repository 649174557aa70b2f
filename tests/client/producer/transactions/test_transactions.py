"""Transactions against a scripted coordinator: lost requests, cancellation, and what is left."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import attrs
import pytest
import trio
import trio.testing
from trio.testing import MockClock

import trionet
from support.sasl_node import SaslNode
from support.scripted_coordinator import (
    ABORTED,
    COMMITTED,
    ONGOING,
    REQUESTS,
    CoordinatedLeaders,
    Fault,
    lose_request,
    lose_response,
    refuse,
)
from support.scripted_leaders import AT_ONCE, hang_up, refusal, say_nothing
from trionet.client._backoff import ExponentialBackoff
from trionet.client._network_settings import ConnectionTimes
from trionet.client._prepared_transaction import PreparedTransaction
from trionet.client._topic_partition import OffsetAndMetadata, TopicPartition
from trionet.client.consumer.coordinator._classic_member import GroupMetadata
from trionet.client.producer._settings import ProducerSettings
from trionet.protocol import error_codes
from trionet.testing import MemoryNetwork

SETTINGS: ProducerSettings = attrs.evolve(AT_ONCE, transactional_id="x")
GROUP = GroupMetadata("g", -1, "", None)
SOURCE = TopicPartition("in", 0)


@pytest.fixture(params=[1, 2], ids=["TV1", "TV2"])
def leaders(request: pytest.FixtureRequest, network: MemoryNetwork) -> CoordinatedLeaders:
    return CoordinatedLeaders(network, request.param)


async def test_commit_takes_two_round_trips(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    """KIP-890: one for the records, one for the end. TV1 adds the partition before."""
    async with leaders.producer(SETTINGS) as producer:
        async with producer.transaction():
            await producer.send("t", b"a")
        (node,) = leaders.nodes.values()
        before = len(node.seen)
        async with producer.transaction():
            await producer.enqueue_batch("t", [b"b"] * 10)

    added = ["AddPartitionsToTxn"] if leaders.level == 1 else []
    assert [*added, "Produce", "EndTxn"] == node.names()[before:]


async def test_protocol_has_its_versions(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    async with leaders.producer(SETTINGS) as producer, producer.transaction() as tx:
        await producer.send("t", b"a")
        await tx.send_offsets({SOURCE: 5}, GROUP)

    (node,) = leaders.nodes.values()
    versions = {each.name: each.version for each in node.seen}
    old = {"AddPartitionsToTxn": 3, "AddOffsetsToTxn": 4, "TxnOffsetCommit": 4, "EndTxn": 4}
    expected = {"TxnOffsetCommit": 5, "EndTxn": 5} if leaders.level == 2 else old
    assert expected == {name: versions[name] for name in versions if "Txn" in name}
    assert (11 if leaders.level == 1 else 13) == versions["Produce"]
    assert {("g", SOURCE): 5} == leaders.offsets


@pytest.mark.parametrize("fault", [lose_request, lose_response])
@pytest.mark.parametrize("api", REQUESTS)
async def test_request_whose_outcome_is_unknown_is_repeated(
    autojump_clock: MockClock, leaders: CoordinatedLeaders, api: str, fault: Fault
) -> None:
    async with leaders.producer(SETTINGS) as producer:
        for value in (b"a", b"b"):
            leaders.faults[api] = [fault, fault]
            async with producer.transaction() as tx:
                await producer.send("t", value)
                await tx.send_offsets({SOURCE: 5}, GROUP)

    assert [b"a", b"b"] == leaders.values_committed()
    assert {("g", SOURCE): 5} == leaders.offsets


@pytest.mark.parametrize(
    "code",
    [
        error_codes.CONCURRENT_TRANSACTIONS,
        error_codes.COORDINATOR_LOAD_IN_PROGRESS,
        error_codes.COORDINATOR_NOT_AVAILABLE,
        error_codes.NOT_COORDINATOR,
    ],
)
@pytest.mark.parametrize("api", REQUESTS)
async def test_transient_errors_are_retried(
    autojump_clock: MockClock, leaders: CoordinatedLeaders, api: str, code: int
) -> None:
    leaders.faults[api] = [refuse(code)] * 3
    async with leaders.producer(SETTINGS) as producer, producer.transaction() as tx:
        await producer.send("t", b"a")
        await tx.send_offsets({SOURCE: 5}, GROUP)

    assert [b"a"] == leaders.values_committed()
    assert {("g", SOURCE): 5} == leaders.offsets


@pytest.mark.parametrize("level", [1, 2])
async def test_coordinator_may_move(
    autojump_clock: MockClock, network: MemoryNetwork, level: int
) -> None:
    leaders = CoordinatedLeaders(network, level, nodes=2)
    async with leaders.producer(SETTINGS) as producer:
        async with producer.transaction():
            await producer.send("t", b"a")
            leaders.coordinator = 1
        async with producer.transaction():
            await producer.send("t", b"b")
            leaders.coordinator = 2

    assert [b"a", b"b"] == leaders.values_committed()


async def test_unfinished_transaction_delays_the_next_one(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    """The coordinator responds to a commit before all of its markers are written."""
    async with leaders.producer(SETTINGS) as producer:
        for value in (b"a", b"b"):
            async with producer.transaction():
                leaders.unfinished = 3
                await producer.send("t", value)

    assert [b"a", b"b"] == leaders.values_committed()


async def test_new_epoch_begins_with_sequence_0(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    """With TV2, every transaction has an epoch of its own."""
    async with leaders.producer(SETTINGS) as producer:
        for value in (b"a", b"b"):
            async with producer.transaction():
                await producer.send("t", value)

    assert ([(0, 0), (1, 0)] if leaders.level == 2 else [(0, 0), (0, 1)]) == leaders.numbers()


async def test_transaction_without_records_has_no_requests(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    async with leaders.producer(SETTINGS) as producer:
        async with producer.transaction():
            pass
        await producer.begin_transaction()
        await producer.abort_transaction()

    assert ["FindCoordinator", "InitProducerId"] == leaders.requests


async def test_abort_drops_what_is_queued(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    async with leaders.producer(attrs.evolve(SETTINGS, linger_seconds=5.0)) as producer:
        await producer.begin_transaction()
        delivery = await producer.enqueue("t", b"a")
        await producer.abort_transaction()
        with pytest.raises(trionet.DeliveryAbortedError, match="the transaction was aborted"):
            await delivery
        async with producer.transaction():
            delivery = await producer.enqueue("t", b"b")

    assert 0 == delivery.result().offset
    assert [b"b"] == leaders.values()


async def test_abort_without_a_transaction_does_nothing(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    async with leaders.producer(SETTINGS) as producer:
        await producer.abort_transaction()
        async with producer.transaction() as tx:
            await producer.send("t", b"a")
            await producer.abort_transaction()
            with pytest.raises(trionet.LocalProtocolError, match="has ended"):
                await tx.send_offsets({SOURCE: 5}, GROUP)
        await producer.abort_transaction()

    assert [] == leaders.values_committed()
    assert ABORTED == leaders.state


@pytest.mark.parametrize(
    "code",
    [
        error_codes.INVALID_PRODUCER_EPOCH,
        error_codes.INVALID_PRODUCER_ID_MAPPING,
        error_codes.INVALID_TXN_STATE,
        error_codes.OUT_OF_ORDER_SEQUENCE_NUMBER,
        error_codes.TOPIC_AUTHORIZATION_FAILED,
        error_codes.TRANSACTION_ABORTABLE,
        error_codes.UNKNOWN_PRODUCER_ID,
    ],
)
async def test_rejected_batch_makes_the_transaction_abortable(
    autojump_clock: MockClock, leaders: CoordinatedLeaders, code: int
) -> None:
    """KIP-1050: the next transaction may succeed, and has another epoch."""
    async with leaders.producer(SETTINGS) as producer:
        await producer.begin_transaction()
        leaders.answers = [refusal(code)]
        delivery = await producer.enqueue("t", b"a")
        with pytest.raises(trionet.TransactionAbortableError) as caught:
            await producer.commit_transaction()
        with pytest.raises(trionet.TransactionAbortableError):
            await producer.send("t", b"b")
        await producer.abort_transaction()
        async with producer.transaction():
            await producer.send("t", b"c")

    if code == error_codes.TOPIC_AUTHORIZATION_FAILED:  # which is about the record
        assert delivery.error is caught.value.__cause__
    else:
        assert isinstance(delivery.error, trionet.TransactionAbortableError)
    cause = caught.value.__cause__
    assert isinstance(cause, trionet.ApiError)
    assert code == cause.error_code
    assert [b"c"] == leaders.values_committed()
    assert [(0, 0), (1, 0)] == leaders.numbers()


@pytest.mark.parametrize("is_awaited", [True, False], ids=["send", "enqueue"])
async def test_block_of_a_fenced_producer_says_so(
    autojump_clock: MockClock, leaders: CoordinatedLeaders, is_awaited: bool
) -> None:
    """The leader only knows a newer epoch; to begin again would fence the newer producer."""

    async def transact(producer: trionet.Producer) -> None:
        async with producer.transaction():
            await producer.send("t", b"a")
            leaders.replace_producer()
            if not is_awaited:
                _ = await producer.enqueue("t", b"b")
                return
            with pytest.raises(
                trionet.TransactionAbortableError, match="INVALID_PRODUCER_EPOCH"
            ) as caught:
                await producer.send("t", b"b")
            raise caught.value

    async with leaders.producer(SETTINGS) as producer:
        with pytest.raises(trionet.ProducerFencedError, match="'x'") as caught:
            await transact(producer)
        assert isinstance(caught.value.__context__, trionet.TransactionAbortableError)
        with pytest.raises(trionet.ProducerFencedError):
            await producer.begin_transaction()


async def test_fenced_block_is_the_last_to_say_so(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    """The end of the producer raises only what nothing has raised before."""

    async def transact(producer: trionet.Producer) -> None:
        async with producer.transaction():
            leaders.answers = [refusal(error_codes.PRODUCER_FENCED)]
            await producer.send("t", b"a")

    async with leaders.producer(SETTINGS) as producer:
        with pytest.raises(trionet.ProducerFencedError, match="'x'"):
            await transact(producer)


async def test_request_of_the_transaction_may_take_the_last_place_of_a_connection(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    """With TV1: a partition is added just when records of another one could be sent."""
    leaders = CoordinatedLeaders(network, 1, topics={"t": 2})
    requests = attrs.evolve(SETTINGS.client.requests, in_flight_max=1)
    client = attrs.evolve(SETTINGS.client, requests=requests)
    settings = attrs.evolve(SETTINGS, client=client, linger_seconds=0.05, batch_bytes=100)
    async with leaders.producer(settings) as producer, producer.transaction():
        await producer.send("t", b"a", partition=0)
        _ = await producer.enqueue("t", b"b", partition=0)
        # It lingers, and would go with the next batch, which does not: that is full.
        _ = await producer.enqueue("t", bytes(1000), partition=1)

    assert {("t", 0): [b"a", b"b"], ("t", 1): [bytes(1000)]} == leaders.committed


async def test_send_batch_fails_with_its_transaction(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    """SendBatchError is for records that are rejected themselves."""
    async with leaders.producer(SETTINGS) as producer:
        for code, error in (
            (error_codes.INVALID_PRODUCER_EPOCH, trionet.TransactionAbortableError),
            (error_codes.INVALID_RECORD, trionet.SendBatchError),
        ):
            await producer.begin_transaction()
            leaders.answers = [refusal(code)]
            with pytest.raises(error):
                await producer.send_batch("t", [b"a", b"b"])
            await producer.abort_transaction()


async def test_leader_that_knows_the_newer_producer_fences_at_once(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    async with leaders.producer(SETTINGS) as producer:
        await producer.begin_transaction()
        leaders.answers = [refusal(error_codes.PRODUCER_FENCED)]
        delivery = await producer.enqueue("t", b"a")
        for call in (
            producer.commit_transaction,
            partial(producer.send, "t", b"b"),
            producer.abort_transaction,
            producer.begin_transaction,
        ):
            with pytest.raises(trionet.ProducerFencedError, match="'x'"):
                await call()
        assert isinstance(delivery.error, trionet.ProducerFencedError)


async def test_error_of_the_users_own_is_not_replaced(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    async def transact(producer: trionet.Producer) -> None:
        async with producer.transaction():
            await producer.send("t", b"a")
            leaders.replace_producer()
            raise KeyError

    async with leaders.producer(SETTINGS) as producer:
        with pytest.raises(KeyError):
            await transact(producer)
        with pytest.raises(trionet.ProducerFencedError):
            await producer.begin_transaction()


async def test_batch_that_expires_makes_the_transaction_abortable(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    settings = attrs.evolve(SETTINGS, delivery_timeout_seconds=30.0)
    async with leaders.producer(settings) as producer:
        await producer.begin_transaction()
        leaders.answers = [refusal(error_codes.NOT_ENOUGH_REPLICAS)] * 1000
        delivery = await producer.enqueue("t", b"a")
        with pytest.raises(trionet.TransactionAbortableError, match=r"delivery\.timeout\.ms"):
            await producer.commit_transaction()
        leaders.answers = []
        await producer.abort_transaction()
        async with producer.transaction():
            await producer.send("t", b"b")

    assert isinstance(delivery.error, trionet.DeliveryTimeoutError)
    assert [b"b"] == leaders.values_committed()


async def test_record_that_is_dropped_with_its_transaction_fails_at_once(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    """Also if the task that waits for it runs the sender, which has nothing else to wait for."""
    leaders = CoordinatedLeaders(network, topics={"t": 2})
    client = attrs.evolve(
        SETTINGS.client, requests=attrs.evolve(SETTINGS.client.requests, in_flight_max=1)
    )
    async with leaders.producer(attrs.evolve(SETTINGS, client=client)) as producer:
        await producer.begin_transaction()
        for number in range(20):  # in the end this task runs the sender by itself
            await producer.send("t", b"a", partition=number % 2)
        began = trio.current_time()
        leaders.answers = [refusal(error_codes.TRANSACTION_ABORTABLE)]
        _ = await producer.enqueue("t", b"b", partition=0)
        with pytest.raises(trionet.TransactionAbortableError):
            await producer.send("t", b"c", partition=1)

        assert began == trio.current_time()


async def test_batch_whose_response_is_lost_is_not_written_twice(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    async with leaders.producer(SETTINGS) as producer:
        async with producer.transaction():
            leaders.answers = [leaders.write_and(hang_up)]
            await producer.send("t", b"a")
        async with producer.transaction():
            await producer.send("t", b"b")

    assert [b"a", b"b"] == leaders.values_committed()


@pytest.mark.parametrize("api", ["InitProducerId", "AddPartitionsToTxn", "EndTxn"])
async def test_fenced_producer_is_finished(
    autojump_clock: MockClock, leaders: CoordinatedLeaders, api: str
) -> None:
    leaders.faults[api] = [refuse(error_codes.PRODUCER_FENCED)]

    async def transact(producer: trionet.Producer) -> None:
        async with producer.transaction():
            await producer.send("t", b"a")

    async with leaders.producer(SETTINGS) as producer:
        if api == "AddPartitionsToTxn" and leaders.level == 2:
            return
        with pytest.raises(trionet.ProducerFencedError, match="'x'"):
            await transact(producer)
        with pytest.raises(trionet.ProducerFencedError):
            await producer.begin_transaction()
    assert [] == leaders.values_committed()


async def test_transaction_that_has_timed_out_is_aborted(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    """TV1 cannot distinguish the epoch of the coordinator from that of another producer."""
    async with leaders.producer(SETTINGS) as producer:
        await producer.begin_transaction()
        await producer.send("t", b"a")
        leaders.time_out()
        if leaders.level == 1:
            with pytest.raises(trionet.ProducerFencedError):
                await producer.commit_transaction()
            return
        with pytest.raises(trionet.TransactionAbortableError):
            await producer.commit_transaction()
        await producer.abort_transaction()
        async with producer.transaction():
            await producer.send("t", b"b")

    assert [b"b"] == leaders.values_committed()


async def test_commit_without_response_has_an_unknown_outcome_until_there_is_one(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    """The next transaction waits for it; meanwhile the producer repeats the request."""
    settings = attrs.evolve(SETTINGS, max_block_seconds=10.0)
    async with leaders.producer(settings) as producer:
        await producer.begin_transaction()
        await producer.send("t", b"a")
        leaders.faults["EndTxn"] = [lose_request] * 1000
        with pytest.raises(trionet.TransactionOutcomeUnknownError, match=r"max\.block\.ms"):
            await producer.commit_transaction()
        with pytest.raises(trionet.CallTimedOutError, match="the last transaction"):
            await producer.begin_transaction()
        leaders.faults.clear()
        async with producer.transaction():
            await producer.send("t", b"b")

    assert [b"a", b"b"] == leaders.values_committed()


@pytest.mark.parametrize("seconds", [0, 20])
async def test_commit_in_doubt_may_be_repeated_to_learn_its_outcome(
    autojump_clock: MockClock, leaders: CoordinatedLeaders, seconds: float
) -> None:
    """As in Kafka. An abort only waits for it: the commit has been sent."""
    settings = attrs.evolve(SETTINGS, max_block_seconds=10.0)
    async with leaders.producer(settings) as producer:
        await producer.begin_transaction()
        await producer.send("t", b"a")
        leaders.faults["EndTxn"] = [lose_request] * 1000
        for _ in range(2):
            with pytest.raises(trionet.TransactionOutcomeUnknownError):
                await producer.commit_transaction()
        leaders.faults.clear()
        await trio.sleep(seconds)
        await producer.abort_transaction()
        with trio.testing.assert_checkpoints():
            await producer.commit_transaction()
        assert [b"a"] == leaders.values_committed()

        await producer.begin_transaction()
        await producer.abort_transaction()
        with pytest.raises(trionet.LocalProtocolError, match="no transaction"):
            await producer.commit_transaction()


@pytest.mark.parametrize("seconds", [0, 20])
@pytest.mark.parametrize("call", ["commit", "abort", "begin"])
async def test_commit_in_doubt_may_turn_out_to_be_an_abort(
    autojump_clock: MockClock, network: MemoryNetwork, call: str, seconds: float
) -> None:
    """The coordinator has aborted the transaction after its timeout; the next one begins."""
    leaders = CoordinatedLeaders(network, level=2)
    settings = attrs.evolve(SETTINGS, max_block_seconds=10.0)

    async def transact(producer: trionet.Producer) -> None:
        async with producer.transaction():
            await producer.send("t", b"a")
            leaders.faults["EndTxn"] = [lose_request] * 1000

    async with leaders.producer(settings) as producer:
        with pytest.raises(trionet.TransactionOutcomeUnknownError):
            await transact(producer)
        leaders.time_out()
        leaders.faults.clear()
        await trio.sleep(seconds)
        if call == "commit":
            with pytest.raises(trionet.TransactionAbortableError, match="INVALID_TXN_STATE"):
                await producer.commit_transaction()
        elif call == "abort":
            await producer.abort_transaction()
            with pytest.raises(trionet.LocalProtocolError, match="no transaction"):
                await producer.commit_transaction()
        async with producer.transaction():
            await producer.send("t", b"b")

    assert [b"b"] == leaders.values_committed()


async def test_empty_commit_is_a_checkpoint(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    """A loop whose transactions are all empty must not block the other tasks."""
    async with leaders.producer(SETTINGS) as producer:
        async with producer.transaction():
            await producer.send("t", b"a")
        await trio.sleep(1)  # then the sending task waits for the network
        await producer.begin_transaction()
        with trio.testing.assert_checkpoints():
            await producer.commit_transaction()


async def test_outcome_is_found_while_nobody_waits(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    settings = attrs.evolve(SETTINGS, max_block_seconds=10.0)
    async with leaders.producer(settings) as producer:
        await producer.begin_transaction()
        await producer.send("t", b"a")
        leaders.faults["EndTxn"] = [lose_request] * 1000
        with pytest.raises(trionet.TransactionOutcomeUnknownError):
            await producer.commit_transaction()
        leaders.faults.clear()
        await trio.sleep(10)

        assert COMMITTED == leaders.state


@pytest.mark.parametrize("backoff_seconds", [0.0, 0.05])
async def test_coordinator_is_looked_for_again_when_its_node_has_gone(
    autojump_clock: MockClock, network: MemoryNetwork, backoff_seconds: float
) -> None:
    """However soon the next attempt to connect to that node may begin."""
    leaders = CoordinatedLeaders(network, nodes=2)
    network.faults.delay_seconds = (0.001, 0.001)
    reconnect = ExponentialBackoff(backoff_seconds, backoff_seconds)
    client = attrs.evolve(AT_ONCE.client, times=ConnectionTimes(reconnect=reconnect))
    async with leaders.producer(attrs.evolve(SETTINGS, client=client)) as producer:
        async with producer.transaction():
            await producer.send("t", b"a")
        network.kill_host("10.0.0.2")
        leaders.coordinator = 1

        with trio.fail_after(2):
            async with producer.transaction():
                await producer.send("t", b"b")

    assert [b"a", b"b"] == leaders.values_committed()


@pytest.mark.parametrize("level", [1, 2])
async def test_coordinator_that_is_never_found_leaves_nothing_in_doubt(
    autojump_clock: MockClock, network: MemoryNetwork, level: int
) -> None:
    """No commit was sent, so that the transaction can be aborted."""
    leaders = CoordinatedLeaders(network, level, nodes=2)
    settings = attrs.evolve(SETTINGS, max_block_seconds=10.0)
    async with leaders.producer(settings) as producer:
        async with producer.transaction():
            await producer.send("t", b"a")
        await producer.begin_transaction()
        await producer.send("t", b"b")
        leaders.faults["FindCoordinator"] = [refuse(error_codes.COORDINATOR_NOT_AVAILABLE)] * 1000
        network.kill_host("10.0.0.2")
        await trio.sleep(1)
        with pytest.raises(trionet.TransactionAbortableError, match="COORDINATOR_NOT_AVAILABLE"):
            await producer.commit_transaction()
        leaders.faults.clear()
        leaders.coordinator = 1
        await producer.abort_transaction()

    assert [b"a"] == leaders.values_committed()
    assert ABORTED == leaders.state


async def test_first_transaction_without_a_coordinator_times_out(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    settings = attrs.evolve(SETTINGS, max_block_seconds=10.0)
    leaders.faults["FindCoordinator"] = [refuse(error_codes.COORDINATOR_NOT_AVAILABLE)] * 1000
    async with leaders.producer(settings) as producer:
        with pytest.raises(
            trionet.CallTimedOutError, match=r"'x' was not initialized within 10 s \(max\.block\.ms"
        ):
            await producer.init_transactions()
        leaders.faults.clear()
        async with producer.transaction():
            await producer.send("t", b"a")

    assert [b"a"] == leaders.values_committed()


async def test_refused_credentials_are_an_error_of_the_first_transaction(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    node = SaslNode(network)
    async with (
        node.listening(),
        trionet.open_producer(
            node.address,
            network=network,
            transactional_id="x",
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            sasl_username="alice",
            sasl_password="guess",
        ) as producer,
    ):
        with pytest.raises(trionet.AuthenticationError, match="Invalid username or password"):
            await producer.begin_transaction()


async def test_protocol_changes_with_the_epoch(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    """An epoch is never used by both protocols (KIP-890)."""
    other = 3 - leaders.level
    async with leaders.producer(SETTINGS) as producer:
        async with producer.transaction():
            await producer.send("t", b"a")
        leaders.faults["EndTxn"] = [lose_request]  # the client learns of it when it reconnects
        async with producer.transaction():
            await producer.send("t", b"b")
            leaders.finalize(other)
        async with producer.transaction():
            await producer.send("t", b"c")

    assert [b"a", b"b", b"c"] == leaders.values_committed()
    assert 2 == leaders.requests.count("InitProducerId")


# Cancellation.


async def test_cancelled_block_is_aborted(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    async with leaders.producer(SETTINGS) as producer:
        with trio.CancelScope() as scope:
            async with producer.transaction():
                await producer.send("t", b"a")
                scope.cancel()
                await trio.lowlevel.checkpoint()

        assert ABORTED == leaders.state
        async with producer.transaction():
            await producer.send("t", b"b")

    assert [b"b"] == leaders.values_committed()


async def test_commit_that_is_cancelled_after_it_was_sent_is_waited_for(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    async with leaders.producer(SETTINGS) as producer:
        with trio.CancelScope() as scope:

            def cancel(seen: object, reply: Callable[[object], object]) -> object:
                scope.cancel()
                return lose_request(seen, reply)  # type: ignore[arg-type]

            leaders.faults["EndTxn"] = [cancel]  # type: ignore[list-item]
            async with producer.transaction():
                await producer.send("t", b"a")

        assert scope.cancelled_caught
        assert COMMITTED == leaders.state

    assert [b"a"] == leaders.values_committed()


async def test_commit_that_is_cancelled_waits_for_five_seconds_at_most(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    async with leaders.producer(SETTINGS) as producer:
        with trio.CancelScope() as scope:
            async with producer.transaction():
                await producer.send("t", b"a")
                leaders.faults["EndTxn"] = [lose_request] * 1000
                scope.deadline = trio.current_time() + 1
        waited = trio.current_time() - scope.deadline
        leaders.faults.clear()
        async with producer.transaction():
            await producer.send("t", b"b")

    assert scope.cancelled_caught
    assert 5.0 == pytest.approx(waited, abs=0.1)
    assert [b"a", b"b"] == leaders.values_committed()


async def test_commit_that_is_cancelled_before_it_was_sent_is_an_abort(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    async with leaders.producer(SETTINGS) as producer:
        leaders.answers = [refusal(error_codes.NOT_ENOUGH_REPLICAS)] * 1000
        with trio.move_on_after(1) as scope:
            async with producer.transaction():
                await producer.enqueue_batch("t", [b"a"])
        leaders.answers = []
        async with producer.transaction():
            await producer.send("t", b"b")

    assert scope.cancelled_caught
    assert [b"b"] == leaders.values_committed()


async def test_abort_that_is_cancelled_goes_on(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    """Even if the task is cancelled before it could wait."""
    async with leaders.producer(SETTINGS) as producer:
        await producer.begin_transaction()
        await producer.send("t", b"a")
        with trio.CancelScope() as scope:
            scope.cancel()
            await producer.abort_transaction()
        await trio.testing.wait_all_tasks_blocked()

        assert scope.cancelled_caught
        assert ABORTED == leaders.state
        async with producer.transaction():
            await producer.send("t", b"b")

    assert [b"b"] == leaders.values_committed()


async def test_producer_that_is_cancelled_aborts_its_transaction(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    """Although its own tasks are cancelled, too."""
    async with leaders.listening():
        with trio.CancelScope() as scope:
            async with (
                trionet.open_producer(
                    leaders.address, SETTINGS, network=leaders.network
                ) as producer,
                producer.transaction(),
            ):
                await producer.send("t", b"a")
                scope.cancel()
                await trio.lowlevel.checkpoint()

        assert ABORTED == leaders.state


async def test_abort_that_is_cancelled_is_still_an_abort(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    async with leaders.producer(SETTINGS) as producer:
        await producer.begin_transaction()
        await producer.send("t", b"a")
        with trio.CancelScope() as scope:
            scope.cancel()
            await producer.abort_transaction()
        async with producer.transaction():
            await producer.send("t", b"b")

    assert scope.cancelled_caught
    assert [b"b"] == leaders.values_committed()


async def test_closed_producer_begins_no_transaction(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    async with leaders.producer(SETTINGS) as producer:
        await producer.init_transactions()
    for call in (producer.init_transactions, producer.begin_transaction):
        with pytest.raises(trio.ClosedResourceError):
            await call()
    await producer.abort_transaction()


async def test_producer_waits_for_its_last_abort_once(
    autojump_clock: MockClock, leaders: CoordinatedLeaders, caplog: pytest.LogCaptureFixture
) -> None:
    async with leaders.producer(SETTINGS) as producer:
        await producer.begin_transaction()
        await producer.send("t", b"a")
        leaders.faults["EndTxn"] = [lose_request] * 1000
        began = trio.current_time()

    assert 5.0 == pytest.approx(trio.current_time() - began, abs=0.1)
    assert 1 == caplog.text.count("was not ended within 5 s")


async def test_error_of_offsets_names_the_partition(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    async with (
        trionet.open_broker(network=network) as broker,
        trionet.open_producer(
            broker.bootstrap_servers, network=network, transactional_id="x", max_block_ms=500
        ) as producer,
    ):
        await producer.begin_transaction()
        with pytest.raises(
            trionet.TransactionAbortableError,
            match=r"group 'g' were not .* within 0\.5 s .* 'g', in-7: UNKNOWN_TOPIC_OR_PARTITION$",
        ):
            await producer.send_offsets_to_transaction({TopicPartition("in", 7): 1}, GROUP)


async def test_timeout_that_brokers_do_not_allow_is_named(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    async with (
        trionet.open_broker(network=network) as broker,
        trionet.open_producer(
            broker.bootstrap_servers,
            network=network,
            transactional_id="x",
            transaction_timeout_ms=900_001,
        ) as producer,
    ):
        with pytest.raises(
            trionet.ApiError, match=r"than 900001 \(transaction\.max\.timeout\.ms\): INVALID_TRANS"
        ):
            await producer.begin_transaction()


async def test_consumer_that_commits_by_itself_is_refused(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    """Otherwise it would commit the offsets of an aborted transaction, at the latest at its end."""
    async with (
        trionet.open_broker(network=network) as broker,
        trionet.open_producer(
            broker.bootstrap_servers, network=network, transactional_id="x"
        ) as producer,
        trionet.open_consumer(broker.bootstrap_servers, network=network, group_id="g") as one,
        trionet.open_consumer(broker.bootstrap_servers, network=network) as no_member,
    ):
        assert one.commits_automatically
        assert not no_member.commits_automatically
        async with producer.transaction() as tx:
            with pytest.raises(trionet.ConfigError, match=r"enable\.auto\.commit=false"):
                await tx.send_offsets(one)
            with pytest.raises(trionet.ConfigError, match=r"group\.id"):
                await tx.send_offsets(no_member)
            with pytest.raises(TypeError, match=r"consumer\.group_metadata\(\), not str"):
                await tx.send_offsets({SOURCE: 1}, "g")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("offsets", "group", "error"),
    [
        ({TopicPartition("in", 2**31): 1}, GROUP, ValueError),
        ({SOURCE: OffsetAndMetadata(1, "\ud800")}, GROUP, ValueError),
        ({SOURCE: 1}, tuple(GROUP), TypeError),
    ],
)
async def test_offsets_that_no_request_can_carry_do_not_end_the_transaction(
    autojump_clock: MockClock,
    leaders: CoordinatedLeaders,
    offsets: dict[TopicPartition, OffsetAndMetadata | int],
    group: GroupMetadata,
    error: type[Exception],
) -> None:
    async with leaders.producer(SETTINGS) as producer, producer.transaction() as tx:
        with pytest.raises(error):
            await tx.send_offsets(offsets, group)
        await tx.send_offsets({SOURCE: 5}, GROUP)

    assert {("g", SOURCE): 5} == leaders.offsets


async def test_cancelled_call_keeps_offsets_out_although_another_sends_some(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    async with leaders.producer(SETTINGS) as producer:
        await producer.begin_transaction()
        await producer.send("t", b"a")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_send_offsets_in_vain, producer)
            await trio.lowlevel.checkpoint()
            with trio.CancelScope() as scope:
                scope.cancel()
                await producer.send_offsets_to_transaction({TopicPartition("in", 1): 1}, GROUP)
        assert scope.cancelled_caught
        with pytest.raises(trionet.TransactionAbortableError, match="offsets was cancelled"):
            await producer.commit_transaction()
        await producer.abort_transaction()

    assert ({}, ABORTED) == (leaders.offsets, leaders.state)


async def _send_offsets_in_vain(producer: trionet.Producer) -> None:
    with pytest.raises(trionet.TransactionAbortableError):
        await producer.send_offsets_to_transaction({SOURCE: 5}, GROUP)


async def test_transaction_that_still_ends_is_no_warning(
    autojump_clock: MockClock, leaders: CoordinatedLeaders, caplog: pytest.LogCaptureFixture
) -> None:
    async with leaders.producer(SETTINGS) as producer, producer.transaction():
        leaders.answers = [refusal(error_codes.CONCURRENT_TRANSACTIONS)] * 3
        await producer.send("t", b"a")

    assert "CONCURRENT_TRANSACTIONS" not in caplog.text


async def test_call_that_outlives_its_producer_says_so(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    async def fail(call: Callable[[], Awaitable[None]], error: type[Exception]) -> None:
        with pytest.raises(error, match="before the producer was closed"):
            await call()

    for lost, call, error in (
        ("EndTxn", "commit_transaction", trionet.TransactionOutcomeUnknownError),
        ("EndTxn", "abort_transaction", trio.ClosedResourceError),
        ("InitProducerId", "init_transactions", trio.ClosedResourceError),
    ):
        leaders.faults.clear()
        async with trio.open_nursery() as nursery, leaders.producer(SETTINGS) as producer:
            if lost == "EndTxn":
                await producer.begin_transaction()
                await producer.send("t", b"a")
            leaders.faults[lost] = [lose_request] * 1000
            nursery.start_soon(fail, getattr(producer, call), error)
            await trio.testing.wait_all_tasks_blocked()


async def test_producer_without_an_id_has_no_transactions(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    async with leaders.producer(AT_ONCE) as producer:
        with pytest.raises(trionet.ConfigError, match=r"set transactional\.id"):
            await producer.begin_transaction()


async def test_tasks_do_not_end_a_transaction_at_the_same_time(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    async with leaders.producer(SETTINGS) as producer:
        await producer.begin_transaction()
        await producer.send("t", b"a")
        leaders.faults["EndTxn"] = [lose_request]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(producer.commit_transaction)
            await trio.testing.wait_all_tasks_blocked()
            with pytest.raises(trionet.LocalProtocolError, match="in commit_transaction"):
                await producer.abort_transaction()

    assert [b"a"] == leaders.values_committed()


async def test_prepared_transaction_is_left_open(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    """KIP-939: another process ends it, by what it was prepared with."""
    async with leaders.producer(SETTINGS) as producer:
        transactions = producer._checked_transactions()
        await transactions.begin_as("x")
        await producer.enqueue_batch("t", [b"a"] * 10)
        prepared = await transactions.prepare()

    (node,) = leaders.nodes.values()
    assert "EndTxn" not in node.names()
    assert (ONGOING, []) == (leaders.state, leaders.values_committed())
    is_v2 = leaders.level == 2
    assert PreparedTransaction("x", leaders.id, leaders.epoch, is_v2) == prepared
    assert [b"a"] * 10 == leaders.values()


async def test_producer_may_take_another_transactional_id(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    """It keeps its connection, and requests a producer id and a coordinator as if it were new."""
    async with leaders.producer(SETTINGS) as producer:
        transactions = producer._checked_transactions()
        for name in ("x", "y", "y"):
            await transactions.begin_as(name)
            await producer.send("t", name.encode())
            await transactions.prepare()

    (node,) = leaders.nodes.values()
    initial = [each.body for each in node.seen if each.name == "InitProducerId"]
    # Each is repeated until the coordinator has aborted what was left open.
    assert ["x", "y", "y", "y", "y"] == [each.transactional_id for each in initial]
    assert {-1} == {each.producer_id for each in initial}
    assert 1 == node.names().count("ApiVersions")


async def test_other_id_waits_for_the_response_about_the_last_one(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    """Or it would take the producer id that the response has for the last one."""
    async with leaders.producer(SETTINGS) as producer:
        transactions = producer._checked_transactions()
        with trio.CancelScope() as scope:

            def cancel(seen: object, reply: Callable[[object], object]) -> object:
                scope.cancel()
                return reply(seen)

            leaders.faults["InitProducerId"] = [cancel]  # type: ignore[list-item]
            await transactions.begin_as("x")
        assert scope.cancelled_caught
        with pytest.raises(
            trionet.LocalProtocolError, match="a request about transactional id 'x' is in flight"
        ):
            transactions._requests.use("y")
        await transactions.begin_as("y")
        await producer.send("t", b"a")
        prepared = await transactions.prepare()

    (node,) = leaders.nodes.values()
    initial = [each.body.transactional_id for each in node.seen if each.name == "InitProducerId"]
    assert ["x", "y"] == initial
    is_v2 = leaders.level == 2
    assert PreparedTransaction("y", leaders.id, leaders.epoch, is_v2) == prepared


async def test_other_id_waits_for_the_end_of_a_transaction(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    async with leaders.producer(SETTINGS) as producer:
        transactions = producer._checked_transactions()
        await transactions.begin_as("x")
        with pytest.raises(
            trionet.LocalProtocolError, match="'x' is still open; commit, abort or prepare"
        ):
            await transactions.begin_as("y")
        with pytest.raises(
            trionet.LocalProtocolError, match="cannot be prepared: it has sent no records"
        ):
            await transactions.prepare()
        await producer.abort_transaction()
        with pytest.raises(trionet.LocalProtocolError, match="no transaction of 'x' is open"):
            await transactions.prepare()


async def test_transaction_that_has_failed_cannot_be_prepared(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    async with leaders.producer(SETTINGS) as producer:
        transactions = producer._checked_transactions()
        await transactions.begin_as("x")
        leaders.answers = [refusal(error_codes.INVALID_RECORD)]
        delivery = await producer.enqueue("t", b"a")
        with pytest.raises(trionet.TransactionAbortableError):
            await transactions.prepare()
        assert delivery.error is not None
        await producer.abort_transaction()


async def test_transaction_of_a_closed_producer_is_not_prepared_without_its_records(
    autojump_clock: MockClock, leaders: CoordinatedLeaders
) -> None:
    async def prepare() -> None:
        with pytest.raises(trionet.TransactionAbortableError, match="the producer was closed"):
            await transactions.prepare()

    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            async with leaders.producer(SETTINGS) as producer:
                transactions = producer._checked_transactions()
                await transactions.begin_as("x")
                await producer.send("t", b"a")
                leaders.answers = [say_nothing]
                _ = await producer.enqueue("t", b"b")
                nursery.start_soon(prepare)
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel()
                await trio.lowlevel.checkpoint()

    assert [b"a"] == leaders.values()
