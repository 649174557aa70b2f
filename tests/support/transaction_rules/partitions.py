"""Scenarios of partitions: what is appended, what is read, and which markers are accepted."""

from __future__ import annotations

from typing import Final

from support.transaction_rules.calls import (
    Addition,
    Batch,
    abort,
    add,
    add_several,
    commit,
    delete_records,
    delete_topic,
    describe,
    describe_producers,
    fetch,
    init,
    list_offsets,
    markers,
    produce,
)
from support.transaction_rules.names import INVENTED, NOBODY, STRANGER, current, exactly, named
from support.transaction_rules.play import Gone, Scenario, Step, Topic, Until


def _both(partition: str, offset: int = 0) -> list[Step]:
    """What consumers of both isolation levels see."""
    return [
        fetch(partition, offset),
        fetch(partition, offset, committed=False),
        list_offsets(partition),
        list_offsets(partition, committed=False),
    ]


def _produces(version: int) -> Scenario:
    """Produce with and without the partition in the transaction."""
    return [
        Topic("a", 3),
        init("x"),
        init("x"),
        produce("x", "a-0", version=version),
        describe("x"),
        add("x", "a-1"),
        produce("x", "a-1", version=version),
        produce("x", "a-1", 1, version=version),
        produce("x", "a-1", 1, version=version),
        produce("x", "a-1", 5, version=version),
        produce("x", "a-1", 2, version=version, who=current("x", -1)),
        produce("x", "a-2", 0, version=version, who=current("x", -1)),
        produce("x", "a-2", 0, version=version, who=STRANGER),
        produce("x", "a-1 a-2", 2, version=version),
        produce(None, "a-1", 2, version=version, who=current("x")),
        produce("y", "a-1", 2, version=version, who=current("x")),
        produce("", "a-1", 2, version=version, who=current("x")),
        produce("x", {"a-1": Batch(3, is_transactional=False)}, version=version),
        produce(None, {"a-1": Batch(3, current("x"), is_transactional=False)}, version=version),
        produce(None, {"a-1": Batch(-1, NOBODY, is_transactional=False)}, version=version),
        produce("x", {"a-1": Batch(3, is_control=True)}, version=version),
        produce("x", {"a-1": Batch(-1)}, version=version),
        produce("x", {"a-1": Batch(3), "a-2": Batch(0, current("x", 1))}, version=version),
        produce("x", {"a-1": Batch(3), "a-2": Batch(0, STRANGER)}, version=version),
        produce("x", "b-0", version=version),
        describe_producers("a-0 a-1 a-2"),
        describe("x"),
        *_both("a-1"),
        commit("x", version=5 if version >= 12 else 4),
        *_both("a-1"),
        describe_producers("a-1"),
    ]


def _next_transactions(version: int) -> Scenario:
    """Sequences over the ends of transactions."""
    is_new = version >= 12
    ending = 5 if is_new else 4

    def begun() -> list[Step]:
        return [] if is_new else [add("x", "a-0")]

    return [
        Topic("a"),
        init("x"),
        *begun(),
        produce("x", "a-0", version=version),
        commit("x", version=ending),
        *begun(),
        produce("x", "a-0", 7, version=version),
        produce("x", "a-0", 0 if is_new else 1, version=version),
        abort("x", version=ending),
        produce("x", "a-0", 0, version=version, who=named(0, 0)),
        commit("x", version=ending, who=named(0, 0)),
        init("x"),
        *begun(),
        produce("x", "a-0", 3, version=version),
        produce("x", "a-0", version=version),
        commit("x", version=ending),
        fetch("a-0"),
        describe_producers("a-0"),
    ]


