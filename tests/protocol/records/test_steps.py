"""Computations in steps, run to their end."""

from __future__ import annotations

import pytest

from trionet.protocol.records.message_sets._conversion import Steps, Work, run_steps


def test_the_result_comes_when_all_steps_are_done() -> None:
    def steps() -> Steps[list[int]]:
        yield None
        first = yield Work(0, lambda: 1)
        assert (yield None) is None
        return [first, (yield Work(10**9, lambda: 2))]

    assert run_steps(steps()) == [1, 2]


def test_what_work_raises_is_raised_where_it_was_asked_for() -> None:
    def fail() -> None:
        raise ValueError("no")

    def steps() -> Steps[str]:
        try:
            yield Work(0, fail)
        except ValueError as error:
            return f"caught {error}"
        return "nothing was raised"

    assert run_steps(steps()) == "caught no"


def test_what_the_computation_raises_is_raised() -> None:
    def steps() -> Steps[None]:
        yield None
        raise KeyError("ours")

    with pytest.raises(KeyError, match="ours"):
        run_steps(steps())
