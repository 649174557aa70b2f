"""Short lives of logs hold every rule, and find what is planted."""

from __future__ import annotations

import pytest

from log_lives.__main__ import STEPS, run
from log_lives.planted import BUGS, planted

pytestmark = [pytest.mark.slow]

#: Each is found among so many.
SEEDS_FOR_BUG = 40


@pytest.mark.parametrize("seed", range(30))
def test_a_log_is_what_was_acknowledged_whatever_it_has_been_through(seed: int) -> None:
    wrong, _ = run(seed, STEPS)

    assert "" == wrong


def test_one_seed_gives_one_course_of_events() -> None:
    assert run(7, STEPS) == run(7, STEPS)


@pytest.mark.interpreted
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found(name: str) -> None:
    with planted(name):
        assert any(run(seed, STEPS)[0] for seed in range(SEEDS_FOR_BUG))
