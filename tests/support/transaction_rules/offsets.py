"""Scenarios of offsets in transactions: who may commit them, and who sees them when."""

from __future__ import annotations

from typing import Final

from support.transaction_rules.calls import (
    Batch,
    Member,
    abort,
    add_offsets,
    commit,
    delete_group,
    delete_offsets,
    delete_topic,
    describe,
    fetch_offsets,
    init,
    list_offsets,
    plain_commit,
    produce,
    txn_commit,
)
from support.transaction_rules.names import STRANGER, current, named
from support.transaction_rules.play import Gone, Joined, Scenario, Step, Topic


def _seen(partitions: str = "a-0") -> list[Step]:
    """The committed offsets, as consumers ask for them, and administrators."""
    return [
        fetch_offsets("g", partitions),
        fetch_offsets("g", partitions, stable=False),
        fetch_offsets("g", None),
        fetch_offsets("g", None, stable=False),
    ]


def _commits(version: int) -> Scenario:
    """TxnOffsetCommit with and without the group in the transaction."""
    return [
        Topic("a", 2),
        init("x"),
        init("x"),
        txn_commit("x", "g", {"a-0": 1}, version=version),
        describe("x"),
        add_offsets("x", "g"),
        txn_commit("x", "g", {"a-0": 1, "a-7": 1, "b-0": 1}, version=version),
        txn_commit("x", "g", {"a-0": 2}, current("x", -1), version=version),
        txn_commit("x", "g", {"a-0": 2}, current("x", 1), version=version),
        txn_commit("x", "g", {"a-0": 2}, STRANGER, version=version),
        txn_commit("x", "", {"a-0": 2}, version=version),
        txn_commit("", "g", {"a-0": 2}, current("x"), version=version),
        txn_commit("y", "g", {"a-0": 2}, current("x"), version=version),
        txn_commit("x", "g", {"a-1": 5}, metadata="m" * 5_000, version=version),
        txn_commit("x", "g", {"a-0": 3}, metadata="m", version=version),
        *_seen("a-0 a-1"),
        commit("x", version=5 if version >= 5 else 4),
        *_seen("a-0 a-1"),
        txn_commit("x", "g", {"a-0": 4}, named(0, 1), version=version),
        txn_commit("x", "g", {"a-0": 4}, version=version),
        abort("x", version=5 if version >= 5 else 4),
        *_seen("a-0 a-1"),
    ]


def _members(version: int) -> Scenario:
    """Who commits: the checks of groups with members and without."""

    def by(generation: int = -1, member: str = "", instance: str | None = None) -> Step:
        return txn_commit(
            "x", "g", {"a-0": 1}, member=Member(generation, member, instance), version=version
        )

    def others(group: str, generation: int, member: str) -> Step:
        return txn_commit(
            "x", group, {"a-0": 1}, member=Member(generation, member), version=version
        )

    return [
        Topic("a"),
        init("x"),
        *([] if version >= 5 else [add_offsets("x", each) for each in ("g", "h", "i", "j")]),
        others("h", 0, ""),
        others("h", 1, "nobody"),
        others("h", -1, "nobody"),
        others("i", -1, ""),
        others("i", 0, "nobody"),
        others("i", -1, "nobody"),
        Joined("g", "m", "one"),
        by(),
        by(1, "m", "one"),
        by(1, "m"),
        by(0, "m"),
        by(2, "m"),
        by(-1, "m"),
        by(1),
        by(1, "nobody"),
        by(-1, "nobody"),
        by(1, "m", "two"),
        by(1, "nobody", "one"),
        by(-1, "", "two"),
        by(-1, "", "one"),
        commit("x"),
    ]


