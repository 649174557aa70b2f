"""Scenarios of the feature transaction.version; each leaves it at level 2."""

from __future__ import annotations

from typing import Final

from support.transaction_rules.calls import (
    TRANSACTION_VERSION,
    abort,
    add,
    commit,
    describe,
    features,
    fetch,
    init,
    produce,
    update_features,
)
from support.transaction_rules.names import named
from support.transaction_rules.partitions import timed_out
from support.transaction_rules.play import Finalized, Scenario, Topic

_UNKNOWN: Final = "nonsense.version"


def _level(level: int) -> dict[str, int]:
    return {TRANSACTION_VERSION: level}


FEATURES: Final[dict[str, Scenario]] = {
    "UpdateFeatures that change nothing": [
        update_features(_level(2)),
        update_features(_level(2), version=0),
        update_features(_level(2), version=1),
        update_features(_level(2), kind=2),
        update_features(_level(2), kind=3),
        update_features(_level(3)),
        update_features(_level(3), version=1),
        update_features(_level(3), version=0),
        update_features(_level(-1)),
        update_features(_level(-1), kind=3),
        update_features(_level(1)),
        update_features(_level(1), version=0),
        update_features(_level(1), kind=0),
        update_features(_level(1), kind=4),
        update_features(_level(1), kind=2, validate_only=True),
        update_features(_level(1), kind=2, validate_only=True, version=1),
        update_features(_level(0), kind=2, validate_only=True),
        update_features(_level(0), kind=3, validate_only=True),
        update_features({_UNKNOWN: 1}),
        update_features({_UNKNOWN: 1}, version=1),
        update_features({_UNKNOWN: 0}, kind=3),
        update_features({_UNKNOWN: 1, TRANSACTION_VERSION: 1}, kind=2),
        update_features({TRANSACTION_VERSION: 1, _UNKNOWN: 1}, kind=2, version=1),
        update_features({"": 1}),
        update_features({}),
        update_features({}, version=1),
        features(4),
    ],
    "UpdateFeatures to level 1 and back": [
        features(3),
        update_features(_level(1), kind=2),
        Finalized(1),
        features(3),
        features(4),
        update_features(_level(2), kind=2),
        update_features(_level(2), validate_only=True),
        update_features(_level(2)),
        Finalized(2),
        features(4),
    ],
    "UpdateFeatures to level 0 and back": [
        update_features(_level(0), version=0),
        update_features(_level(0), allow_downgrade=True, version=0),
        update_features(_level(0), kind=3, version=1),
        Finalized(0),
        features(3),
        features(4),
        update_features(_level(2), version=0),
        Finalized(2),
        features(4),
    ],
    "both protocols at level 1": [
        Topic("a"),
        update_features(_level(1), kind=2).quiet,
        Finalized(1),
        init("x"),
        add("x", "a-0"),
        produce("x", "a-0", version=11),
        commit("x", version=4),
        describe("x"),
        produce("x", "a-0", 1),
        commit("x"),
        describe("x"),
        produce("x", "a-0"),
        init("x").at_once,
        init("x"),
        abort("x", who=named(0, 1)),
        fetch("a-0"),
        update_features(_level(2)).quiet,
        Finalized(2),
    ],
    "timeouts at level 1": [
        update_features(_level(1), kind=2).quiet,
        Finalized(1),
        *timed_out(1),
        update_features(_level(2)).quiet,
        Finalized(2),
    ],
    "a client of the second protocol at level 1 times out": [
        update_features(_level(1), kind=2).quiet,
        Finalized(1),
        *timed_out(2),
        update_features(_level(2)).quiet,
        Finalized(2),
    ],
    "both protocols at level 0": [
        Topic("a"),
        update_features(_level(0), kind=2).quiet,
        Finalized(0),
        init("x"),
        add("x", "a-0"),
        produce("x", "a-0", version=11),
        commit("x", version=4),
        init("x"),
        add("x", "a-0"),
        init("x").at_once,
        init("x"),
        describe("x"),
        produce("x", "a-0"),
        describe("x"),
        update_features(_level(2)).quiet,
        Finalized(2),
    ],
}
