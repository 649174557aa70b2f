"""A few of the inputs of `python3 tests mutated-rows`, the same in every run."""

from __future__ import annotations

from random import Random

import pytest

pytest.importorskip("pyarrow", reason="the pipeline needs it")

from mutated_rows.attacks import ATTACKS

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", ATTACKS)
def test_no_input_ends_a_program(name: str) -> None:
    attack, share = ATTACKS[name]

    outcome = attack(Random(1), round(600 * share))

    assert outcome.tried >= 60
    assert not outcome.ended, "\n".join(outcome.ended[:3])
