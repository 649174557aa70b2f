"""Asking a foreign cluster until it knows what it was told: brokers learn that a moment later."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import trio

T = TypeVar("T")

_PAUSE_SECONDS: Final = 0.05


async def eventually(ask: Callable[[], Awaitable[T]], is_so: Callable[[T], object]) -> T:
    """The first response that is so; the test's own limit ends what never is."""
    while True:
        answer = await ask()
        if is_so(answer):
            return answer
        await trio.sleep(_PAUSE_SECONDS)
