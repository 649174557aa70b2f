"""Why a command has had no answer: nobody was there, or somebody who says nothing, or not this."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trionet.errors import CallTimedOutError

if TYPE_CHECKING:
    from trionet.client.statistics import ClientStatistics


def is_answered(statistics: ClientStatistics) -> bool:
    """Whether a broker has answered anything."""
    return statistics["response-total"] > 0


def unreached(
    servers: str, seconds: float, statistics: ClientStatistics, *, longer: str
) -> CallTimedOutError:
    """The error that says it.

    Args:
        servers: where the client looked.
        seconds: for how long.
        statistics: of the client, while it was still open.
        longer: the option that waits longer.
    """
    if is_answered(statistics):
        return CallTimedOutError(
            f"{servers} has answered, and did not finish this within {seconds:g} seconds: a leader"
            f" that cannot be reached, or a broker that hangs; {longer} waits longer"
        )
    if statistics["connection-count"]:
        return CallTimedOutError(
            f"{servers} takes connections, and has answered nothing within {seconds:g} seconds: a"
            " listener with another security.protocol, a broker that hangs, a proxy without one,"
            f" or something else than Kafka; {longer} waits longer"
        )
    return CallTimedOutError(
        f"no broker was reached at {servers} within {seconds:g} seconds; is it the right address"
        f" (-b)? {longer} waits longer"
    )
