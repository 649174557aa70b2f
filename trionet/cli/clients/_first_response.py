"""Waits for a broker when a command begins, and says why there was none.

**The choice.** If nothing listens at any bootstrap server, or its name does not exist, a command
ends after two seconds; see :meth:`.Admin.until_connected`. Otherwise it ends after
:data:`REACH_SECONDS`: a slow network makes servers silent, and a container that starts accepts
connections and closes them. Once a broker has responded, the client's own limits apply, so that a
command survives an outage. A limit given on the command line is a wish to wait for a broker, and
replaces both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from trionet.errors import CallTimedOutError, DisconnectedError

from ._connection import has_named_causes, release_log

if TYPE_CHECKING:
    from trionet.client._client_metrics import ClientStatistics

#: The time limit for a first response from a broker. It is short because the address may be
#: mistyped.
REACH_SECONDS: Final = 10.0
#: How long the log is held back at most, which is longer than connections may be refused.
HELD_SECONDS: Final = 3.0


class Client(Protocol):
    """An open producer, consumer or admin client."""

    def connection_problem(self) -> str: ...

    def statistics(self) -> ClientStatistics: ...

    async def until_connected(self) -> None: ...


async def connect(
    client: Client, *, address: str = "-b", option: str = "", waits: bool = False
) -> None:
    """Wait until a broker accepts requests, and then release the log.

    Args:
        client: the client of the command.
        address: the option that sets the address.
        option: the option that makes the command wait for a broker; empty if it has none.
        waits: whether that option was given; this call then waits for nothing.

    Raises:
        DisconnectedError: every broker refuses the connection; the message says which options help.
        TrionetError: raised by ``until_connected``.
    """
    import trio

    from trionet._util._raising import raise_single_error

    await trio.lowlevel.checkpoint()
    try:
        if not waits:
            with raise_single_error():
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(_release_log_later)
                    await client.until_connected()
                    nursery.cancel_scope.cancel(reason="connected")
    except DisconnectedError as error:
        release_log(discard=True)  # it says the same
        has_responded = client.statistics()["response-total"] > 0
        advice = [] if has_responded else [f"{address} sets the address"]
        if option:
            advice.append(f"{option} waits longer")
        options = f" ({', '.join(advice)})" if advice else ""
        raise DisconnectedError(f"{error}{options}") from error
    finally:
        release_log()


async def _release_log_later() -> None:
    """Write what is held back once it is not about refused connections: a server is silent."""
    import trio

    await trio.sleep(HELD_SECONDS)
    release_log()


def is_connected(client: Client) -> bool:
    """Return whether a broker has responded and no known broker is unreachable."""
    return client.statistics()["response-total"] > 0 and not client.connection_problem()


def timeout_error(
    servers: str, seconds: float, client: Client, *, option: str
) -> CallTimedOutError:
    """Return the error for a command that timed out, with the cause if it is known.

    A cause that the log has named is not repeated.

    Args:
        servers: the bootstrap servers.
        seconds: the time that the command waited.
        client: the client that waited.
        option: the option that raises the limit.
    """
    from trionet.client.network._reachability import UNREACHED

    why = client.connection_problem()
    if has_named_causes() and why.startswith(UNREACHED):
        why = UNREACHED
    if not why and is_connected(client):
        why = f"{servers} responded earlier but no longer does, or a leader cannot be reached"
    elif not why:
        why = f"{servers} has not responded"
    return CallTimedOutError(f"timed out after {seconds:g} s: {why}; raise the limit with {option}")
