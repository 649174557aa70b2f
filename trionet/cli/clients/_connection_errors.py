"""Why a command has had no response, as far as its client knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from trionet.errors import CallTimedOutError

if TYPE_CHECKING:
    from trionet.client.metrics._statistics import ClientStatistics


class Client(Protocol):
    """A producer, a consumer or an admin client, while it is open."""

    def connection_problem(self) -> str: ...

    def statistics(self) -> ClientStatistics: ...


def is_answered(client: Client) -> bool:
    """Whether a broker has responded to anything, and all that is known of can be reached."""
    return client.statistics()["response-total"] > 0 and not client.connection_problem()


def unreached(servers: str, seconds: float, client: Client, *, longer: str) -> CallTimedOutError:
    """The error of a command that has waited in vain.

    Args:
        servers: where the client began.
        seconds: for how long.
        client: that waited.
        longer: the option that waits longer.
    """
    why = client.connection_problem()
    if not why and is_answered(client):
        why = f"{servers} has responded, and hangs, or a leader cannot be reached"
    elif not why:
        why = f"{servers} has not responded"
    return CallTimedOutError(f"no success within {seconds:g} seconds: {why}; {longer} waits longer")