PRODUCED: Final[dict[str, Scenario]] = {
    **{f"Produce v{version}": _produces(version) for version in (3, 7, 9, 10, 11, 12)},
    **{
        f"sequences over transactions, Produce v{version}": _next_transactions(version)
        for version in (3, 10, 11, 12)
    },
    "a transactional batch without a producer id": [
        Topic("a"),
        init("x"),
        produce("x", {"a-0": Batch(-1, NOBODY)}),
        describe("x"),
        fetch("a-0"),
    ],
    **{
        f"batches of a later epoch, Produce v{version}": [
            Topic("a", 2),
            init("x"),
            add("x", "a-0"),
            produce("x", "a-0", version=version),
            produce("x", "a-1", who=current("x", 1), version=version),
            produce("x", "a-0", 1, who=current("x", 1), version=version),
            # What remains of the refused batch bars the sequences after its own.
            produce("x", "a-0", 1, version=version),
            produce("x", "a-0", 0, who=current("x", 1), version=version),
            produce("x", "a-0", 1, version=version),
            fetch("a-0", committed=False),
        ]
        for version in (11, 12)
    },
    "Produce by topic id": [
        Topic("a"),
        init("x"),
        produce("x", "a-0", version=13),
        describe("x"),
        commit("x"),
        fetch("a-0", version=13),
    ],
    "the first batch of an unknown producer": [
        Topic("a", 2),
        init("x"),
        add("x", "a-0"),
        produce("x", "a-0", 5, version=11),
        produce("x", "a-1", 5),
        produce("x", "a-1", 0),
        commit("x"),
    ],
    "a producer without transactions that becomes part of one": [
        Topic("a"),
        init("x"),
        produce(None, {"a-0": Batch(0, current("x"), is_transactional=False)}),
        produce("x", "a-0", 1),
        produce(None, {"a-0": Batch(2, current("x"), is_transactional=False)}),
        commit("x"),
        produce(None, {"a-0": Batch(2, named(0, 0), is_transactional=False)}),
        produce(None, {"a-0": Batch(0, current("x"), is_transactional=False)}),
        fetch("a-0"),
    ],
    "a verified transaction whose producer goes on after its end": [
        Topic("a"),
        init("x"),
        add("x", "a-0"),
        produce("x", "a-0", version=11),
        commit("x", version=4),
        produce("x", "a-0", 1, version=11),
        produce("x", "a-0", 1, version=10),
        produce("x", "a-0", 0, version=11),
        describe("x"),
    ],
}

READ: Final[dict[str, Scenario]] = {
    "interleaved transactions": [
        Topic("a"),
        init("x"),
        init("y"),
        init("z"),
        produce(None, {"a-0": Batch(-1, NOBODY, is_transactional=False)}),
        *_both("a-0"),
        produce("x", "a-0"),
        produce("y", "a-0"),
        produce(None, {"a-0": Batch(-1, NOBODY, is_transactional=False)}),
        *_both("a-0"),
        list_offsets("a-0", -2),
        list_offsets("a-0", -3),
        list_offsets("a-0", -3, committed=False),
        list_offsets("a-0", 0),
        list_offsets("a-0", 2_000_000_000_000),
        list_offsets("a-0", version=1),
        list_offsets("a-0", version=2),
        abort("y"),
        *_both("a-0"),
        list_offsets("a-0", -3),
        produce("z", "a-0"),
        commit("x"),
        *_both("a-0"),
        fetch("a-0", 3),
        fetch("a-0", 4),
        fetch("a-0", 5),
        fetch("a-0", 7),
        fetch("a-0", 9),
        abort("z"),
        *_both("a-0"),
        fetch("a-0", 5),
        fetch("a-0", version=4),
        fetch("a-0", version=5),
        describe_producers("a-0"),
    ],
    "an empty transaction leaves markers": [
        Topic("a"),
        init("x"),
        add("x", "a-0"),
        abort("x"),
        *_both("a-0"),
        add("x", "a-0"),
        commit("x", version=4),
        *_both("a-0"),
        describe_producers("a-0"),
    ],
    "records before the undecided ones are found by time, later ones are not": [
        Topic("a"),
        init("x"),
        produce("x", "a-0"),
        list_offsets("a-0", 0),
        list_offsets("a-0", 0, committed=False),
        commit("x"),
        list_offsets("a-0", 0),
    ],
    "DeleteRecords into an open transaction": [
        Topic("a"),
        init("x"),
        produce("x", "a-0"),
        produce("x", "a-0", 1),
        produce("x", "a-0", 2),
        delete_records("a-0", 2),
        *_both("a-0"),
        fetch("a-0", 2),
        fetch("a-0", 2, committed=False),
        delete_records("a-0", -1),
        *_both("a-0", 3),
        describe_producers("a-0"),
        abort("x"),
        *_both("a-0", 3),
        describe_producers("a-0"),
    ],
    "a topic that is deleted in an open transaction": [
        Topic("a"),
        Topic("b"),
        init("x"),
        produce("x", "a-0 b-0"),
        delete_topic("a"),
        Gone("a"),
        describe("x"),
        commit("x"),
        describe("x"),
        fetch("b-0"),
    ],
    "a topic that is deleted in an open transaction, and made again": [
        Topic("a"),
        init("x"),
        produce("x", "a-0"),
        delete_topic("a"),
        Gone("a"),
        Topic("a"),
        produce("x", "a-0", 1),
        produce("x", "a-0"),
        fetch("a-0", committed=False),
        commit("x"),
        fetch("a-0", committed=False),
        describe_producers("a-0"),
    ],
    "a topic that is deleted and made again without another batch": [
        Topic("a"),
        init("x"),
        produce("x", "a-0"),
        delete_topic("a"),
        Gone("a"),
        Topic("a"),
        commit("x"),
        fetch("a-0", committed=False),
        describe_producers("a-0"),
    ],
    "DescribeProducers": [
        Topic("a", 2),
        init("x"),
        init(None),
        produce("x", "a-0"),
        produce(None, {"a-1": Batch(0, named(1, 0), 3, is_transactional=False)}),
        describe_producers("a-0 a-1 a-2 b-0"),
    ],
}


