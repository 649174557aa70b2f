"""Cleanings of random logs keep what the model keeps, and what Kafka keeps."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.comparison import compare
from compaction.kills import can_dump, kill_rounds
from compaction.table import check_tables
from support.cache import Unavailable
from support.kafka_cleaner import kafka_cleaner


@given(st.randoms(use_true_random=False))
@settings(max_examples=25)
def test_a_cleaning_keeps_what_the_model_keeps(rng: random.Random) -> None:
    compare(rng)


@given(st.randoms(use_true_random=False))
@settings(max_examples=12)
def test_a_consumer_makes_the_same_of_a_cleaned_log(rng: random.Random) -> None:
    trio.run(check_tables, rng)


@pytest.mark.interop
def test_a_cleaning_keeps_what_kafka_keeps() -> None:
    try:
        with kafka_cleaner() as cleaner:
            for seed in range(5):
                compare(random.Random(seed), cleaner)
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.mark.crash
def test_nothing_is_lost_when_a_cleaner_is_killed(tmp_path: Path) -> None:
    count = 20
    dump_every = count if can_dump() else count + 2
    for outcome in kill_rounds(count, 1, tmp_path / "data", dump_every):
        assert [] == outcome.wrong
