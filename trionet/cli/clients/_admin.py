"""Runs commands with an admin client: its options, its timeouts, and the topics they select."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from trionet._util._times import time_text

from ..arguments._parser import Run, argument, flag
from ..arguments._values import matching, parse_time, regex_argument
from ..terminal._output import add_format_arguments, print_message
from ._connection import (
    CONTROLLERS,
    SERVERS,
    Setting,
    add_connection_arguments,
    logging_to_stderr,
    resolve_settings,
)
from ._first_response import REACH_SECONDS, connect, timeout_error

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin
    from trionet.client.admin._topics import TopicDescription
    from trionet.errors import TrionetError


_TIMEOUT: Final = "default.api.timeout.ms"
_PATIENCE: Final = f"-X {_TIMEOUT}=60000"

#: The last arguments of each command with an admin client.
ADMIN_ARGUMENTS: Final = (add_format_arguments, add_connection_arguments)
#: The arguments that :func:`selected_names` reads.
TOPICS: Final = (argument("topics", "TOPIC", "topic names", nargs="+"), regex_argument("topics"))
ONLY_TOPICS: Final = argument("topics", "TOPIC", "only these topics (default: all)", nargs="*")
ALL_TOPICS: Final = (
    ONLY_TOPICS,
    regex_argument("topics"),
    flag("-i, --internal", "include Kafka's internal topics if no TOPIC is given"),
)

Prepared = TypeVar("Prepared")
Work = Callable[["Admin"], Awaitable[int]]


def with_admin(work: Callable[[Namespace, Admin], Awaitable[int]]) -> Run:
    """Return the function of a command that does all of its work with an admin client."""
    return lambda arguments: run_with_admin(arguments, partial(work, arguments))


def with_admin_after(
    prepare: Callable[[Namespace], Prepared],
) -> Callable[[Callable[[Namespace, Prepared, Admin], Awaitable[int]]], Run]:
    """Return a decorator as :func:`with_admin`, for a command that checks its arguments first.

    Args:
        prepare: raises ConfigError, or returns the second parameter of the decorated function.
    """
    return lambda work: (
        lambda arguments: run_with_admin(arguments, partial(work, arguments, prepare(arguments)))
    )


def run_with_admin(arguments: Namespace, work: Work) -> int:
    """Open an admin client with the connection options, and call ``work`` with the client.

    Args:
        arguments: the arguments, including the connection options.
        work: uses the client and returns the exit status.

    Raises:
        TrionetError: a setting is invalid, no broker can be reached, or ``work`` failed.
        KeyboardInterrupt: the user pressed Ctrl-C.
    """
    import trio

    with logging_to_stderr(arguments, holds=True):
        return trio.run(_work, resolve_settings(arguments), work)


async def _work(resolved: dict[str, Setting], work: Work) -> int:
    from trionet._util._raising import raise_single_error
    from trionet.client.admin._admin import open_admin

    settings = {each.key: each.value for each in resolved.values()}
    limit = resolved.get(_TIMEOUT)
    servers = settings.pop(SERVERS, None)
    with raise_single_error():
        async with open_admin(servers, settings) as admin:
            await _reach(admin, servers, settings, limit)
            return await work(admin)


async def _reach(
    admin: Admin, servers: str | None, settings: Mapping[str, str], limit: Setting | None
) -> None:
    """Wait for a first response, at most :data:`REACH_SECONDS` if no limit was given."""
    import trio

    # A limit from a file may be for all programs that use it, and is no wish to wait.
    waits = limit is not None and limit.origin == "-X"
    seconds = REACH_SECONDS if limit is None else float(limit.value) / 1000
    address = "-b" if servers else f"-X {CONTROLLERS}"
    with trio.move_on_after(seconds) as late:
        await connect(admin, address=address, option=_PATIENCE, waits=waits)
    if late.cancelled_caught:
        where = servers or settings[CONTROLLERS]
        raise timeout_error(where, seconds, admin, option=_PATIENCE)


async def selected_names(arguments: Namespace, admin: Admin) -> list[str]:
    """Return the topic names selected by the arguments ``topics``, ``regex`` and ``internal``.

    A command may have no ``regex`` or ``internal``.

    Raises:
        ConfigError: a regular expression is invalid.
        TrionetError: the topics could not be listed.
    """
    import trio

    await trio.lowlevel.checkpoint()
    names: list[str] = arguments.topics
    if names and not getattr(arguments, "regex", False):
        return list(dict.fromkeys(names))
    listed = await admin.list_topics(internal=getattr(arguments, "internal", False))
    return matching(names, listed) if names else sorted(listed)


async def describe_selected(
    arguments: Namespace, admin: Admin
) -> tuple[list[TopicDescription], list[TrionetError]]:
    """Return the descriptions of the selected topics, and the errors of failed topics.

    Raises:
        TrionetError: the topics could not be listed, or the request as a whole failed.
    """
    results = await admin.describe_topics(await selected_names(arguments, admin))
    errors = list(results.errors.values())
    for name in results.errors:
        del results[name]
    return list(results.checked().values()), errors


def parse_and_print_time(arguments: Namespace, text: str) -> int:
    """Return a time in milliseconds since the epoch, and print how it was understood.

    For operations that change something, where the wrong time does harm.

    Raises:
        ConfigError: the text is not a time.
    """
    now = datetime.now(UTC)
    time = parse_time(text, now)
    when = ", in the future" if time > parse_time("now", now) else ""
    print_message(arguments, f"{text} is {time_text(time)}{when}")
    return time
