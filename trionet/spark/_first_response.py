"""Fails a query early if its cluster has never responded, and says why.

**The problem.** A client retries for as long as its caller waits, since brokers restart. A query
whose address is mistyped, or whose broker was never started, would fail only after minutes.

**The choice.** Until a broker has responded to this process, a query fails after two
seconds if nothing listens at any bootstrap server or none of their names exists, as a command does,
and after :data:`REACH_SECONDS` if no broker responds for another reason. Later the client's own
limits apply, so that a stream survives an outage. A limit that the user has set is a wish to wait
for a broker, and replaces both.

**What was refused.** Failing at the first refusal: scripts start a broker and a job at once. The
same limits in tasks that read, and in later micro-batches: Spark starts new processes in the middle
of a stream, which may be in the middle of an outage, and the driver has reached the cluster before.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import Final, TypeVar, TypeVarTuple

import trio

from .._util._raising import raise_single_error
from ..errors import AuthenticationError, DisconnectedError, TrionetError

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

#: The time limit for a first response.
REACH_SECONDS: Final = 10.0

#: The clusters that have responded to this process; only used in the loop's thread.
_responded: Final[set[Hashable]] = set()


async def with_first_response(
    until_connected: Callable[[], Awaitable[None]],
    problem: Callable[[], str],
    cluster: Hashable,
    limit: str,
    afn: Callable[[*Ts], Awaitable[T]],
    *args: *Ts,
    is_proof: bool = True,
) -> T:
    """Run an async function, but not for long if no broker responds to its requests.

    Args:
        until_connected: waits until a broker accepts requests; see :meth:`.Admin.until_connected`.
        problem: why none does.
        cluster: distinguishes clusters and how clients connect to them.
        limit: the option that makes the caller wait longer.
        afn: the function.
        args: the arguments of the function.
        is_proof: whether the brokers that own the data have responded if the function returns, so
            that this is not checked again. Metadata is also known from a bootstrap server whose
            cluster advertises addresses that cannot be reached.

    Raises:
        DisconnectedError: no broker accepts requests.
        AuthenticationError: a broker rejected the credentials, or TLS failed.
        Exception: any other error raised by the function.

    Cancellation: as of the function.
    """
    if cluster in _responded:
        return await afn(*args)
    why = ""
    found: list[T] = []

    async def watch() -> None:
        nonlocal why
        why = await _why_unreached(until_connected, problem, cluster)
        if why:
            nursery.cancel_scope.cancel(reason="no broker accepts requests")

    with raise_single_error():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            try:
                found.append(await afn(*args))
            except AuthenticationError as error:
                raise AuthenticationError(_with_options(str(error))) from error
            nursery.cancel_scope.cancel(reason="a broker has responded")
    if found:
        if is_proof:
            _responded.add(cluster)
        return found[0]
    raise DisconnectedError(
        f"{_with_options(why)}: start the broker, or correct the options that say where it is"
        f" (kafka.bootstrap.servers) and how to connect; {limit} sets how long to wait"
    )


def _with_options(text: str) -> str:
    """Name the option where a hint of the client names its setting."""
    return text.replace("set security.protocol=", "set kafka.security.protocol=")


async def _why_unreached(
    until_connected: Callable[[], Awaitable[None]], problem: Callable[[], str], cluster: Hashable
) -> str:
    """Return why no broker accepts requests; empty if one does, or the caller learns it itself."""
    await trio.lowlevel.checkpoint()
    try:
        with trio.move_on_after(REACH_SECONDS):
            await until_connected()
            _responded.add(cluster)
            return ""
    except DisconnectedError as error:
        return str(error)
    except TrionetError:
        # Such as rejected credentials: the requests fail in the same way.
        return ""
    why = problem() or "no bootstrap broker has responded"
    return f"{why}; gave up after {REACH_SECONDS:g} s"