def _marked(version: int, transaction_version: int) -> Scenario:
    """Markers that an administrator writes, in an open transaction of epoch 2 and after it."""

    def write(who_epochs: int, epochs: int = 0, *, commit: bool = False) -> Step:
        return markers(
            "a-0",
            named(0, 2 + who_epochs),
            commit=commit,
            epochs=epochs,
            transaction_version=transaction_version,
            version=version,
        )

    return [
        Topic("a"),
        init("x").quiet,
        init("x").quiet,
        init("x"),
        produce("x", "a-0"),
        write(-1),
        write(0),
        describe_producers("a-0"),
        write(0),
        write(1, 3),
        write(1, 3, commit=True),
        write(1, 2),
        write(0, 3),
        write(2, 4),
        *_both("a-0"),
        describe_producers("a-0"),
        produce("x", "a-0", 1),
        describe("x"),
        commit("x").at_once,
    ]


MARKED: Final[dict[str, Scenario]] = {
    "markers of version 1": _marked(1, 0),
    "markers of the first protocol": _marked(2, 0),
    "markers of level 1": _marked(2, 1),
    "markers of the second protocol": _marked(2, 2),
    "markers of an unknown level": _marked(2, 3),
    "markers of unknown producers and partitions": [
        Topic("a"),
        markers("a-0 a-1 b-0", STRANGER, commit=True),
        markers("a-0", STRANGER, commit=False, transaction_version=2),
        markers("a-0", exactly(INVENTED + 1, 5), commit=False, transaction_version=2),
        *_both("a-0"),
        describe_producers("a-0"),
    ],
    "an open transaction that an administrator ends, and its coordinator": [
        Topic("a"),
        init("x"),
        produce("x", "a-0"),
        markers("a-0", named(0, 0), commit=False),
        *_both("a-0"),
        produce("x", "a-0", 1),
        describe("x"),
        commit("x"),
        *_both("a-0"),
    ],
    "a marker of a negative epoch": [
        Topic("a"),
        markers("a-0", exactly(INVENTED, -1), commit=False),
        fetch("a-0"),
    ],
    "the highest epoch of markers": [
        Topic("a"),
        init("x"),
        produce("x", "a-0"),
        markers("a-0", named(0, 32_767), commit=False, transaction_version=2),
        markers("a-0", named(0, 32_767), commit=False, transaction_version=2),
        describe_producers("a-0"),
    ],
}


def timed_out(version: int) -> Scenario:
    """A transaction that its coordinator has aborted, and what its producer gets then."""
    produced, ending = (12, 5) if version == 2 else (11, 4)

    def late(name: str) -> list[Step]:
        return [
            init(name, timeout_ms=100),
            add(name, "a-0"),
            produce(name, "a-0", version=produced, who=current(name)),
            Until(name, "CompleteAbort"),
            describe(name),
        ]

    return [
        Topic("a"),
        *late("x"),
        fetch("a-0"),
        describe_producers("a-0"),
        produce("x", "a-0", 1, version=produced),
        add("x", "a-0"),
        add("x", "a-0", version=1),
        add_several(Addition("x", "a-0", verify_only=True)),
        commit("x", version=ending),
        commit("x", version=1),
        abort("x", version=ending),
        describe("x"),
        init("x", current("x"), timeout_ms=60_000),
        init("x", current("x"), timeout_ms=60_000),
        *late("y"),
        init("y", current("y")),
        describe("y"),
        *late("z"),
        init("z"),
        describe("z"),
        *late("w"),
        commit("w", version=ending),
        abort("w", version=1),
    ]


TIMED_OUT: Final[dict[str, Scenario]] = {
    f"a transaction that times out, protocol {version}": timed_out(version) for version in (1, 2)
}
