"""Compares a log with what must be in it: records, producers, transactions, and files."""

from __future__ import annotations

from log_lives.model import Model, Producer, Sent, records_of
from support.ledger import Violation
from support.log_agreement import content_of
from support.transactions import filtered
from trionet.broker.log import Log
from trionet.broker.log.state._producer_state import ProducerEntry, snapshots_among
from trionet.protocol.records._batch import iter_batches
from trionet.protocol.records._records import decode_batch


def check_producers(log: Log, model: Model) -> None:
    """Look at what changes with each append."""
    ends = log.start_offset, log.end_offset, log.last_stable_offset
    expected = model.start_offset, model.end_offset, model.last_stable_offset
    if ends != expected:
        raise Violation(f"start, end and last stable offset {ends}, not {expected}")
    _compare_producers(log, model, may_forget=False)


def check_all(log: Log, model: Model, *, may_forget: bool = False) -> None:
    """Look at everything.

    Args:
        log: one that is at rest.
        model: what must be in it.
        may_forget: whether producers may be forgotten that have no batch in the log, as after a
            damage. What is known of them must be right.
    """
    _compare_producers(log, model, may_forget=may_forget)
    _compare_records(log, model)
    _compare_aborted(log, model, may_forget=may_forget)
    if not may_forget:
        check_producers(log, model)
    _compare_committed(log, model)
    first = log._segments.all[0].base_offset
    stray = [each for each in snapshots_among(log.directory.names()) if each < first]
    if stray:
        raise Violation(f"snapshots at {stray}, though the log begins at {first}")


def lost_batches(log: Log, model: Model, flushed: int) -> set[int]:
    """The offsets of batches that are not there, though the log has later ones.

    Args:
        log: one that was not flushed before the power was lost.
        model: what may be in it.
        flushed: where the last flush ended; what was before it is there, unless it was removed.
    """
    content = content_of(log)
    found = {header.base_offset for _, header in iter_batches(content) if header.count}
    first = max(log.first_segment_offset, log.start_offset, flushed)
    return {
        each.offset
        for each in model.history
        if each.end_offset > first and each.offset not in found
    }


def known_of(log: Log) -> dict[int, Producer]:
    """What the log knows of its producers, as the model says it."""
    return {
        producer_id: Producer(
            entry.epoch, _batches(entry), entry.timestamp, entry.transaction_first_offset
        )
        for producer_id, entry in log.producers.items()
    }


def _batches(entry: ProducerEntry) -> tuple[Sent, ...]:
    return tuple(
        Sent(each.first_sequence, each.last_sequence, each.first_offset, each.last_offset)
        for each in entry.batches
    )


def _compare_producers(log: Log, model: Model, *, may_forget: bool) -> None:
    for producer_id in {*log.producers, *model.producers}:
        found, known = log.producers.get(producer_id), model.producers.get(producer_id)
        if known is None or (found is None and not may_forget):
            raise Violation(f"producer {producer_id}: {found}, not {known}")
        if found is not None and not _agree(found, known, may_forget=may_forget):
            raise Violation(f"producer {producer_id}: {found}, not {known}")


def _agree(found: ProducerEntry, known: Producer, *, may_forget: bool) -> bool:
    if (found.epoch, found.timestamp) != (known.epoch, known.timestamp):
        return False
    batches, stored = _batches(found), (*known.before, *known.batches)
    opened, first_offset = found.transaction_first_offset, known.first_offset
    if may_forget:
        # A scan knows what compaction has left, and a transaction from there on.
        is_later = first_offset >= 0 and (opened > first_offset or opened < 0)
        is_newest = not batches or batches[-1] == stored[-1]
        return is_newest and set(batches) <= set(stored) and (opened == first_offset or is_later)
    # Whatever else was stored may be known of a producer that was forgotten and came back.
    is_whole = batches[max(0, len(batches) - len(known.batches)) :] == known.batches
    return is_whole and set(batches) <= set(stored) and opened == first_offset


def _compare_records(log: Log, model: Model) -> None:
    start_offset = log.start_offset
    expected = {
        offset: record
        for offset, record in records_of(model.history).items()
        if offset >= start_offset
    }
    found = {
        offset: (key, value)
        for offset, key, value in _data(content_of(log))
        if offset >= start_offset
    }
    for offset, record in found.items():
        if expected.get(offset) != record:
            raise Violation(f"offset {offset}: {record}, not {expected.get(offset)}")
    if len(found) < len(expected):
        _check_removed(log, model, set(expected) - set(found))


def _check_removed(log: Log, model: Model, missing: set[int]) -> None:
    """Compaction removes what was aborted, and what a later record replaces."""
    newest: dict[bytes, int] = {}
    aborted = set()
    for batch in model.history:
        is_aborted = _is_aborted(model, batch.producer_id, batch.offset)
        for number, (key, _) in enumerate(batch.records):
            if is_aborted:
                aborted.add(batch.offset + number)
            elif batch.end_offset <= model.last_stable_offset:
                newest[key] = batch.offset + number
    lost = sorted(
        each
        for each in missing
        if each >= log.cleaned_to or (each not in aborted and each in newest.values())
    )
    if lost:
        raise Violation(f"the records at {lost} are lost; cleaned to {log.cleaned_to}")


def _is_aborted(model: Model, producer_id: int, offset: int) -> bool:
    return any(
        each.producer_id == producer_id and each.first_offset <= offset < each.last_offset
        for each in model.aborted
    )


def _compare_committed(log: Log, model: Model) -> None:
    """What a consumer with `read_committed` makes of the batches and of what is said of them."""
    whole, up_to = content_of(log), log.last_stable_offset
    content = b"".join(
        whole[position : position + header.size]
        for position, header in iter_batches(whole)
        if header.last_offset < up_to and header.count
    )
    start_offset = log.start_offset
    aborted = log.aborted_transactions(start_offset, up_to)
    found, _ = filtered(content, aborted, start_offset)
    read = {offset for offset, _ in found}
    producers = {
        offset: batch.producer_id
        for batch in model.history
        for offset in range(batch.offset, batch.end_offset)
    }
    for offset, _, _ in _data(content):
        if offset < start_offset:
            continue
        is_aborted = _is_aborted(model, producers[offset], offset)
        if (offset in read) == is_aborted:
            raise Violation(f"offset {offset} was {'' if is_aborted else 'not '}read")


def _data(content: bytes) -> list[tuple[int, bytes | None, bytes | None]]:
    return [
        (record[0], record[2], record[3])
        for position, header in iter_batches(content)
        if not header.is_control and header.count
        for record in decode_batch(content[position : position + header.size])
    ]


def _compare_aborted(log: Log, model: Model, *, may_forget: bool) -> None:
    expected = {(each.producer_id, each.last_offset): each for each in model.aborted}
    found = set()
    for entry in log.aborted_below(log.end_offset):
        found.add((entry.producer_id, entry.last_offset))
        known = expected.get((entry.producer_id, entry.last_offset))
        if known is None or not (
            entry.first_offset == known.first_offset
            or (may_forget and entry.first_offset > known.first_offset)
        ):
            raise Violation(f"{entry} in the index, not {known}")
    first = max(log.start_offset, log.cleaned_to)
    lacking = [
        each
        for key, each in expected.items()
        if key not in found and each.last_offset >= first
        if not (may_forget or each.last_offset in model.not_indexed)
    ]
    if lacking:
        raise Violation(f"{lacking} are not in the index")
