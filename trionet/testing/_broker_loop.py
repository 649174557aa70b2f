"""Calls into the loop of a broker that runs in its own thread."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import attrs
import trio

from ..errors import LocalProtocolError, TrionetError

# pytest leaves the frames of this module out of its reports.
__tracebackhide__ = True

T = TypeVar("T")

ENDED = (
    "the broker has stopped, because its with block or the test that uses its fixture has ended;"
    " inspect it before then"
)
FORKED = (
    "the broker runs in the process that opened it, and this process is a fork of it; here, clients"
    " can connect to the broker, and nothing else"
)


_DOCUMENTED = (TrionetError, LookupError, OSError, TypeError, ValueError)
_PATCHED_BY_GEVENT = ("select", "socket", "threading")


@attrs.frozen
class BrokerLoop:
    """A handle to the broker's loop for other threads.

    Attributes:
        token: the loop.
        nursery: runs what is started in the loop.
        ended: done when the loop has ended.
        thread: the id of the loop's thread.
        process: the id of the loop's process.
    """

    token: trio.lowlevel.TrioToken
    nursery: trio.Nursery
    ended: Future[None]
    thread: int
    process: int = attrs.field(factory=os.getpid)

    @property
    def is_here(self) -> bool:
        """Whether the caller is in the loop: in ``when``, or a function of ``response``."""
        return threading.get_ident() == self.thread

    def call(self, function: Callable[[], T], /) -> T:
        """Call a function in the loop, and return its result.

        Raises:
            trio.RunFinishedError: the broker has ended, or runs in another process.
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
        if os.getpid() != self.process:
            raise trio.RunFinishedError(FORKED)
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
        return result_of(future)


def result_of(future: Future[T]) -> T:
    """Wait for a future, and return its result or raise its error.

    An error of a kind that calls document is raised without the place in the broker where it
    occurred, which says nothing about the test that made the call.
    """
    error = future.exception()
    if isinstance(error, _DOCUMENTED):
        raise error.with_traceback(None)
    if error is not None:
        raise error
    return future.result()


def check_threads() -> None:
    """Check that a broker can run in a thread of this process.

    Raises:
        LocalProtocolError: gevent has replaced what the thread needs.
    """
    gevent = sys.modules.get("gevent.monkey")
    if gevent is not None and any(map(gevent.is_module_patched, _PATCHED_BY_GEVENT)):
        raise LocalProtocolError(
            "a broker cannot run in this process, whose threads and sockets are gevent's"
            " (gevent.monkey.patch_all()); run it in another process, such as with"
            " `trionet broker --memory`, and connect to it there"
        )
