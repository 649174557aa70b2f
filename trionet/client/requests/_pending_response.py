"""What one ``await client.request(...)`` waits for."""

# Compiled by mypyc.

from __future__ import annotations

from typing import Any

import trio

from ..._util._raising import again
from ...errors import TrionetError
from ._response import ClientResponse


class AwaitedAnswer:
    """The callback of a request that a task waits for."""

    __slots__ = ("_body", "_ended", "_error")

    def __init__(self) -> None:
        self._ended = trio.Event()
        self._error: TrionetError | None = None
        self._body: Any = None

    def __call__(self, response: ClientResponse) -> None:
        self._body, self._error = response.body, response.error
        self._ended.set()

    def fail(self, error: TrionetError) -> None:
        """There will be no outcome."""
        self._error = error
        self._ended.set()

    async def wait(self) -> Any:
        """The body of the answer.

        Raises:
            TrionetError: there is none; see :class:`.ClientResponse`.
        """
        await self._ended.wait()
        if self._error is not None:
            raise again(self._error)  # it may be that of many requests
        return self._body
