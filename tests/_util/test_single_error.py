from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio

from trionet._util._single_error import raise_single_error


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


async def test_what_was_cancelled_beside_an_error_is_not_told() -> None:
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
