"""What is asked of sockets, whatever network they are of (see :mod:`.network`)."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Protocol, Self


class Socket(Protocol):
    """The socket of a connection, as far as it is not the business of its transport."""

    def fileno(self) -> int: ...

    def getsockname(self) -> Any: ...

    def getpeername(self) -> Any: ...

    def getsockopt(self, level: int, option: int, /) -> int: ...

    def setsockopt(self, level: int, option: int, value: int, /) -> None: ...

    def connect_ex(self, address: Any, /) -> int: ...

    def close(self) -> None: ...


class ListeningSocket(Protocol):
    """A socket that connections are accepted from; accepting never waits."""

    def accept(self) -> tuple[Socket, Any]: ...

    def getsockname(self) -> Any: ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...
