"""Names of certificates are mapped as Kafka's own SslPrincipalMapper maps them."""

from __future__ import annotations

import random

import pytest

from support.cache import Unavailable
from support.principals_by_java import (
    KAFKA_RULES,
    NAMES,
    mapped_by_java,
    mapped_by_us,
    random_rule,
)

RANDOM_RULES = 200


def test_names_are_mapped_as_by_kafka() -> None:
    rng = random.Random(1)
    rules = [
        *KAFKA_RULES,
        f"{KAFKA_RULES[0]},{KAFKA_RULES[1]}, DEFAULT",
        "RULE:(.*)/user/",
        *(random_rule(rng) for _ in range(RANDOM_RULES)),
    ]
    pairs = [(rule, name) for rule in rules for name in NAMES]
    try:
        theirs = mapped_by_java(pairs)
    except Unavailable as reason:
        pytest.skip(str(reason))

    ours = [mapped_by_us(*pair) for pair in pairs]

    different = [each for each in zip(pairs, theirs, ours, strict=True) if each[1] != each[2]]
    assert [] == different
    assert 500 < sum(verdict is not None for verdict in theirs) < len(pairs)
