"""Timeout errors of commands, with connection failures that explain the timeout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from trionet.errors import CallTimedOutError

if TYPE_CHECKING:
    from trionet.client._client_metrics import ClientStatistics


class Client(Protocol):
    """An open producer, consumer or admin client."""

    def connection_problem(self) -> str: ...

    def statistics(self) -> ClientStatistics: ...


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
