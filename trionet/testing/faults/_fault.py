"""One fault: which requests it matches, what it does with them, and how often it did."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self

import trio

from ..internals._broker_internals import BrokerInternals, InLoop
from ..requests._seen_requests import SeenRequest, SeenRequests, Which
from ._exchange import DelayedExchange, Exchange
from ._fault_actions import Action

FOREVER: Final = math.inf


class Fault:
    """A fault added by :class:`Faults`.

    Usable from any thread, and as a context manager that removes it at the end.

    Attributes:
        which: the requests that it matches.
        hits: how many requests it was applied to.
        error: raised by a function of the test, ``when`` or one that makes a response. The request
            was then handled normally and the fault ended. The error is raised again where the
            fault is removed, or else when the broker stops.
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
        inside: BrokerInternals,
        in_loop: InLoop,
        on_remove: Callable[[], None] | None,
        now: Callable[[], float],
    ) -> None:
        self.which = which
        self.hits = 0
        self.error: Exception | None = None
        self._is_reported = False
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
        """Whether it matches no more requests: removed, failed, expired or used up."""
        return (
            self._is_removed
            or self.error is not None
            or (self._times is not None and self.hits >= self._times)
            or self._until <= self._now()
        )

    @property
    def is_done(self) -> bool:
        """Whether it is over and its error, if any, was reported."""
        return self.is_over and (self.error is None or self._is_reported)

    @property
    def requests(self) -> list[SeenRequest]:
        """The requests that it was applied to, as far as they are kept."""
        return [request for request in self._seen if self in request.faults]

    def remove(self) -> None:
        """Match no more requests, and continue those that are held or delayed.

        Does nothing once the broker has stopped.

        Raises:
            Exception: :attr:`error`, once.
        """
        with suppress(trio.RunFinishedError):
            self._in_loop(self.remove_now)
        self.raise_error()

    def raise_error(self) -> None:
        """Raise :attr:`error`, if that was not done yet."""
        if self.error is not None and not self._is_reported:
            self._is_reported = True
            raise self.error

    def explain(self, error: BaseException) -> None:
        """Add a note about :attr:`error` to an error of the test that followed it."""
        if self.error is not None and not self._is_reported:
            self._is_reported = True
            error.add_note(f"The fault {self} failed before: {self.error!r}")

    def remove_now(self) -> None:
        """Remove it; for callers in the broker's loop."""
        if not self._is_removed and self._on_remove is not None:
            self._on_remove()
        self._is_removed = True
        self._inside.cluster.purgatory.complete_all(self)

    def applies_to(self, request: SeenRequest) -> bool:
        """Whether the fault applies to a request, which is counted then."""
        if self.is_over:
            return False
        try:
            is_meant = self.which.matches(request)
        except Exception as error:  # boundary: `when` is the test's; reported there
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
        """Apply the fault to a call."""
        if not self._delay:
            await self._action.act(exchange, self.which)
            return
        await trio.lowlevel.checkpoint()
        if self._is_removed:  # meanwhile; the call was not in the purgatory yet
            await self._action.act(exchange, self.which)
            return

        def go_on() -> None:
            exchange.start(lambda: self._action.act(exchange, self.which))

        DelayedExchange.add(exchange, self, go_on, self._delay)

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
    """Validate how often, after how many requests and after which delay a fault applies.

    Raises:
        TypeError: a value has the wrong type.
        ValueError: a value is out of range.
    """
    _check_number("times", times, int, "1 or more, or None for all", is_optional=True)
    _check_number("skip", skip, int, "0 or more")
    _check_number("delay", delay, (int, float), "seconds, 0 or more")
    if (times is not None and times < 1) or skip < 0 or delay < 0:
        raise ValueError(
            f"invalid times={times}, skip={skip} or delay={delay}: times must be 1 or more, or None"
            " for all; skip and delay must be 0 or more"
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
        raise TypeError(f"invalid {name}={value!r}; allowed: {allowed}")
