"""What has to be true of what a job has read and written, however often it was killed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

#: Of each kind of complaint; a run that is wrong is wrong in the same way many times.
SHOWN_MAX: Final = 5

Ends = Mapping[int, int]
"""The offset that a micro-batch ends before, by partition."""


class Row(NamedTuple):
    """One record of the topic that is read, wherever it was found.

    Attributes:
        partition: of that topic.
        offset: in it.
        key: as text.
        number: its value as text, which no other record has.
    """

    partition: int
    offset: int
    key: str
    number: str

    @property
    def place(self) -> tuple[int, int]:
        return self.partition, self.offset


def wrong_in_source(
    acknowledged: Mapping[str, tuple[int, int]], source: Sequence[Row]
) -> list[str]:
    """What was acknowledged is where the broker said, once, and in the order of its sending.

    Args:
        acknowledged: where each number is said to be.
        source: all that is in the topic, in the order of its partitions.
    """
    at = {row.number: row.place for row in source}
    counts = Counter(row.number for row in source)
    last: dict[str, int] = {}
    backwards = []
    for row in source:
        if int(row.number) <= last.get(row.key, -1):
            backwards.append(f"key {row.key}: {row.number} comes after {last[row.key]}")
        last[row.key] = int(row.number)
    return [
        *_some("was acknowledged, and is elsewhere or nowhere", acknowledged.items() - at.items()),
        *_some("was written twice", (number for number, count in counts.items() if count > 1)),
        *_some("out of order", backwards),
    ]


def wrong_in_files(
    source: Sequence[Row], cuts: Sequence[Ends], files: Mapping[int, Sequence[Row]]
) -> list[str]:
    """Each record was read once, in the micro-batch that it belongs to.

    Args:
        source: all that there was to read.
        cuts: where each micro-batch ends, as the checkpoint has it; the first begins at 0.
        files: what each micro-batch has read, in its last attempt.
    """
    read = Counter(row for rows in files.values() for row in rows)
    wrong = [
        *_some("was not read", set(source) - read.keys()),
        *_some("was read, and is not in the topic", read.keys() - set(source)),
        *_some("was read in two micro-batches or twice", (r for r, n in read.items() if n > 1)),
    ]
    if set(files) != set(range(len(cuts))):
        wrong.append(f"micro-batches 0 to {len(cuts) - 1} have files for {sorted(files)}")
    batches = _batches(cuts)
    for number, rows in files.items():
        odd = [row for row in rows if batches.get(row.place) != number]
        wrong += _some(f"is not of micro-batch {number}, which has it", odd)
    return wrong


def wrong_in_copy(
    source: Sequence[Row], cuts: Sequence[Ends], copies: Mapping[int, Sequence[Row]]
) -> list[str]:
    """Each record was written at least once, and those of a key in order.

    A micro-batch that is repeated writes a key's records again, from the first of them in that
    batch on: nothing else may be there twice, and nothing may be passed over.

    Args:
        source: all that there was to copy.
        cuts: as for :func:`wrong_in_files`, of the query that copies.
        copies: what each partition of the other topic has, in order.
    """
    batches = _batches(cuts)
    expected: dict[str, list[Row]] = defaultdict(list)
    for row in source:
        expected[row.key].append(row)
    found: dict[str, list[Row]] = defaultdict(list)
    homes: dict[str, set[int]] = defaultdict(set)
    for partition, rows in copies.items():
        for row in rows:
            found[row.key].append(row)
            homes[row.key].add(partition)
    wrong = _some("is in two partitions", (key for key, where in homes.items() if len(where) > 1))
    wrong += _some("is the key of copies alone", found.keys() - expected.keys())
    of_keys = []
    for key, rows in expected.items():
        firsts = _firsts_of_batches([batches.get(row.place, -1) for row in rows])
        of_keys += [f"key {key}: {each}" for each in _wrong_of_key(rows, firsts, found[key])]
    return wrong + _some("in the copy", of_keys)


def wrong_in_exact_copy(
    source: Sequence[Row], copies: Mapping[int, Sequence[Row]], *, in_order: bool
) -> list[str]:
    """Each record was written once.

    Args:
        source: all that there was to copy, in the order of its partitions.
        copies: what each partition of the other topic has, in order.
        in_order: whether the records of a key stay in order: no shuffle is between the topics.
    """
    expected, found = Counter(source), Counter(row for rows in copies.values() for row in rows)
    more = (found - expected).elements()
    wrong = [
        *_some("was lost", (expected - found).elements()),
        *_some("was doubled", (row for row in more if row in expected)),
        *_some("was written, and is not in the topic that is read", found.keys() - expected.keys()),
    ]
    homes: dict[str, set[int]] = defaultdict(set)
    for partition, rows in copies.items():
        for row in rows:
            homes[row.key].add(partition)
    wrong += _some("is in two partitions", (key for key, at in homes.items() if len(at) > 1))
    if in_order and not wrong:
        last: dict[str, Row] = {}
        for row in (row for rows in copies.values() for row in rows):
            before = last.get(row.key, row)
            if row.offset < before.offset:
                wrong.append(f"out of order: {row} comes after {before}")
            last[row.key] = row
    return wrong


def _firsts_of_batches(batches: Sequence[int]) -> list[int]:
    """Of each record of a key: which is the first one of its micro-batch."""
    firsts: list[int] = []
    for here, batch in enumerate(batches):
        goes_on = here > 0 and batches[here - 1] == batch
        firsts.append(firsts[-1] if goes_on else here)
    return firsts


def _wrong_of_key(
    rows: Sequence[Row], firsts: Sequence[int], found: Sequence[Row]
) -> Iterator[str]:
    at = {row: index for index, row in enumerate(rows)}
    here = -1
    for row in found:
        index = at.get(row)
        if index is None:
            yield f"{row} was written, and is not in the topic that is read"
            continue
        is_next = index == here + 1
        is_begin_of_replay = here >= 0 and index == firsts[here]
        if not is_next and not is_begin_of_replay:
            before = rows[here] if here >= 0 else "nothing"
            yield f"{row} was written after {before}"
        here = index
    if here != len(rows) - 1:
        yield f"the last is not {rows[-1]}"


def repeated(source: Sequence[Row], copies: Mapping[int, Sequence[Row]]) -> int:
    """How many records were written more than they had to be."""
    return sum(map(len, copies.values())) - len(source)


def _batches(cuts: Sequence[Ends]) -> dict[tuple[int, int], int]:
    """Which micro-batch each place belongs to."""
    numbers: dict[tuple[int, int], int] = {}
    none: Ends = {}
    for number, (begin, end) in enumerate(pairwise([none, *cuts])):
        for partition, last in end.items():
            for offset in range(begin.get(partition, 0), last):
                numbers[partition, offset] = number
    return numbers


def _some(what: str, found: Iterable[object]) -> list[str]:
    texts = sorted(map(str, found))
    more = [f"{what}: {len(texts) - SHOWN_MAX} more"] if len(texts) > SHOWN_MAX else []
    return [f"{what}: {text}" for text in texts[:SHOWN_MAX]] + more
