"""Reading stores in threads that may never end."""

from __future__ import annotations

import threading
from functools import partial

import pytest
import trio
from trio.testing import MockClock

from trionet.errors import ConfigError
from trionet.net.tls._key_stores import (
    STORE_SECONDS_MAX,
    STORE_THREADS_MAX,
    in_bounded_time,
    in_store_thread,
)


async def test_what_the_function_returns_or_raises_comes_out() -> None:
    for call in (in_store_thread, in_bounded_time):
        assert 3 == await call(max, 1, 3)
        with pytest.raises(ZeroDivisionError):
            await call(divmod, 1, 0)


async def test_a_cancelled_reading_is_left_to_itself() -> None:
    end = threading.Event()
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(in_store_thread, end.wait))
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()
    assert scope.cancelled_caught
    end.set()


async def test_readings_that_never_end_are_given_up_and_take_no_thread_from_others(
    autojump_clock: MockClock,
) -> None:
    end = threading.Event()
    began_at = trio.current_time()
    for _ in range(STORE_THREADS_MAX + 1):
        with pytest.raises(ConfigError, match="could not be read within 10 s"):
            await in_bounded_time(end.wait)
    assert (STORE_THREADS_MAX + 1) * STORE_SECONDS_MAX == trio.current_time() - began_at
    assert 0 == trio.to_thread.current_default_thread_limiter().borrowed_tokens
    end.set()
