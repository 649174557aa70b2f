"""Bugs planted on purpose: what the simulation must find, or it finds nothing.

Each is a small change of a method or two while a block lasts. Nothing of them is in the package;
they need the modules as they are, not compiled.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from trionet.broker.groups._group import Group
from trionet.broker.groups._group_store import GroupStore
from trionet.broker.log._log import Log
from trionet.broker.log.folder._log_folder import LogFolder
from trionet.broker.log.state import _producer_state as producer_state
from trionet.broker.log.validation._validation import Appended
from trionet.broker.storage._write_queue import WriteQueue
from trionet.broker.transactions._transaction import (
    StoredTransaction,
    Transaction,
    TransactionState,
)
from trionet.broker.transactions._transaction_coordinator import TransactionCoordinator, _Failures
from trionet.client.consumer.coordinator._classic_member import GroupMetadata
from trionet.client.consumer.coordinator._commits import Commits
from trionet.client.consumer.coordinator._consumer_coordinator import ConsumerCoordinator
from trionet.client.producer.sending import _completion as completion
from trionet.client.producer.transactions._sequences import NONE, PartitionSequences
from trionet.client.producer.transactions._transaction_manager import TransactionManager
from trionet.net._channel_state import MuteState
from trionet.protocol import error_codes
from trionet.server._processor import Processor

Change = tuple[Any, str, Callable[[Any], Any]]
"""Where it is, which attribute, and what that becomes of what it was."""


def _acknowledge_before_append(append: Any) -> Any:
    """Now and then the response says that records are stored which are not."""

    def lying(self: Log, records: Any, now_ms: int, **keywords: Any) -> Appended:
        if self.end_offset % 23 == 22:
            end = self.end_offset
            return Appended(end, end, -1, self.start_offset, 0)
        appended: Appended = append(self, records, now_ms, **keywords)
        return appended

    return lying


def _acknowledge_before_flush(_: Any) -> Any:
    """``flush.messages`` is not waited for."""
    return property(lambda self: False)


def _lose_commit_at_crash(write: Any) -> Any:
    """What groups decide gets a response before it is in the database."""

    def early(self: WriteQueue, statements: Any, done: Any, **keywords: Any) -> None:
        done(None)
        write(self, statements, lambda _: None, **keywords)

    return early


def _unmute_too_early(hand_over: Any) -> Any:
    """The next request of a channel is read while one of it is out."""

    def unmuting(self: Processor, channel: Any, frame: Any) -> None:
        hand_over(self, channel, frame)
        channel.muting.state = MuteState.NOT_MUTED
        self.selector._steps.read_again(channel)

    return unmuting


def _forget_to_fence(check_call: Any) -> Any:
    """A member of an old generation may commit."""

    def lenient(self: Group, *args: Any, **keywords: Any) -> int:
        code: int = check_call(self, *args, **keywords)
        return error_codes.NONE if code == error_codes.ILLEGAL_GENERATION else code

    return lenient


def _skip_offset_at_roll(append: Any) -> Any:
    """The offset after a roll is given to nobody."""

    def skipping(self: Log, records: Any, now_ms: int, **keywords: Any) -> Appended:
        segments = len(self._segments.all)
        appended: Appended = append(self, records, now_ms, **keywords)
        if len(self._segments.all) > segments:
            self.end_offset += 1
        return appended

    return skipping


def _forget_repetitions(_: Any) -> Any:
    """A batch that is sent again is stored again."""
    return lambda *_, **__: None


def _forget_deleted_records(_: Any) -> Any:
    """Where a log starts after DeleteRecords is not written down before the answer."""

    async def never(self: Any) -> None:
        return None

    return never


def _always(_: Any) -> Any:
    """Yes, whatever the question."""
    return lambda *_, **__: True


def _acknowledge_all_before(acked: Any) -> Any:
    """What is in flight before a batch that is written is written, too."""

    def inferring(self: PartitionSequences, batch: Any, base_offset: int, now: float) -> None:
        acked(self, batch, base_offset, now)
        for each in self._in_flight:
            if each is batch:
                break
            self._shown_written[each] = None

    return inferring


def _number_retries_anew(assign: Any) -> Any:
    """A batch that is sent again has a number that its leader does not know."""

    def numbering(self: TransactionManager, batch: Any) -> None:
        sequences = self._of(batch.topic_partition)
        if batch.base_sequence != NONE and sequences.remove(batch):
            sequences.assign(batch)
        else:
            assign(self, batch)

    return numbering


def _acknowledge_refused(written: Any) -> Any:
    """A batch that its leader has not appended counts as written."""
    return written | {error_codes.NOT_ENOUGH_REPLICAS}


#: What is wrong in the broker; the life of a broker finds it.
BROKER_BUGS: dict[str, Change] = {
    "acknowledge-before-append": (Log, "append", _acknowledge_before_append),
    "acknowledge-before-flush": (Log, "must_flush", _acknowledge_before_flush),
    "forget-deleted-records": (LogFolder, "write_start_offsets", _forget_deleted_records),
    "forget-repetitions": (producer_state, "find_duplicate", _forget_repetitions),
    "forget-to-fence": (Group, "_check_call", _forget_to_fence),
    "lose-commit-at-crash": (WriteQueue, "write", _lose_commit_at_crash),
    "skip-offset-at-roll": (Log, "append", _skip_offset_at_roll),
    "unmute-too-early": (Processor, "_hand_over", _unmute_too_early),
}


def _forget_a_marker(write_markers: Any) -> Any:
    """The first partition of a transaction gets no marker."""

    def forgetting(self: TransactionCoordinator, transaction: Any, logs: Any, level: int) -> Any:
        first, *rest = logs or [None]
        transaction.partitions.pop(first, None)
        return write_markers(self, transaction, rest, level)

    return forgetting


def _commit_offsets_at_once(_: Any) -> Any:
    """The offsets of a transaction do not wait for its end."""

    def committing(self: GroupStore, _producer_id: int, group: str, offsets: Any, done: Any) -> Any:
        return self.commit(group, offsets, done)

    return committing


def _read_undecided(_: Any) -> Any:
    """Readers of committed records get whatever there is."""
    return property(lambda self: self.high_watermark)


def _mark_before_storing(decide: Any) -> Any:
    """The markers are written before the decision is stored."""

    def hasty(self: TransactionCoordinator, transaction: Any, following: Any, done: Any) -> None:
        before = transaction.current
        transaction.current = following
        failures = _Failures(transaction.id, logging.WARNING)
        self._write_markers(transaction, list(transaction.partitions), failures)
        transaction.current = before
        decide(self, transaction, following, done)

    return hasty


def _restore_as_commit(has_decided: Any) -> Any:
    """After a crash, whatever was decided is committed."""

    def committing(self: Any, producer_id: int, epoch: int) -> bool:
        decided: bool = has_decided(self, producer_id, epoch)
        if decided:
            object.__setattr__(self, "state", TransactionState.PREPARE_COMMIT)
        return decided

    return committing


def _keep_epoch_of_fenced(_: Any) -> Any:
    """Batches of any epoch are taken into a transaction."""

    def lenient(self: Transaction[Any], producer_id: int, epoch: int) -> Any:
        del producer_id, epoch
        self._check_not_busy()
        return self._get()

    return lenient


#: What is wrong with transactions; the bank finds it.
TRANSACTION_BUGS: dict[str, Change] = {
    "commit-offsets-at-once": (GroupStore, "pend", _commit_offsets_at_once),
    "forget-a-marker": (TransactionCoordinator, "_write_markers", _forget_a_marker),
    "mark-before-storing": (TransactionCoordinator, "_decide", _mark_before_storing),
    "read-undecided": (Log, "last_stable_offset", _read_undecided),
    "restore-as-commit": (StoredTransaction, "has_decided", _restore_as_commit),
    "take-any-epoch": (Transaction, "check_producer", _keep_epoch_of_fenced),
}

#: What is wrong in our producer; its first batches find it.
PRODUCER_BUGS: dict[str, tuple[Change, ...]] = {
    "acknowledge-refused": ((completion, "_WRITTEN", _acknowledge_refused),),
    # The success of a batch acknowledges those before it, and the first batches of an epoch at a
    # partition may be several in flight: a leader that knows none of them takes any of them first.
    "infer-written": (
        (PartitionSequences, "may_pipeline", _always),
        (PartitionSequences, "acked", _acknowledge_all_before),
    ),
    # That is told from the offsets; here the order of the records still goes.
    "pipeline-to-a-stranger": ((PartitionSequences, "may_pipeline", _always),),
    "number-retries-anew": ((TransactionManager, "assign", _number_retries_anew),),
}


def _membership_of_now(_: Any) -> Any:
    """Offsets are sent as the member that the consumer is now, not that was handed the records."""

    def group_metadata(self: ConsumerCoordinator) -> GroupMetadata:
        generation, member_id, _ = self._member.generation
        settings = self._settings
        return GroupMetadata(settings.group_id, generation, member_id, settings.instance_id)

    return property(group_metadata)


def _offsets_of_lost_partitions(_: Any) -> Any:
    """Offsets are sent though the partitions of the transaction's records were given up."""

    def offsets_to_send(self: Any, since: float) -> Any:
        del since
        return self.group_metadata, self._commits.take()

    return offsets_to_send


