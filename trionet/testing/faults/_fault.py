"""One fault: which calls it meets, what it does with them, and how often it has."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self

import trio

from ..internals._broker_internals import InLoop, Inside
from ..requests._seen_requests import SeenRequest, SeenRequests, Which
from ._exchange import Exchange, Waiting
from ._fault_actions import Action

FOREVER: Final = math.inf


class Fault:
    """What :class:`Faults` gives for each fault that it is told.

    Usable in any thread, and in a ``with`` block, at whose end it is removed.

    Attributes:
        which: the requests it is for.
        hits: how many it has met.
        error: what the test's own function raised, ``when`` or one that makes an answer. The
            request went on as if there were no fault, and the fault is over. It is raised where the
            fault is removed, or else at the end of the broker.
    """

    def __init__(
        self,
        which: Which,
        action: Action,
        *,
        times: int | None,
        skip: int,
        delay: float,
        until: float,
        seen: SeenRequests,
        inside: Inside,
        in_loop: InLoop,
        on_remove: Callable[[], None] | None,
        now: Callable[[], float],
    ) -> None:
        self.which = which
        self.hits = 0
        self.error: Exception | None = None
        self._is_told = False
        self._action = action
        self._times = times
        self._skip = skip
        self._delay = delay
        self._until = until
        self._now = now
        self._seen = seen
        self._inside = inside
        self._in_loop = in_loop
        self._on_remove = on_remove
        self._is_removed = False

    @property
    def is_over(self) -> bool:
        """It meets no more requests, being removed or having met as many as it was to."""
        return (
            self._is_removed
            or self.error is not None
            or (self._times is not None and self.hits >= self._times)
            or self._until <= self._now()
        )

    @property
    def is_done(self) -> bool:
        """It is over, and there is nothing left to tell of it."""
        return self.is_over and (self.error is None or self._is_told)

    @property
    def requests(self) -> list[SeenRequest]:
        """The requests that it has met, as far as they are kept."""
        return [request for request in self._seen if self in request.faults]

    def remove(self) -> None:
        """Meet no more requests, and let those that are held or delayed go on.

        Nothing is left to do for it when the broker has ended.

        Raises:
            Exception: :attr:`error`, once.
        """
        with suppress(trio.RunFinishedError):
            self._in_loop(self.remove_now)
        self.raise_error()

    def raise_error(self) -> None:
        """Raise :attr:`error`, if it was not yet."""
        if self.error is not None and not self._is_told:
            self._is_told = True
            raise self.error

    def explain(self, error: BaseException) -> None:
        """Note on an error of a test that :attr:`error` came before it."""
        if self.error is not None and not self._is_told:
            self._is_told = True
            error.add_note(f"The fault {self} failed before: {self.error!r}")

    def remove_now(self) -> None:
        """As :meth:`remove`, for who is in the brokers' loop."""
        if not self._is_removed and self._on_remove is not None:
            self._on_remove()
        self._is_removed = True
        self._inside.cluster.purgatory.complete_all(self)

    def takes(self, request: SeenRequest) -> bool:
        """Whether this fault is what becomes of a request; counts it then."""
        if self.is_over:
            return False
        try:
            is_meant = self.which.matches(request)
        except Exception as error:  # boundary: `when` is the test's; it is told there
            self.error = error
            return False
        if not is_meant:
            return False
        if self._skip:
            self._skip -= 1
            return False
        self.hits += 1
        request.faults = (*request.faults, self)
        return True

    async def act(self, exchange: Exchange) -> None:
        """End a call that it has taken."""
        if not self._delay:
            await self._action.act(exchange, self.which)
            return
        await trio.lowlevel.checkpoint()
        if self._is_removed:  # meanwhile, by who knows only of calls that wait
            await self._action.act(exchange, self.which)
            return

        def go_on() -> None:
            exchange.start(lambda: self._action.act(exchange, self.which))

        Waiting.add(exchange, self, go_on, self._delay)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            self.explain(error)
        self.remove()

    def __str__(self) -> str:
        return f"{self.which}: {self._action}"

    def __repr__(self) -> str:
        times = "" if self._times is None else f" of {self._times}"
        return f"<Fault {self}; {self.hits}{times} hits>"


def check_timing(times: int | None, skip: int, delay: float) -> None:
    """Check how many requests a fault meets, how many pass before, and how long it keeps each.

    Raises:
        TypeError: one of these is no number, or not of its kind.
        ValueError: a number is not allowed.
    """
    _check_number("times", times, int, "1 or more, or None for all", is_optional=True)
    _check_number("skip", skip, int, "0 or more")
    _check_number("delay", delay, (int, float), "seconds, 0 or more")
    if (times is not None and times < 1) or skip < 0 or delay < 0:
        raise ValueError(
            f"times={times}, skip={skip}, delay={delay}: allowed are 1 or more times, or None"
            " for all, and 0 or more of the others"
        )


def _check_number(
    name: str,
    value: Any,
    kinds: type[int] | tuple[type[int], type[float]],
    allowed: str,
    *,
    is_optional: bool = False,
) -> None:
    is_one = isinstance(value, kinds) and not isinstance(value, bool) and not math.isnan(value)
    if not is_one and not (is_optional and value is None):
        raise TypeError(f"{name}={value!r} is not allowed; allowed: {allowed}")
