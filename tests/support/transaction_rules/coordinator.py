"""Scenarios of the transaction coordinator: who a producer is, and how a transaction ends."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from support.transaction_rules.calls import (
    Addition,
    abort,
    add,
    add_offsets,
    add_several,
    commit,
    describe,
    describe_producers,
    end,
    features,
    find_coordinator,
    init,
    list_transactions,
    produce,
    versions,
)
from support.transaction_rules.names import INVENTED, STRANGER, current, exactly, named
from support.transaction_rules.play import Again, Call, Scenario, Step, Topic, WhileEnding

#: Epochs below 32,767 are given to clients: so many calls exhaust those of an id.
_EPOCHS: Final = 32_766
#: So many markers are hardly written before the next request of a connection is handled.
_WIDE: Final = 400


def _in_state(state: str, name: str) -> list[Step]:
    """A transactional id in a state, with two epochs before its own."""
    begun = [*([init(name).quiet] * 3), add(name, "a-0").quiet]
    if state == "Empty":
        return list(begun[:3])
    if state == "Ongoing":
        return list(begun)
    version = 5 if "v5" in state else 4
    return [*begun, end(name, commit="Commit" in state, version=version).quiet]


#: Complete states that a transaction of the first protocol leaves, and one of the second.
_STATES: Final = (
    "Empty",
    "Ongoing",
    "CompleteCommit v4",
    "CompleteAbort v4",
    "CompleteCommit v5",
    "CompleteAbort v5",
)


def _ends(state: str, version: int) -> Scenario:
    """Each identity and each result, once, in that state."""
    steps: list[Step] = [Topic("a")]
    for result in (True, False):
        for number, epochs in enumerate((0, -1, -2, 1)):
            name = f"{'c' if result else 'a'}{number}"
            steps += _in_state(state, name)
            steps += [
                end(name, commit=result, who=current(name, epochs), version=version),
                describe(name),
            ]
        name = f"{'c' if result else 'a'}-other-id"
        steps += _in_state(state, name)
        steps += [end(name, commit=result, who=STRANGER, version=version)]
    return steps


def _inits(state: str, version: int) -> Scenario:
    """InitProducerId with each expected identity, once, in that state."""
    steps: list[Step] = [Topic("a")]
    for number, epochs in enumerate((0, -1, -2, 1)):
        name = f"{number}"
        steps += [
            *_in_state(state, name),
            init(name, current(name, epochs), version=version).at_once,
            describe(name),
        ]
        name = f"{number}-again"
        steps += [
            *_in_state(state, name),
            # Twice where an epoch is remembered: the request and its repetition.
            init(name, current(name), version=version).at_once,
            init(name, current(name, epochs), version=version),
            describe(name),
        ]
    return [
        *steps,
        *_in_state(state, "other"),
        init("other", STRANGER, version=version),
        *_in_state(state, "none"),
        init("none", version=version).at_once,
        init("none", version=version),
        describe("none"),
    ]


def _while_ending(version: int, *, result: bool) -> Scenario:
    """What comes while markers are being written: the transaction is decided and not complete.

    Each request follows the EndTxn of a transaction of its own.
    """
    probes: list[Callable[[str], Call]] = [
        *(
            partial(_end_again, result=same, version=version, epochs=epochs)
            for same in (result, not result)
            for epochs in (0, 1, 2)
        ),
        lambda name: end(name, commit=result, who=STRANGER, version=version),
        init,
        lambda name: init(name, STRANGER),
        lambda name: add(name, "a-0"),
        lambda name: add(name, "a-0", current(name, 1)),
        lambda name: add(name, "a-0", STRANGER),
        lambda name: add_several(Addition(name, "a-0", verify_only=True)),
        lambda name: add_several(Addition(name, "a-0", current(name, 1), verify_only=True)),
        lambda name: add_offsets(name, "g"),
        lambda name: produce(name, "a-0", version=11),
    ]
    steps: list[Step] = [Topic("a", _WIDE)]
    for number, probe in enumerate(probes):
        name = f"x{number}"
        wide = add(name, " ".join(f"a-{index}" for index in range(_WIDE)))
        ending = end(name, commit=result, version=version)
        steps.append(WhileEnding(name, [init(name).quiet, wide.quiet], ending, probe(name)))
    # The same request, when the transaction is complete.
    return [
        *steps,
        end("x0", commit=result, who=named(0, 0), version=version).quiet,
        end("x0", commit=result, who=named(0, 0), version=version),
        describe("x0"),
    ]


def _end_again(name: str, *, result: bool, version: int, epochs: int) -> Call:
    return end(name, commit=result, who=current(name, epochs), version=version)


def _exhausted(*steps: Step) -> Scenario:
    """What comes after the last epoch that clients are given."""
    return [Topic("a"), init("x"), Again(init("x"), _EPOCHS), *steps]


_LAST: Final = named(0, _EPOCHS)
_LAST_BUT_ONE: Final = named(0, _EPOCHS - 1)

IDENTITIES: Final[dict[str, Scenario]] = {
    "advertised versions": [
        versions([0, 1, 2, 8, 9, 10, 22, 24, 25, 26, 27, 28, 57, 61, 65, 66]),
        features(3),
        features(4),
    ],
    "a producer without a transactional id": [
        init(None),
        init(None, version=0),
        init(None, timeout_ms=-1),
        init(None, timeout_ms=900_001),
        init(None, exactly(INVENTED, 3)),
        init(None, exactly(INVENTED, -1)),
        init(None, exactly(-1, 3)),
    ],
    "an empty transactional id": [
        init(""),
        init("", timeout_ms=0),
        init("", exactly(INVENTED, 3)),
        add("", "a-0", STRANGER),
        add_offsets("", "g", STRANGER),
        commit("", who=STRANGER),
        commit("", who=STRANGER, version=4),
        describe(""),
        find_coordinator(""),
    ],
    "the timeout of a transaction": [
        init("x", timeout_ms=0),
        init("x", timeout_ms=-1),
        init("x", timeout_ms=900_001),
        init("x", exactly(INVENTED, -1), timeout_ms=0),
        init("x", timeout_ms=900_000),
        describe("x"),
        init("x", timeout_ms=1),
        describe("x"),
        init("x", timeout_ms=0),
        describe("x"),
    ],
    "an unknown transactional id": [
        Topic("a"),
        add("x", "a-0", STRANGER),
        add("x", "a-0", STRANGER, version=0),
        add_several(Addition("x", "a-0", STRANGER), Addition("x", "a-0", STRANGER, True)),
        add_offsets("x", "g", STRANGER),
        commit("x", who=STRANGER),
        commit("x", who=STRANGER, version=0),
        produce("x", "a-0", who=STRANGER),
        produce("x", "a-0", who=STRANGER, version=11),
        produce("x", "a-0", who=STRANGER, version=10),
        describe("x"),
        init("x", exactly(INVENTED, 7)),
    ],
    "only one of the expected id and epoch": [
        init("x"),
        init("x", exactly(INVENTED, -1)),
        init("x", exactly(-1, 0)),
        init("x", exactly(-1, 5)),
        describe("x"),
    ],
    "InitProducerId v6": [init("x", version=6)],
    **{
        f"versions of InitProducerId: {version}": [
            init("x", version=version),
            init("x", version=version),
            *(
                [
                    init("x", named(0, 1), version=version),
                    init("x", named(0, 1), version=version),
                    init("x", named(0, 0), version=version),
                    init("x", STRANGER, version=version),
                ]
                if version >= 3
                else []
            ),
        ]
        for version in range(6)
    },
    **{
        f"InitProducerId v{version} in {state}": _inits(state, version)
        for version in (3, 4)
        for state in _STATES
    },
}

PARTITIONS: Final[dict[str, Scenario]] = {
    **{
        f"AddPartitionsToTxn v{version}": [
            Topic("a", 2),
            init("x"),
            init("x"),
            add("x", "a-0 b-0 a-1", version=version),
            add("x", "a-7", version=version),
            add("x", "__consumer_offsets-0 a-0", version=version),
            add("x", "a-0", current("x", -1), version=version),
            add("x", "a-0", current("x", 1), version=version),
            add("x", "a-0", STRANGER, version=version),
            describe("x"),
            add("x", "", version=version),
            describe("x"),
            add("x", "a-0", version=version),
            add("x", "a-0", version=version),
            add("x", "a-0 a-1", version=version),
            describe("x"),
            add("x", "b-0 a-0", STRANGER, version=version),
        ]
        for version in range(4)
    },
    **{
        f"AddPartitionsToTxn v{version}": [
            Topic("a", 2),
            init("x"),
            init("y"),
            init("y"),
            add_several(Addition("x", "a-0"), Addition("y", "a-0 a-1"), version=version),
            add_several(
                Addition("x", "a-0 a-1", verify_only=True),
                Addition("y", "a-1", current("y", -1)),
                version=version,
            ),
            add_several(Addition("x", "a-1 b-0"), Addition("y", "a-1"), version=version),
            add_several(Addition("x", "a-1", STRANGER, True), version=version),
            add_several(Addition("x", "a-1", current("x", 1), True), version=version),
            add_several(Addition("", "a-1", STRANGER), version=version),
            add_several(Addition("", "a-1", STRANGER, True), version=version),
            add_several(Addition("x", "__consumer_offsets-0"), version=version),
            describe("x", "y"),
            commit("x"),
            add_several(Addition("x", "a-0", verify_only=True), version=version),
        ]
        for version in (4, 5)
    },
    **{
        f"AddOffsetsToTxn v{version}": [
            init("x"),
            init("x"),
            add_offsets("x", "g", current("x", -1), version=version),
            add_offsets("x", "g", current("x", 1), version=version),
            add_offsets("x", "g", STRANGER, version=version),
            add_offsets("x", "g", version=version),
            add_offsets("x", "g", version=version),
            add_offsets("x", "", version=version),
            describe("x"),
            commit("x", version=4),
            describe("x"),
        ]
        for version in range(5)
    },
}

ENDS: Final[dict[str, Scenario]] = {
    **{
        f"EndTxn v{version} in {state}": _ends(state, version)
        for version in (0, 1, 2, 4, 5)
        for state in _STATES
    },
    **{
        f"while a transaction ends: v{version} {'commit' if result else 'abort'}": _while_ending(
            version, result=result
        )
        for version in (1, 4, 5)
        for result in (True, False)
    },
    "a transaction without partitions, v4": [
        init("x"),
        add("x", ""),
        commit("x", version=4),
        commit("x", version=4),
        abort("x", version=4),
        describe("x"),
    ],
    "empty aborts, v5": [
        init("x"),
        abort("x"),
        describe("x"),
        abort("x", who=named(0, 0)),
        abort("x"),
        abort("x", who=named(0, 0)),
        commit("x"),
        describe("x"),
    ],
    "an id that is initialized in a transaction": [
        Topic("a"),
        init("x"),
        add("x", "a-0"),
        init("x", timeout_ms=30_000).at_once,
        init("x", timeout_ms=30_000),
        describe("x"),
        commit("x", who=named(0, 0)),
        commit("x", who=named(0, 0), version=4),
        abort("x", who=named(0, 1)),
        add("x", "a-0", named(0, 1)),
        produce("x", "a-0", who=named(0, 0)),
        produce("x", "a-0", who=named(0, 1)),
        produce("x", "a-0"),
        commit("x"),
    ],
}

EXHAUSTION: Final[dict[str, Scenario]] = {
    "the last epoch: InitProducerId": _exhausted(
        init("x", _LAST),
        init("x", _LAST),
        init("x", _LAST_BUT_ONE),
        describe("x"),
        commit("x", who=_LAST),
        produce("x", "a-0", who=_LAST),
        produce("x", "a-0"),
        commit("x"),
    ),
    "the last epoch: EndTxn": _exhausted(
        produce("x", "a-0"),
        commit("x"),
        describe("x"),
        describe_producers("a-0"),
        commit("x", who=_LAST),
        abort("x", who=_LAST),
        commit("x", who=_LAST_BUT_ONE),
        init("x", _LAST),
        describe("x"),
    ),
    "the last epoch: an open transaction is fenced": _exhausted(
        produce("x", "a-0"),
        init("x").at_once,
        init("x"),
        describe("x"),
        describe_producers("a-0"),
        abort("x", who=_LAST),
    ),
}

SHOWN: Final[dict[str, Scenario]] = {
    "ListTransactions": [
        Topic("a"),
        init("empty"),
        init("open"),
        add("open", "a-0"),
        init("committed"),
        add("committed", "a-0"),
        commit("committed"),
        init("aborted"),
        add("aborted", "a-0"),
        abort("aborted", version=4),
        list_transactions(),
        list_transactions(version=0),
        list_transactions(states=["Ongoing"]),
        list_transactions(states=["Ongoing", "Empty"]),
        list_transactions(states=["ongoing"]),
        list_transactions(states=["Ongoing", "Nonsense", "Other"]),
        list_transactions(states=["Dead", "PrepareEpochFence"]),
        list_transactions(producers=[named(0, 0), named(2, 0)]),
        list_transactions(producers=[STRANGER]),
        list_transactions(producers=[named(0, 0)], states=["Ongoing"]),
        list_transactions(duration_ms=0),
        list_transactions(duration_ms=3_600_000),
        list_transactions(duration_ms=-2),
        list_transactions(pattern="open"),
        list_transactions(pattern="ope"),
        list_transactions(pattern=".*ed"),
        list_transactions(pattern="(open|empty)"),
        list_transactions(pattern="OPEN"),
        list_transactions(pattern="(?i)OPEN"),
        list_transactions(pattern=r"\w+"),
        list_transactions(pattern="[[:alpha:]]+"),
        list_transactions(pattern=r"\pL+"),
        list_transactions(pattern="o(?=p).*"),
        list_transactions(pattern=r"(o)pen\1"),
        list_transactions(pattern="[open"),
        list_transactions(pattern=""),
        list_transactions(pattern="open", version=2, states=["Empty"]),
    ],
    "DescribeTransactions": [
        Topic("a", 2),
        init("x"),
        describe("x"),
        add("x", "a-1 a-0"),
        describe("x"),
        commit("x"),
        describe("x", "unknown"),
        describe(),
    ],
    "FindCoordinator": [
        *(find_coordinator("x", version=version) for version in range(1, 7)),
        find_coordinator(""),
    ],
}
