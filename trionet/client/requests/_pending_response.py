"""The response that a task awaits."""

# Compiled by mypyc.

from __future__ import annotations

from typing import Any

import trio

from ..._util._raising import again
from ...errors import TrionetError
from ._response import ClientResponse


class PendingResponse:
    """A request's callback that lets a task await the response."""

    __slots__ = ("_body", "_ended", "_error")

    def __init__(self) -> None:
        self._ended = trio.Event()
        self._error: TrionetError | None = None
        self._body: Any = None

    def __call__(self, response: ClientResponse) -> None:
        self._body, self._error = response.body, response.error
        self._ended.set()

    def fail(self, error: TrionetError) -> None:
        """End the wait with an error: the callback will never be called."""
        self._error = error
        self._ended.set()

    async def wait(self) -> Any:
        """Wait for the response and return its body.

        Raises:
            TrionetError: there is no response; see :class:`.ClientResponse`.
        """
        await self._ended.wait()
        if self._error is not None:
            raise again(self._error)  # several requests may share this error object
        return self._body
