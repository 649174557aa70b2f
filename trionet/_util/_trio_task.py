"""The check that trio runs the current task."""

from __future__ import annotations

from typing import Final

import trio

_GUIDE: Final = "docs/howto/use-clients-without-trio.md"
WITHOUT_TRIO: Final = (
    "a program that uses asyncio runs them in a worker thread, or trio as a guest of its loop"
    f" ({_GUIDE})"
)
"""How programs without trio use what needs it, for :func:`check_trio`."""


def check_trio(what: str, otherwise: str = WITHOUT_TRIO) -> None:
    """Check that the caller is a task of trio.

    Without this, the first checkpoint would fail: under asyncio with ``Task got bad yield``.

    Args:
        what: what needs trio, in the plural.
        otherwise: what to do in a program without trio.

    Raises:
        RuntimeError: another library, such as asyncio, runs the caller.
    """
    if not trio.lowlevel.in_trio_task():
        raise RuntimeError(
            f"{what} need trio, which does not run this task; start the program with trio.run(main)"
            f" instead of asyncio.run(main()); {otherwise}"
        )
