"""The states of a transaction: what the user wants, what is sent next, and what is in doubt."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from trionet.client._topic_partition import OffsetAndMetadata, TopicPartition
from trionet.client.consumer.coordinator._classic_member import GroupMetadata
from trionet.client.producer.transactions._transaction_state import (
    PendingOffsets,
    State,
    Step,
    TransactionState,
)
from trionet.client.producer.transactions._verdicts import Verdict, abortable, verdict, worst
from trionet.errors import LocalProtocolError, TransactionAbortableError
from trionet.protocol import error_codes

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)
GROUP = GroupMetadata("g", 3, "member", None)


def ready(*, is_v2: bool) -> TransactionState:
    state = TransactionState("x")
    state.initialize()
    state.initialized(is_v2=is_v2)
    return state


def begun(*, is_v2: bool) -> TransactionState:
    state = ready(is_v2=is_v2)
    state.begin()
    return state


def offsets() -> PendingOffsets:
    return PendingOffsets(GROUP, {T0: OffsetAndMetadata(5), T1: OffsetAndMetadata(6)})


def failure() -> TransactionAbortableError:
    return abortable(ValueError("no"))


def test_first_request_is_for_a_producer_id() -> None:
    state = TransactionState("x")
    with pytest.raises(LocalProtocolError, match="'x' is not initialized"):
        state.begin()

    assert state.next_step(has_incomplete=False) is None
    state.initialize()
    assert Step.INIT is state.next_step(has_incomplete=False)
    state.initialized(is_v2=True)
    state.begin()
    assert state.is_open


def test_partition_is_added_before_its_records_are_sent() -> None:
    """TV1: AddPartitionsToTxn; with TV2 the leader does it (KIP-890)."""
    old, new = begun(is_v2=False), begun(is_v2=True)
    for state in (old, new):
        state.add_partition(T0)

    assert (False, True) == (old.may_send(T0), new.may_send(T0))
    assert Step.ADD_PARTITIONS is old.next_step(has_incomplete=True)
    assert new.next_step(has_incomplete=True) is None
    old.partitions_added([T0])
    assert old.may_send(T0)
    assert not old.may_send(T1)


def test_group_is_added_before_its_offsets() -> None:
    old, new = begun(is_v2=False), begun(is_v2=True)
    for state in (old, new):
        state.add_offsets(offsets())

    assert Step.ADD_OFFSETS is old.next_step(has_incomplete=False)
    old.offsets_added("g")
    for state in (old, new):
        assert Step.COMMIT_OFFSETS is state.next_step(has_incomplete=False)
        state.offsets_accepted([T0])
        assert Step.COMMIT_OFFSETS is state.next_step(has_incomplete=False)
        state.offsets_accepted([T1])
        assert state.next_step(has_incomplete=False) is None


@pytest.mark.parametrize("is_v2", [False, True])
def test_end_comes_after_all_records(is_v2: bool) -> None:
    state = begun(is_v2=is_v2)
    state.batch_sent()
    state.commit()

    assert state.next_step(has_incomplete=True) is None
    assert Step.END is state.next_step(has_incomplete=False)
    state.sent(Step.END)
    assert Step.END is state.next_step(has_incomplete=False)
    state.ended()
    assert State.READY is state.state


def test_commit_in_doubt_cannot_be_aborted() -> None:
    state = begun(is_v2=True)
    state.batch_sent()
    state.commit()
    state.sent(Step.END)
    state.abort()

    assert State.COMMITTING is state.state


def test_failed_transaction_only_aborts() -> None:
    state = begun(is_v2=True)
    state.batch_sent()
    state.fail(failure())

    assert (True, False) == (state.drops_records, state.may_send(T0))
    for call in (
        state.commit,
        lambda: state.add_partition(T0),
        lambda: state.add_offsets(offsets()),
    ):
        with pytest.raises(TransactionAbortableError):
            call()
    with pytest.raises(LocalProtocolError, match="still open"):
        state.begin()
    state.abort()
    assert Step.END is state.next_step(has_incomplete=False)
    state.ended()
    state.begin()


def test_what_the_coordinator_does_not_know_needs_no_end() -> None:
    for end in (TransactionState.commit, TransactionState.abort):
        state = begun(is_v2=True)
        end(state)

        assert state.next_step(has_incomplete=False) is None
        assert State.READY is state.state


def test_two_tasks_do_not_send_offsets_at_the_same_time() -> None:
    state = begun(is_v2=True)
    state.add_offsets(offsets())

    with pytest.raises(LocalProtocolError, match="another task"):
        state.add_offsets(offsets())


@pytest.mark.parametrize(
    ("step", "code", "expected"),
    [
        (Step.INIT, error_codes.NOT_COORDINATOR, Verdict.REFRESH),
        (Step.INIT, error_codes.CONCURRENT_TRANSACTIONS, Verdict.RETRY),
        (Step.INIT, error_codes.PRODUCER_FENCED, Verdict.FENCED),
        (Step.INIT, error_codes.INVALID_TRANSACTION_TIMEOUT, Verdict.FATAL),
        (Step.INIT, error_codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, Verdict.FATAL),
        (Step.ADD_PARTITIONS, error_codes.UNKNOWN_TOPIC_OR_PARTITION, Verdict.RETRY),
        (Step.ADD_PARTITIONS, error_codes.TOPIC_AUTHORIZATION_FAILED, Verdict.ABORT),
        (Step.ADD_PARTITIONS, error_codes.INVALID_PRODUCER_EPOCH, Verdict.FENCED),
        (Step.ADD_PARTITIONS, error_codes.INVALID_TXN_STATE, Verdict.FATAL),
        (Step.ADD_OFFSETS, error_codes.GROUP_AUTHORIZATION_FAILED, Verdict.ABORT),
        (Step.COMMIT_OFFSETS, error_codes.COORDINATOR_LOAD_IN_PROGRESS, Verdict.RETRY),
        (Step.COMMIT_OFFSETS, error_codes.ILLEGAL_GENERATION, Verdict.ABORT),
        (Step.COMMIT_OFFSETS, error_codes.FENCED_INSTANCE_ID, Verdict.ABORT),
        (Step.COMMIT_OFFSETS, error_codes.OFFSET_METADATA_TOO_LARGE, Verdict.ABORT),
        (Step.COMMIT_OFFSETS, error_codes.INVALID_PRODUCER_EPOCH, Verdict.ABORT),
        (Step.COMMIT_OFFSETS, error_codes.PRODUCER_FENCED, Verdict.FENCED),
        (Step.END, error_codes.TRANSACTION_ABORTABLE, Verdict.ABORT),
        (Step.END, error_codes.INVALID_PRODUCER_ID_MAPPING, Verdict.LOST),
        (Step.END, error_codes.INVALID_TXN_STATE, Verdict.LOST),
        (Step.END, error_codes.UNKNOWN_SERVER_ERROR, Verdict.FATAL),
    ],
)
def test_errors_are_divided_as_kip_1050_does(step: Step, code: int, expected: Verdict) -> None:
    assert expected is verdict(step, code)


def test_most_serious_error_of_a_response_decides() -> None:
    """The coordinator does not try the other partitions if it rejects one of them."""
    codes = [
        error_codes.NONE,
        error_codes.OPERATION_NOT_ATTEMPTED,
        error_codes.UNKNOWN_TOPIC_OR_PARTITION,
        error_codes.TOPIC_AUTHORIZATION_FAILED,
    ]

    assert error_codes.TOPIC_AUTHORIZATION_FAILED == worst(Step.ADD_PARTITIONS, codes)
    assert error_codes.OPERATION_NOT_ATTEMPTED == worst(Step.ADD_PARTITIONS, codes[:2])
    assert worst(Step.ADD_PARTITIONS, codes[:1]) is None


class Transacting(RuleBasedStateMachine):
    """Any order of calls and outcomes, with one request under way as in the sender."""

    @initialize(is_v2=st.booleans())
    def start(self, is_v2: bool) -> None:
        self.state = TransactionState("x")
        self.is_v2 = is_v2
        self.in_flight: Step | None = None
        self.batches = 0
        self.is_ended: bool | None = None  # whether the end that was sent is a commit

    @rule()
    def initialize_it(self) -> None:
        self.state.initialize()

    @precondition(lambda self: self.state.state is State.READY and not self.state.needs_epoch)
    @rule()
    def begin(self) -> None:
        self.state.begin()
        assert not self.state.is_started

    @precondition(lambda self: self.state.state is State.IN_TRANSACTION)
    @rule(partition=st.sampled_from([T0, T1]))
    def append(self, partition: TopicPartition) -> None:
        self.state.add_partition(partition)
        if self.state.may_send(partition):
            self.state.batch_sent()
            self.batches += 1

    @precondition(
        lambda self: self.state.state is State.IN_TRANSACTION and self.state.offsets is None
    )
    @rule()
    def send_offsets(self) -> None:
        self.state.add_offsets(offsets())

    @precondition(lambda self: self.batches > 0)
    @rule(fails=st.booleans())
    def complete(self, fails: bool) -> None:
        self.batches -= 1
        if fails:
            self.state.fail(failure())

    @precondition(lambda self: self.state.state is State.IN_TRANSACTION)
    @rule()
    def commit(self) -> None:
        self.state.commit()

    @rule()
    def abort(self) -> None:
        self.state.abort()

    @precondition(lambda self: self.in_flight is None)
    @rule()
    def send(self) -> None:
        step = self.state.next_step(has_incomplete=self.batches > 0)
        if step is None:
            return
        if step is Step.END:
            commits = self.state.state is State.COMMITTING
            assert self.batches == 0
            assert self.state.offsets is None
            assert not (commits and self.state.to_add)
            assert self.is_ended in {None, commits}
            self.is_ended = commits
        self.state.sent(step)
        self.in_flight = step

    @precondition(lambda self: self.in_flight is not None)
    @rule(outcome=st.sampled_from(["done", "lost", "failed"]))
    def receive(self, outcome: str) -> None:
        step, self.in_flight = self.in_flight, None
        state = self.state
        if outcome == "failed" and step not in {Step.INIT, Step.END}:
            state.fail(failure())
        elif outcome == "lost" or (outcome == "failed" and step is Step.INIT):
            pass
        elif outcome == "failed" and state.state is State.COMMITTING:
            state.fail(failure())  # the coordinator has aborted it
            self.is_ended = None
        elif step is Step.INIT:
            state.initialized(is_v2=self.is_v2)
        elif step is Step.ADD_PARTITIONS:
            state.partitions_added(list(state.to_add))
        elif step is Step.ADD_OFFSETS:
            state.offsets_added("g")
        elif step is Step.COMMIT_OFFSETS:
            state.offsets_accepted([T0, T1])
        elif step is Step.END:
            state.ended()
            self.is_ended = None

    @invariant()
    def nothing_is_left_of_a_transaction_that_has_ended(self) -> None:
        state = self.state
        if not (state.is_open or state.is_ending):
            assert not any((state.is_started, state.is_end_sent, state.added, state.to_add))
            assert state.offsets is None
            assert state.error is None

    @invariant()
    def failed_transaction_says_why(self) -> None:
        assert (self.state.state is State.ABORTABLE_ERROR) <= (self.state.error is not None)


Transacting.TestCase.settings = settings(max_examples=100, stateful_step_count=40)
TestTransacting = Transacting.TestCase
