"""Calls into the loop of a broker that runs in its own thread."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import attrs
import trio

from ..errors import LocalProtocolError

T = TypeVar("T")

ENDED = (
    "the broker has stopped, because its with block or the test that uses its fixture has ended;"
    " inspect it before then"
)


@attrs.frozen
class BrokerLoop:
    """A handle to the broker's loop for other threads.

    Attributes:
        token: the loop.
        nursery: runs what is started in the loop.
        ended: done when the loop has ended.
        thread: the id of the loop's thread.
    """

    token: trio.lowlevel.TrioToken
    nursery: trio.Nursery
    ended: Future[None]
    thread: int

    @property
    def is_here(self) -> bool:
        """Whether the caller is in the loop: in ``when``, or a function of ``response``."""
        return threading.get_ident() == self.thread

    def call(self, function: Callable[[], T], /) -> T:
        """Call a function in the loop, and return its result.

        Raises:
            trio.RunFinishedError: the broker has ended.
        """
        if self.is_here:
            return function()
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(function())
            except Exception as error:  # boundary: an error of the caller must not stop the broker
                future.set_exception(error)

        self._soon(run)
        return self.result(future)

    def run(self, function: Callable[..., Awaitable[T]], *arguments: Any) -> T:
        """Run an async function in the loop, and return its result.

        Raises:
            LocalProtocolError: the caller is in the loop.
            trio.RunFinishedError: the broker has ended.
        """
        if self.is_here:
            raise LocalProtocolError(
                "this call waits for the broker, so it cannot be made in the broker's own thread:"
                " neither in when= nor in a function that creates a response"
            )
        return self.result(self.start(function, *arguments)[0])

    def start(
        self, function: Callable[..., Awaitable[T]], *arguments: Any
    ) -> tuple[Future[T], Callable[[], None]]:
        """Start an async function in the loop. Returns its future, and a function that cancels it.

        The future is never done if the function is cancelled, or the broker ends before it.

        Raises:
            trio.RunFinishedError: the broker has ended.
        """
        future: Future[T] = Future()
        scope = trio.CancelScope()

        async def run() -> None:
            with scope:
                await trio.lowlevel.checkpoint()
                try:
                    future.set_result(await function(*arguments))
                except Exception as error:  # boundary: as in call
                    future.set_exception(error)

        def cancel() -> None:
            with suppress(trio.RunFinishedError):
                self.token.run_sync_soon(scope.cancel)

        self._soon(partial(self.nursery.start_soon, run))
        return future, cancel

    def _soon(self, function: Callable[[], object]) -> None:
        try:
            self.token.run_sync_soon(function)
        except trio.RunFinishedError:
            raise trio.RunFinishedError(ENDED) from None

    def result(self, future: Future[T]) -> T:
        """Wait for the result of a call in the loop.

        Raises:
            trio.RunFinishedError: the broker has ended before.
        """
        # A loop that crashes never runs the function.
        futures: list[Future[Any]] = [future, self.ended]
        wait(futures, return_when=FIRST_COMPLETED)
        if not future.done():
            raise trio.RunFinishedError(ENDED)
        return future.result()
