from __future__ import annotations

import traceback

import pytest

from trionet._util._raising import again, raise_from
from trionet.errors import ApiError, DisconnectedError


def raised(error: Exception) -> Exception:
    with pytest.raises(type(error)) as found:
        raise again(error)
    return found.value


def test_who_raises_an_error_again_changes_no_others() -> None:
    lost = ApiError(7, "lost")
    lost.__cause__ = OSError("no route")
    first = raised(lost)
    try:
        raise KeyError("of the second")
    except KeyError:
        second = raised(lost)

    assert {7} == {each.error_code for each in (first, second) if isinstance(each, ApiError)}
    assert "lost" == str(first) == str(second)
    assert lost.__cause__ is first.__cause__ is second.__cause__
    assert first.__context__ is None
    assert "of the second" in str(second.__context__)
    assert lost.__traceback__ is None
    assert lost.__context__ is None
    assert len(traceback.extract_tb(first.__traceback__)) == 1


def test_where_a_fault_came_from_stays_known() -> None:
    with pytest.raises(ValueError) as found:
        int("x")
    fault = found.value
    before = traceback.extract_tb(fault.__traceback__)

    ways = [traceback.extract_tb(raised(fault).__traceback__) for _ in range(3)]

    assert {len(before) + 1} == {len(way) for way in ways}
    assert before == traceback.extract_tb(fault.__traceback__)


def test_error_that_nobody_can_copy_is_raised_itself() -> None:
    class Two(Exception):
        def __init__(self, one: int, two: int) -> None:
            super().__init__(one + two)

    error = Two(1, 2)

    assert error is again(error)


@pytest.mark.parametrize("cause", [OSError("disk"), None])
def test_cause_is_told_and_nothing_beside_it(cause: Exception | None) -> None:
    def fail() -> None:
        try:
            int("x")
        except ValueError:
            raise_from(DisconnectedError("no"), cause)

    with pytest.raises(DisconnectedError) as found:
        fail()

    assert cause is found.value.__cause__
    assert found.value.__suppress_context__