def _finish_with_block(close: Any) -> Any:
    """The normal end of a consumer's block finishes the record in hand."""

    async def finishing(self: ConsumerCoordinator, *, is_normal: bool) -> None:
        if is_normal:
            for state in self._subscription.assignment.states.values():
                state.finish()
        await close(self, is_normal=is_normal)

    return finishing


def _finish_by_interval(commit: Any) -> Any:
    """An auto-commit finishes the record in hand."""

    async def finishing(self: Commits, **keywords: Any) -> None:
        for state in self._subscription.assignment.states.values():
            state.finish()
        await commit(self, **keywords)

    return finishing


#: What is wrong in our consumers that commit by transactions; their workers find it.
EXACTLY_ONCE_BUGS: dict[str, tuple[Change, ...]] = {
    "membership-of-now": (
        (ConsumerCoordinator, "group_metadata", _membership_of_now),
        (ConsumerCoordinator, "offsets_to_send", _offsets_of_lost_partitions),
    ),
}

#: What is wrong in our consumers that commit by themselves; records that are cut short find it.
CUT_SHORT_BUGS: dict[str, tuple[Change, ...]] = {
    "finish-with-block": ((ConsumerCoordinator, "close", _finish_with_block),),
    "finish-by-interval": ((Commits, "commit_finished", _finish_by_interval),),
}
BUGS: dict[str, tuple[Change, ...]] = {
    **{name: (change,) for name, change in (BROKER_BUGS | TRANSACTION_BUGS).items()},
    **PRODUCER_BUGS,
    **EXACTLY_ONCE_BUGS,
    **CUT_SHORT_BUGS,
}


@contextmanager
def planted(name: str | None) -> Iterator[None]:
    """Have one of the bugs for as long as the block lasts; None for none.

    Raises:
        KeyError: there is none of this name.
    """
    with ExitStack() as changes:
        for change in BUGS[name] if name is not None else ():
            changes.enter_context(changed(*change))
        yield


@contextmanager
def changed(owner: Any, attribute: str, change: Callable[[Any], Any]) -> Iterator[None]:
    """Have an attribute changed for as long as the block lasts."""
    real = vars(owner).get(attribute)
    setattr(owner, attribute, change(real))
    try:
        yield
    finally:
        if real is None:
            delattr(owner, attribute)
        else:
            setattr(owner, attribute, real)
