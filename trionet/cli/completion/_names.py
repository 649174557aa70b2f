"""The names that completion looks up: topics and groups of a cluster, and views.

``trionet __complete KIND LINE`` prints them for the scripts, one per line. Nothing is printed if
they cannot be found, because a message would end up in the middle of the user's command line.
"""

from __future__ import annotations

import argparse
import logging
import shlex
import sys
from collections.abc import Iterable, Sequence
from typing import Final, NoReturn

from trionet._util._logging import get_logger
from trionet.errors import TrionetError

from ..clients._connection import SERVERS, add_connection_arguments, client_settings

#: The command, which is in no list of commands.
COMMAND: Final = "__complete"
#: How long a shell may wait for a cluster, in seconds.
SECONDS_MAX: Final = 1.0
#: More names than anyone looks through would only make the shell slow.
NAMES_MAX: Final = 10_000


def print_names(arguments: Sequence[str]) -> int:
    """Print the names of a kind: ``topics``, ``groups`` or ``views``.

    Args:
        arguments: the kind, and the command line up to the cursor, whose connection options select
            the cluster.

    Returns:
        The exit status.
    """
    get_logger("trionet").addHandler(logging.NullHandler())  # else warnings are printed
    kind, line = (*arguments, "", "")[:2]
    try:
        names = _views() if kind == "views" else _names_in_cluster(kind, line)
    except (TrionetError, OSError):
        return 1
    # A name with a line feed would be two, and the control characters act on the terminal.
    shown = sorted(name for name in names if name.isprintable())
    sys.stdout.writelines(f"{name}\n" for name in shown[:NAMES_MAX])
    return 0


def _views() -> Iterable[str]:
    from trionet.dashboard.views import initial_views

    return initial_views()


def _names_in_cluster(kind: str, line: str) -> Iterable[str]:
    import trio

    settings = client_settings(connection(line))
    servers = settings.pop(SERVERS, "")
    return trio.run(_list, kind, servers, settings)


async def _list(kind: str, servers: str, settings: dict[str, str]) -> Iterable[str]:
    import trio

    from trionet.client.admin._admin import open_admin

    with trio.move_on_after(SECONDS_MAX):
        async with open_admin(servers, settings) as admin:
            if kind == "topics":
                return await admin.list_topics()
            return await admin.list_groups()
    return []


class _Lenient(argparse.ArgumentParser):
    """A parser that raises its errors."""

    def error(self, message: str) -> NoReturn:
        """Raise the error."""
        raise argparse.ArgumentError(None, message)


def connection(line: str) -> argparse.Namespace:
    """Return the connection options in a command line that is not complete yet."""
    parser = _Lenient("trionet completion", add_help=False, allow_abbrev=False)
    parser.set_defaults(prog=parser.prog)
    add_connection_arguments(parser)
    words = _words(line)
    while words:
        try:
            return parser.parse_known_args(words)[0]
        except argparse.ArgumentError:
            words.pop()  # such as an option without its value
    return parser.parse_known_args([])[0]


def _words(line: str) -> list[str]:
    """Split a line as a shell does; the last word may be in quotes that are still open."""
    for closing in ("", "'", '"'):
        try:
            return shlex.split(line + closing)
        except ValueError:
            continue
    return line.split()
