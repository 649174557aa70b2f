from __future__ import annotations

import gc
import traceback
import weakref
from collections.abc import Awaitable, Callable

import pytest
import trio

from trionet._util._raising import again, raise_from, raise_single_error
from trionet.errors import ApiError, DisconnectedError


def raised(error: Exception) -> Exception:
    with pytest.raises(type(error)) as found:
        raise again(error)
    return found.value


@pytest.mark.parametrize("cause", [OSError("disk"), None])
def test_cause_is_kept_and_nothing_beside_it(cause: Exception | None) -> None:
    def fail() -> None:
        try:
            int("x")
        except ValueError:
            raise_from(DisconnectedError("no"), cause)

    with pytest.raises(DisconnectedError) as found:
        fail()

    assert cause is found.value.__cause__
    assert found.value.__suppress_context__


def test_an_error_is_freed_without_a_garbage_collection() -> None:
    freed: list[str] = []
    gc.disable()
    try:
        try:
            raise_from(DisconnectedError("no"), OSError("disk"))
        except DisconnectedError as error:
            weakref.finalize(error, freed.append, "error")
        assert ["error"] == freed
    finally:
        gc.enable()


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


def test_error_that_cannot_be_copied_is_raised_itself() -> None:
    class Two(Exception):
        def __init__(self, one: int, two: int) -> None:
            super().__init__(one + two)

    error = Two(1, 2)

    assert error is again(error)


async def in_hidden_nurseries(body: Callable[[trio.Nursery], Awaitable[None]]) -> None:
    with raise_single_error() as caller:
        async with trio.open_nursery(), trio.open_nursery() as nursery:
            with caller.block():
                await body(nursery)


async def test_an_error_leaves_hidden_nurseries_as_itself() -> None:
    error = KeyError("x")

    async def body(nursery: trio.Nursery) -> None:
        raise error

    with pytest.raises(KeyError) as raised:
        await in_hidden_nurseries(body)

    assert error is raised.value
    assert (None, None) == (error.__context__, error.__cause__)


async def test_the_error_of_a_task_does_too() -> None:
    error = KeyError("x")

    async def fail() -> None:
        raise error

    async def body(nursery: trio.Nursery) -> None:
        nursery.start_soon(fail)
        await trio.sleep_forever()

    with pytest.raises(KeyError) as raised:
        await in_hidden_nurseries(body)

    assert error is raised.value


async def test_its_own_context_and_cause_stay() -> None:
    async def body(nursery: trio.Nursery) -> None:
        try:
            raise KeyError("inner")
        except KeyError as cause:
            raise ValueError("outer") from cause

    with pytest.raises(ValueError, match="outer") as raised:
        await in_hidden_nurseries(body)

    assert isinstance(raised.value.__context__, KeyError)
    assert raised.value.__context__ is raised.value.__cause__


async def test_a_group_of_the_caller_stays_whole() -> None:
    own = ExceptionGroup("mine", [KeyError("x")])

    async def body(nursery: trio.Nursery) -> None:
        raise own

    with pytest.RaisesGroup(KeyError) as raised:
        await in_hidden_nurseries(body)

    assert own is raised.value


async def test_several_errors_stay_a_group() -> None:
    async def fail() -> None:
        raise ValueError("task")

    async def body(nursery: trio.Nursery) -> None:
        nursery.start_soon(fail)
        try:
            await trio.sleep_forever()
        finally:
            raise KeyError("body")

    with pytest.RaisesGroup(ValueError, KeyError, flatten_subgroups=True):
        await in_hidden_nurseries(body)


@pytest.mark.parametrize("own", [KeyError("x"), ExceptionGroup("mine", [KeyError("x")])])
async def test_consequence_of_the_error_of_a_task_is_dropped(own: Exception) -> None:
    error = ValueError("task")

    async def fail() -> None:
        raise error

    async def body() -> None:
        with raise_single_error((KeyError,)) as caller:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(fail)
                with caller.block():
                    raise own

    with pytest.raises(ValueError, match="task") as raised:
        await body()

    assert error is raised.value


async def test_consequence_is_dropped_beside_the_errors_of_several_tasks() -> None:
    async def fail(error: Exception) -> None:
        raise error

    async def body() -> None:
        with raise_single_error((KeyError,)) as caller:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(fail, ValueError("one"))
                nursery.start_soon(fail, OSError("two"))
                with caller.block():
                    raise KeyError

    with pytest.RaisesGroup(ValueError, OSError):
        await body()


async def test_error_of_the_caller_that_is_no_consequence_is_kept() -> None:
    own = ExceptionGroup("mine", [KeyError("x"), ValueError("y")])

    async def body() -> None:
        with raise_single_error((KeyError,)) as caller:
            async with trio.open_nursery():
                with caller.block():
                    raise own

    with pytest.RaisesGroup(KeyError, ValueError) as raised:
        await body()

    assert own is raised.value


async def test_what_was_cancelled_beside_an_error_is_not_reported() -> None:
    error = KeyError("x")

    with trio.CancelScope() as scope:

        async def body(nursery: trio.Nursery) -> None:
            nursery.start_soon(trio.sleep_forever)
            scope.cancel()
            try:
                await trio.sleep_forever()
            finally:
                raise error

        with pytest.raises(KeyError) as raised:
            await in_hidden_nurseries(body)

    assert error is raised.value


async def test_a_cancellation_goes_on_its_way() -> None:
    with trio.CancelScope() as scope:

        async def body(nursery: trio.Nursery) -> None:
            nursery.start_soon(trio.sleep_forever)
            scope.cancel()
            await trio.sleep_forever()

        await in_hidden_nurseries(body)

    assert scope.cancelled_caught
