"""The rules of a transactional id, cell by cell, and for every order of requests."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from trionet.broker.transactions._transaction import (
    EPOCH_MAX,
    EXHAUSTED,
    NO_EPOCH,
    NO_IDENTITY,
    NO_TIME,
    TV1,
    TV2,
    ProducerIdAndEpoch,
    StoredTransaction,
    Transaction,
    TransactionState,
)
from trionet.errors import ApiError
from trionet.protocol import error_codes

EMPTY = TransactionState.EMPTY
ONGOING = TransactionState.ONGOING
PREPARE_COMMIT = TransactionState.PREPARE_COMMIT
PREPARE_ABORT = TransactionState.PREPARE_ABORT
COMPLETE_COMMIT = TransactionState.COMPLETE_COMMIT
COMPLETE_ABORT = TransactionState.COMPLETE_ABORT

ID, EPOCH, NEW_ID, NOW = 7, 5, 8, 1_000_000

FENCED = "PRODUCER_FENCED"
BUSY = "CONCURRENT_TRANSACTIONS"
BAD = "INVALID_TXN_STATE"
MAPPING = "INVALID_PRODUCER_ID_MAPPING"


def transaction(state: TransactionState = EMPTY, **fields: Any) -> Transaction[str]:
    values = {
        "producer_id": ID,
        "producer_epoch": EPOCH,
        "last_epoch": EPOCH - 1,
        "ended_producer_id": ID,
        "ended_epoch": EPOCH,
        "timeout_ms": 1000,
        "state": state,
        "changed_at_ms": NOW - 100,
        "started_at_ms": NO_TIME if state is EMPTY else NOW - 200,
    }
    return Transaction("x", StoredTransaction(**{**values, **fields}))


def end(
    of: Transaction[str], epoch: int, *, commit: bool, version: int, id: int = ID
) -> StoredTransaction | str | None:
    """The outcome of an EndTxn: what must be stored, None, or the name of an error."""
    try:
        return of.ended(
            ProducerIdAndEpoch(id, epoch),
            is_commit=commit,
            version=version,
            new_producer_id=NEW_ID,
            now_ms=NOW,
        )
    except ApiError as error:
        return error_codes.name_of(error.error_code)


def named(outcome: StoredTransaction | str | None) -> str:
    return outcome.state.value if isinstance(outcome, StoredTransaction) else str(outcome)


# EndTxn.


@pytest.mark.parametrize(
    ("state", "commit", "abort"),
    [
        (EMPTY, BAD, BAD),
        (ONGOING, "PrepareCommit", "PrepareAbort"),
        (PREPARE_COMMIT, BUSY, BUSY),
        (PREPARE_ABORT, BUSY, BUSY),
        (COMPLETE_COMMIT, "None", BAD),
        (COMPLETE_ABORT, BAD, "None"),
    ],
)
def test_an_end_before_version_5(state: TransactionState, commit: str, abort: str) -> None:
    """The same epoch; the end of a transaction that has this end already is a repeated one.

    Kafka, too, says CONCURRENT_TRANSACTIONS to all while markers are missing, since it prepares the
    next transition as soon as the decision is stored.
    """
    of = transaction(state)

    assert (commit, abort) == (
        named(end(of, EPOCH, commit=True, version=TV1)),
        named(end(of, EPOCH, commit=False, version=TV1)),
    )


@pytest.mark.parametrize(
    ("state", "commit", "commit_again", "abort", "abort_again"),
    [
        (EMPTY, BAD, FENCED, "PrepareAbort", FENCED),
        (ONGOING, "PrepareCommit", FENCED, "PrepareAbort", FENCED),
        (PREPARE_COMMIT, BUSY, BUSY, BUSY, BUSY),
        (PREPARE_ABORT, BUSY, BUSY, BUSY, BUSY),
        (COMPLETE_COMMIT, BAD, "None", "PrepareAbort", BAD),
        (COMPLETE_ABORT, BAD, BAD, "PrepareAbort", "None"),
    ],
)
def test_an_end_from_version_5_on(
    state: TransactionState, commit: str, commit_again: str, abort: str, abort_again: str
) -> None:
    """One epoch behind, it is a repeated one (KIP-890); an abort of nothing raises the epoch."""
    of = transaction(state)

    assert (commit, commit_again, abort, abort_again) == tuple(
        named(end(of, epoch, commit=is_commit, version=TV2))
        for is_commit in (True, False)
        for epoch in (EPOCH, EPOCH - 1)
    )


@pytest.mark.parametrize("state", [EMPTY, ONGOING, COMPLETE_COMMIT, COMPLETE_ABORT])
@pytest.mark.parametrize("version", [TV1, TV2])
@pytest.mark.parametrize("commit", [True, False])
def test_another_epoch_is_fenced_and_another_id_is_unknown(
    state: TransactionState, version: int, commit: bool
) -> None:
    of = transaction(state)

    assert FENCED == end(of, EPOCH + 1, commit=commit, version=version)
    assert FENCED == end(of, EPOCH - 2, commit=commit, version=version)
    assert MAPPING == end(of, EPOCH, commit=commit, version=version, id=NEW_ID)
    if version == TV1:
        assert FENCED == end(of, EPOCH - 1, commit=commit, version=version)


@pytest.mark.parametrize("commit", [True, False])
def test_before_version_5_an_end_keeps_the_epoch(commit: bool) -> None:
    of = transaction(ONGOING, partitions=((bytes(16), 0),), offsets_partitions=(3,))

    decided = end(of, EPOCH, commit=commit, version=TV1)

    assert isinstance(decided, StoredTransaction)
    assert (ID, EPOCH, EPOCH - 1) == (*decided.identity, decided.last_epoch)
    assert (ID, EPOCH) == (decided.ended_producer_id, decided.ended_epoch)
    assert (NOW - 200, NOW) == (decided.started_at_ms, decided.changed_at_ms)
    assert ((), ()) == (decided.partitions, decided.offsets_partitions)


@pytest.mark.parametrize("commit", [True, False])
def test_from_version_5_on_an_end_raises_the_epoch_which_its_markers_have(commit: bool) -> None:
    decided = end(transaction(ONGOING), EPOCH, commit=commit, version=TV2)

    assert isinstance(decided, StoredTransaction)
    assert (ID, EPOCH + 1, EPOCH) == (*decided.identity, decided.last_epoch)
    assert (ID, EPOCH + 1) == (decided.ended_producer_id, decided.ended_epoch)


def test_the_last_epoch_of_an_id_is_only_for_its_markers() -> None:
    """The producer goes on with a new id, and may repeat the request with the old one."""
    of = transaction(ONGOING, producer_epoch=EXHAUSTED, last_epoch=EXHAUSTED - 1)

    of.current = end(of, EXHAUSTED, commit=True, version=TV2)  # type: ignore[assignment]

    assert of.current is not None
    assert (NEW_ID, 0) == of.current.identity
    assert (ID, EPOCH_MAX) == (of.current.ended_producer_id, of.current.ended_epoch)
    assert of.current.has_decided(ID, EXHAUSTED)
    of.complete()
    assert None is end(of, EXHAUSTED, commit=True, version=TV2, id=ID)
    assert BAD == end(of, EXHAUSTED, commit=False, version=TV2, id=ID)
    assert MAPPING == end(of, EXHAUSTED - 1, commit=True, version=TV2, id=ID)


def test_an_abort_of_nothing_begins_and_ends_at_once() -> None:
    decided = end(transaction(EMPTY), EPOCH, commit=False, version=TV2)

    assert isinstance(decided, StoredTransaction)
    assert (NOW, EPOCH + 1) == (decided.started_at_ms, decided.producer_epoch)


def test_a_transition_that_is_being_stored_comes_before_all_other_checks_of_version_5() -> None:
    of = transaction(ONGOING)
    of.storing = ONGOING

    assert BUSY == end(of, EPOCH + 9, commit=True, version=TV2, id=NEW_ID)
    assert MAPPING == end(of, EPOCH, commit=True, version=TV1, id=NEW_ID)
    assert FENCED == end(of, EPOCH + 9, commit=True, version=TV1)
    assert BUSY == end(of, EPOCH, commit=True, version=TV1)


# InitProducerId.


def init(
    of: Transaction[str], expected: tuple[int, int] = NO_IDENTITY
) -> StoredTransaction | str | None:
    try:
        return of.initialized(ProducerIdAndEpoch(*expected), 2000, NEW_ID, NOW)
    except ApiError as error:
        return error_codes.name_of(error.error_code)


@pytest.mark.parametrize("expected", [NO_IDENTITY, (99, 3)])
def test_a_new_id_gets_epoch_0_whatever_the_producer_had(expected: tuple[int, int]) -> None:
    stored = init(Transaction("x"), expected)

    assert isinstance(stored, StoredTransaction)
    assert ((NEW_ID, 0), NO_EPOCH, 2000, EMPTY) == (
        stored.identity,
        stored.last_epoch,
        stored.timeout_ms,
        stored.state,
    )


@pytest.mark.parametrize("state", [EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT])
@pytest.mark.parametrize(
    ("expected", "identity", "last_epoch"),
    [
        (NO_IDENTITY, (ID, EPOCH + 1), NO_EPOCH),
        ((ID, EPOCH), (ID, EPOCH + 1), EPOCH),
        ((ID, EPOCH - 1), (ID, EPOCH), EPOCH - 1),
    ],
    ids=["a new instance", "the current producer", "a repeated request"],
)
def test_a_producer_gets_the_next_epoch(
    state: TransactionState, expected: tuple[int, int], identity: tuple[int, int], last_epoch: int
) -> None:
    stored = init(transaction(state), expected)

    assert isinstance(stored, StoredTransaction)
    assert (identity, last_epoch) == (stored.identity, stored.last_epoch)
    assert (2000, EMPTY, NO_TIME, NOW) == (
        stored.timeout_ms,
        stored.state,
        stored.started_at_ms,
        stored.changed_at_ms,
    )


@pytest.mark.parametrize("state", [EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT])
@pytest.mark.parametrize("expected", [(ID, EPOCH - 2), (ID, EPOCH + 1), (99, EPOCH)])
def test_a_producer_that_was_replaced_is_fenced(
    state: TransactionState, expected: tuple[int, int]
) -> None:
    assert FENCED == init(transaction(state), expected)


def test_after_a_new_instance_the_old_one_is_fenced() -> None:
    """Its epoch is not remembered as the last one."""
    of = transaction()
    of.current = init(of)  # type: ignore[assignment]

    assert FENCED == init(of, (ID, EPOCH))


@pytest.mark.parametrize("expected", [NO_IDENTITY, (ID, EPOCH), (ID, 0)])
def test_an_ongoing_transaction_must_be_fenced_first(expected: tuple[int, int]) -> None:
    """Also by a producer with an old epoch (Kafka compares only the id then)."""
    assert None is init(transaction(ONGOING), expected)
    assert FENCED == init(transaction(ONGOING), (99, EPOCH))


@pytest.mark.parametrize("state", [PREPARE_COMMIT, PREPARE_ABORT])
def test_a_producer_waits_for_the_markers(state: TransactionState) -> None:
    assert BUSY == init(transaction(state))


@pytest.mark.parametrize(
    ("expected", "last_epoch"), [(NO_IDENTITY, NO_EPOCH), ((ID, EXHAUSTED), EXHAUSTED)]
)
@pytest.mark.parametrize("state", [EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT])
def test_exhausted_epochs_give_a_new_id(
    state: TransactionState, expected: tuple[int, int], last_epoch: int
) -> None:
    of = transaction(state, producer_epoch=EXHAUSTED, last_epoch=EXHAUSTED - 1)

    stored = init(of, expected)

    assert isinstance(stored, StoredTransaction)
    assert ((NEW_ID, 0), last_epoch, ID) == (
        stored.identity,
        stored.last_epoch,
        stored.ended_producer_id,
    )


def test_a_repeated_request_gets_the_same_new_id_again() -> None:
    of = transaction(producer_epoch=EXHAUSTED)
    of.current = init(of, (ID, EXHAUSTED))  # type: ignore[assignment]

    again = init(of, (ID, EXHAUSTED))

    assert isinstance(again, StoredTransaction)
    assert (NEW_ID, 0) == again.identity
    assert FENCED == init(of, (ID, EXHAUSTED - 1))


def test_a_repeated_request_of_an_exhausted_epoch_keeps_it() -> None:
    of = transaction(producer_epoch=EXHAUSTED, last_epoch=EXHAUSTED - 1)

    again = init(of, (ID, EXHAUSTED - 1))

    assert isinstance(again, StoredTransaction)
    assert (ID, EXHAUSTED) == again.identity
    assert FENCED == init(of, (ID, EXHAUSTED - 2))


# Partitions.


@pytest.mark.parametrize("state", [PREPARE_COMMIT, PREPARE_ABORT])
def test_nothing_is_added_while_markers_are_missing(state: TransactionState) -> None:
    with pytest.raises(ApiError) as caught:
        transaction(state).check_producer(99, 99)

    assert BUSY == error_codes.name_of(caught.value.error_code)


def test_a_pending_transition_is_reported_before_a_wrong_producer() -> None:
    of = transaction(ONGOING)
    of.storing = ONGOING

    with pytest.raises(ApiError) as caught:
        of.check_producer(99, 99)

    assert BUSY == error_codes.name_of(caught.value.error_code)


@pytest.mark.parametrize(
    ("producer", "error"),
    [((99, EPOCH), MAPPING), ((ID, EPOCH - 1), FENCED), ((ID, EPOCH + 1), FENCED)],
)
def test_only_the_current_producer_may_add_and_write(producer: tuple[int, int], error: str) -> None:
    of = transaction(ONGOING)
    for check in (of.check_producer, of.check_undecided):
        with pytest.raises(ApiError) as caught:
            check(*producer)

        assert error == error_codes.name_of(caught.value.error_code)


def test_data_may_come_while_another_partition_is_being_added() -> None:
    of = transaction(ONGOING)
    of.storing = ONGOING
    of.check_undecided(ID, EPOCH)

    of.storing = PREPARE_COMMIT
    with pytest.raises(ApiError):
        of.check_undecided(ID, EPOCH)


def test_a_transaction_begins_with_its_first_partition_and_keeps_that_time() -> None:
    of = transaction(COMPLETE_COMMIT)
    of.current = of.ongoing(TV1, NOW, [(b"t", 1)])
    of.current = of.ongoing(TV2, NOW + 5, [(b"s", 0), (b"t", 1)], [9])

    assert of.current == attrs.evolve(
        of.current,
        state=ONGOING,
        started_at_ms=NOW,
        changed_at_ms=NOW + 5,
        version=TV1,
        partitions=((b"s", 0), (b"t", 1)),
        offsets_partitions=(9,),
    )


@pytest.mark.parametrize(
    ("state", "fields", "is_old"),
    [
        (COMPLETE_COMMIT, {}, True),
        (COMPLETE_ABORT, {}, True),
        (COMPLETE_COMMIT, {"version": TV2}, False),
        (COMPLETE_COMMIT, {"ended_epoch": EPOCH - 1}, False),
        (EMPTY, {}, False),
        (ONGOING, {}, False),
    ],
)
def test_an_old_decision_is_one_of_the_same_epoch(
    state: TransactionState, fields: dict[str, int], is_old: bool
) -> None:
    """After a kill, records of its epoch could not be told from those of the next transaction."""
    assert is_old == transaction(state, **fields).has_old_decision()


# The coordinator's own decisions.


def test_fencing_in_version_1_raises_the_epoch_once() -> None:
    decided = transaction(ONGOING).fenced(TV1, NEW_ID, NOW)

    assert ((ID, EPOCH + 1), NO_EPOCH, EPOCH + 1, PREPARE_ABORT, TV1) == (
        decided.identity,
        decided.last_epoch,
        decided.ended_epoch,
        decided.state,
        decided.version,
    )


def test_fencing_in_version_2_is_an_abort() -> None:
    """So a late abort of the client is a repeated one, and a late commit is refused."""
    of = transaction(ONGOING)
    of.current = of.fenced(TV2, NEW_ID, NOW)
    assert (ID, EPOCH + 1) == of.current.identity
    of.complete()

    assert None is end(of, EPOCH, commit=False, version=TV2)
    assert BAD == end(of, EPOCH, commit=True, version=TV2)


@pytest.mark.parametrize(
    ("level", "identity"), [(TV1, (ID, EPOCH_MAX)), (TV2, (NEW_ID, 0))], ids=["TV1", "TV2"]
)
def test_fencing_at_the_last_epoch_uses_the_one_for_markers(
    level: int, identity: tuple[int, int]
) -> None:
    of = transaction(ONGOING, producer_epoch=EXHAUSTED)

    of.current = of.fenced(level, NEW_ID, NOW)

    assert (identity, EPOCH_MAX) == (of.current.identity, of.current.ended_epoch)
    of.complete()
    following = init(of)
    assert isinstance(following, StoredTransaction)
    assert (NEW_ID, 0 if level == TV1 else 1) == following.identity


@pytest.mark.parametrize("version", [TV1, TV2])
@pytest.mark.parametrize("state", [PREPARE_COMMIT, PREPARE_ABORT])
def test_a_decision_covers_its_epoch_and_an_abort_also_older_ones(
    state: TransactionState, version: int
) -> None:
    """A commit must not cover an aborted transaction whose marker a power failure took."""
    stored = transaction(state, version=version, ended_epoch=EPOCH).current
    assert stored is not None
    newest = EPOCH if version == TV1 else EPOCH - 1

    covered = {epoch for epoch in range(EPOCH + 2) if stored.has_decided(ID, epoch)}

    assert ({newest} if state is PREPARE_COMMIT else set(range(newest + 1))) == covered
    assert not stored.has_decided(NEW_ID, newest)


@pytest.mark.parametrize("state", [EMPTY, ONGOING])
def test_without_a_decision_nothing_is_covered(state: TransactionState) -> None:
    stored = transaction(state).current
    assert stored is not None

    assert not any(stored.has_decided(ID, epoch) for epoch in range(EPOCH + 1))


# Time.


def test_a_transaction_is_due_after_its_timeout_if_it_is_ongoing_and_not_being_stored() -> None:
    of = transaction(ONGOING, started_at_ms=NOW, timeout_ms=1000)
    assert [False, True] == [of.is_due(NOW + 1000), of.is_due(NOW + 1001)]

    of.storing = PREPARE_COMMIT
    assert not of.is_due(NOW + 9999)
    for state in set(TransactionState) - {ONGOING}:
        assert not transaction(state).is_due(NOW + 9999)


@pytest.mark.parametrize("state", TransactionState)
def test_an_id_expires_unless_a_transaction_is_ongoing_or_not_finished(
    state: TransactionState,
) -> None:
    of = transaction(state, changed_at_ms=NOW)
    may = state in (EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT)

    assert [False, may] == [of.has_expired(NOW + 99, 100), of.has_expired(NOW + 100, 100)]
    of.storing = ONGOING
    assert not of.has_expired(NOW + 100, 100)


class AnyOrderOfRequests(RuleBasedStateMachine):
    """Two instances of one producer send anything, in any order, with both protocols.

    Attributes:
        of: the transactional id.
        known: the identities that were given out, the newest last.
        ended: what was decided for each epoch of each id.
    """

    @initialize(epoch=st.sampled_from([0, EXHAUSTED - 2]))
    def begin(self, epoch: int) -> None:
        self.of: Transaction[str] = Transaction("x")
        self.new_id = 100
        self.known: list[ProducerIdAndEpoch] = []
        self.ended: dict[tuple[int, int], bool] = {}
        self.store(self.of.initialized(NO_IDENTITY, 1000, self.new_id, NOW))
        assert self.of.current is not None
        self.of.current = attrs.evolve(self.of.current, producer_epoch=epoch)
        self.known.append(self.of.current.identity)

    def store(self, following: StoredTransaction | None) -> None:
        if following is None:
            return
        before = self.of.current
        self.of.current = following
        self.new_id += 1
        if following.state in (PREPARE_COMMIT, PREPARE_ABORT):
            assert before is not None
            key = before.identity
            if before.state is ONGOING:
                is_commit = following.state is PREPARE_COMMIT
                if following.version == TV2:
                    assert self.ended.setdefault(key, is_commit) == is_commit
            assert following.ended_epoch >= before.producer_epoch
            self.of.complete()
        if not self.known or self.known[-1] != following.identity:
            self.known.append(following.identity)

    @precondition(lambda self: self.of.state is not ONGOING)
    @rule(version=st.sampled_from([TV1, TV2]))
    def add(self, version: int) -> None:
        assert self.of.current is not None
        self.of.begin(version, NOW)

    @rule(back=st.integers(0, 4), commit=st.booleans(), version=st.sampled_from([TV1, TV2]))
    def end(self, back: int, commit: bool, version: int) -> None:
        producer = self.known[-1 - min(back, len(self.known) - 1)]
        was_ongoing = self.of.state is ONGOING
        assert self.of.current is not None
        is_current = producer == self.of.current.identity
        try:
            following = self.of.ended(
                producer,
                is_commit=commit,
                version=version,
                new_producer_id=self.new_id,
                now_ms=NOW,
            )
        except ApiError:
            # Only a wrong producer, or a wrong state, is refused: nothing is busy here.
            assert not (is_current and was_ongoing)
            return
        if following is None:
            done = COMPLETE_COMMIT if commit else COMPLETE_ABORT
            assert self.of.state is done, "a repeated end must have the same outcome"
        else:
            assert is_current, "only the newest producer decides"
        self.store(following)

    @rule(back=st.integers(0, 4))
    def init(self, back: int) -> None:
        producer = self.known[-1 - min(back, len(self.known) - 1)]
        assert self.of.current is not None
        before = self.of.current
        try:
            following = self.of.initialized(producer, 1000, self.new_id, NOW)
        except ApiError:
            assert producer != before.identity
            return
        if following is None:
            following = self.of.fenced(TV2, self.new_id, NOW)
        self.store(following)

    @rule(level=st.sampled_from([TV1, TV2]))
    def fence(self, level: int) -> None:
        if self.of.state is ONGOING:
            self.store(self.of.fenced(level, self.new_id, NOW))
        else:
            self.store(self.of.initialized(NO_IDENTITY, 1000, self.new_id, NOW))

    @invariant()
    def identities_only_grow(self) -> None:
        """Otherwise a fenced producer could come back."""
        assert sorted(self.known) == self.known
        assert all(0 <= each.epoch <= EPOCH_MAX for each in self.known)

    @invariant()
    def nothing_is_left_pending(self) -> None:
        assert not self.of.is_busy


TestAnyOrderOfRequests = AnyOrderOfRequests.TestCase