OFFSETS: Final[dict[str, Scenario]] = {
    **{f"TxnOffsetCommit v{version}": _commits(version) for version in range(6)},
    **{f"members, TxnOffsetCommit v{version}": _members(version) for version in (3, 4, 5)},
    "TxnOffsetCommit creates a group": [
        Topic("a"),
        init("x"),
        txn_commit("x", "g", {"a-0": 1}),
        delete_group("g"),
        commit("x"),
        *_seen(),
        delete_group("g"),
    ],
    "an offset of -1": [
        Topic("a"),
        init("x"),
        txn_commit("x", "g", {"a-0": -1}),
        *_seen(),
        commit("x"),
        *_seen(),
    ],
    "pending offsets of two transactions": [
        Topic("a", 2),
        init("x"),
        init("y"),
        txn_commit("x", "g", {"a-0": 1, "a-1": 1}),
        txn_commit("y", "g", {"a-0": 2}),
        *_seen("a-0 a-1"),
        commit("y"),
        *_seen("a-0 a-1"),
        commit("x"),
        *_seen("a-0 a-1"),
    ],
    "a plain commit after the transactional one wins": [
        Topic("a"),
        init("x"),
        txn_commit("x", "g", {"a-0": 1}),
        plain_commit("g", "a-0", 5),
        *_seen(),
        commit("x"),
        *_seen(),
    ],
    "a plain commit before the transactional one loses": [
        Topic("a"),
        init("x"),
        plain_commit("g", "a-0", 5),
        txn_commit("x", "g", {"a-0": 1}),
        *_seen(),
        commit("x"),
        *_seen(),
    ],
    "OffsetDelete of pending offsets": [
        Topic("a", 2),
        init("x"),
        plain_commit("g", "a-1", 5),
        txn_commit("x", "g", {"a-0": 1, "a-1": 2}),
        delete_offsets("g", "a-0 a-1 b-0"),
        *_seen("a-0 a-1"),
        commit("x"),
        *_seen("a-0 a-1"),
        delete_offsets("unknown", "a-0"),
    ],
    "offsets committed again after OffsetDelete in one transaction": [
        Topic("a"),
        init("x"),
        txn_commit("x", "g", {"a-0": 1}),
        delete_offsets("g", "a-0"),
        txn_commit("x", "g", {"a-0": 2}),
        *_seen(),
        commit("x"),
        *_seen(),
    ],
    "DeleteGroups with pending offsets": [
        Topic("a"),
        init("x"),
        plain_commit("g", "a-0", 5),
        txn_commit("x", "g", {"a-0": 1}),
        delete_group("g"),
        *_seen(),
        commit("x"),
        *_seen(),
        delete_group("g"),
    ],
    "a topic with pending offsets is deleted": [
        Topic("a"),
        Topic("b"),
        init("x"),
        txn_commit("x", "g", {"a-0": 1, "b-0": 1}),
        delete_topic("a"),
        Gone("a"),
        fetch_offsets("g", "b-0"),
        commit("x"),
        fetch_offsets("g", "b-0"),
    ],
    "an unknown group": [
        Topic("a"),
        *_seen(),
    ],
    "offsets and records in one transaction": [
        Topic("a"),
        init("x"),
        produce("x", "a-0"),
        txn_commit("x", "g", {"a-0": 1}),
        describe("x"),
        plain_commit("h", "a-0", 7),
        abort("x"),
        *_seen(),
        txn_commit("x", "g", {"a-0": 2}),
        produce("x", "a-0"),
        commit("x"),
        *_seen(),
        list_offsets("a-0"),
        txn_commit("x", "g", {"a-0": 3}, current("x", -1)),
        txn_commit("x", "g", {"a-0": 3}, current("x", -1), version=3),
        produce("x", {"a-0": Batch(0, current("x", -1))}),
    ],
    "a delayed TxnOffsetCommit after the end, first protocol": [
        Topic("a"),
        init("x"),
        add_offsets("x", "g"),
        txn_commit("x", "g", {"a-0": 1}, version=3),
        commit("x", version=4),
        txn_commit("x", "g", {"a-0": 2}, version=3),
        add_offsets("x", "g"),
        txn_commit("x", "g", {"a-0": 3}, version=3),
        abort("x", version=4),
        *_seen(),
    ],
}
