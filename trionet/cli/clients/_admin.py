"""Runs a command with an admin client."""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from ._connection import CONTROLLERS, SERVERS, client_settings, logging_to_stderr
from ._connection_errors import timeout_error

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin

#: The time limit for a first response from a broker, unless ``default.api.timeout.ms`` is set. It
#: is short because the address may be mistyped.
REACH_SECONDS: Final = 10.0
_TIMEOUT: Final = "default.api.timeout.ms"

Work = Callable[["Admin"], Awaitable[int]]


def run_with_admin(arguments: argparse.Namespace, work: Work) -> int:
    """Open an admin client with the connection options, and call ``work`` with the client.

    Args:
        arguments: the arguments, including the connection options.
        work: uses the client and returns the exit status.

    Raises:
        TrionetError: a setting is invalid, no broker can be reached, or ``work`` failed.
        KeyboardInterrupt: the user pressed Ctrl-C.
    """
    import trio

    with logging_to_stderr(arguments):
        return trio.run(_work, client_settings(arguments), work)


async def _work(settings: dict[str, str], work: Work) -> int:
    import trio

    from trionet._util._raising import raise_single_error
    from trionet.client.admin._admin import open_admin

    servers = settings.pop(SERVERS, None)
    with raise_single_error():
        async with open_admin(servers, settings) as admin:
            if _TIMEOUT not in settings:
                with trio.move_on_after(REACH_SECONDS) as late:
                    await admin.nodes()
                if late.cancelled_caught:
                    raise timeout_error(
                        servers or settings[CONTROLLERS],
                        REACH_SECONDS,
                        admin,
                        option=f"-X {_TIMEOUT}=60000",
                    )
            return await work(admin)
