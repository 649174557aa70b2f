"""Waits for the first response of a broker, and says why there was none.

**The problem.** A client retries for as long as its caller waits, since brokers restart. A command
whose address is mistyped, or whose broker was never started, would seem to hang.

**The choice.** If nothing listens at any bootstrap server, or its name does not exist, or it
rejects the credentials, a command ends after :data:`REFUSED_SECONDS`. Otherwise it ends after
:data:`REACH_SECONDS`: a slow network makes servers silent, and a container that starts accepts
connections and closes them. Once a broker has responded, the client's own limits apply, so that a
command survives an outage. A limit given on the command line is a wish to wait for a broker, and
replaces both.

**What was refused.** Ending at the first refusal: scripts start a broker and a command at once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from trionet.errors import CallTimedOutError, DisconnectedError

from ._connection import holding_log

if TYPE_CHECKING:
    from trionet.client._client_metrics import ClientStatistics

#: How long connections may be refused: long enough for a broker that starts beside the command.
REFUSED_SECONDS: Final = 2.0
#: The time limit for a first response from a broker. It is short because the address may be
#: mistyped.
REACH_SECONDS: Final = 10.0

T = TypeVar("T")


class Client(Protocol):
    """An open producer, consumer or admin client."""

    def connection_problem(self) -> str: ...

    def connection_refusal(self) -> str: ...

    def statistics(self) -> ClientStatistics: ...


async def first_response(
    client: Client, ask: Callable[[], Awaitable[T]], *, option: str = "", waits: bool = False
) -> T:
    """Return what ``ask`` returns, unless every bootstrap server refuses the connection.

    Args:
        client: the client that ``ask`` uses.
        ask: requests something; called again if there was no response within
            :data:`REFUSED_SECONDS`, and then without a time limit.
        option: the option that makes the command wait for a broker; empty if it has none.
        waits: whether that option was given.

    Raises:
        DisconnectedError: no bootstrap server accepts the connection.
        Exception: raised by ``ask``.
    """
    import trio

    if not waits:
        with holding_log() as log:
            with trio.move_on_after(REFUSED_SECONDS):
                return await ask()
            if why := client.connection_refusal():
                log.clear()  # it says the same
                advice = f", {option} waits longer" if option else ""
                raise DisconnectedError(
                    f"{why}; gave up after {REFUSED_SECONDS:g} s (-b sets the address{advice})"
                )
    return await ask()


def is_connected(client: Client) -> bool:
    """Return whether a broker has responded and no known broker is unreachable."""
    return client.statistics()["response-total"] > 0 and not client.connection_problem()


def timeout_error(
    servers: str, seconds: float, client: Client, *, option: str
) -> CallTimedOutError:
    """Return the error for a command that timed out, with the cause if it is known.

    Args:
        servers: the bootstrap servers.
        seconds: the time that the command waited.
        client: the client that waited.
        option: the option that raises the limit.
    """
    why = client.connection_problem()
    if not why and is_connected(client):
        why = f"{servers} responded earlier but no longer does, or a leader cannot be reached"
    elif not why:
        why = f"{servers} has not responded"
    return CallTimedOutError(f"timed out after {seconds:g} s: {why}; raise the limit with {option}")
