"""How a NetworkClient makes requests."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class RequestSettings:
    """How requests are made.

    Attributes:
        client_id: what the client calls itself (``client.id``).
        timeout_seconds: how long an answer may take (``request.timeout.ms``).
        in_flight_max: requests under way to one node (``max.in.flight.requests.per.connection``).
        discover_versions: ask each node for its versions; without, the newest are used.
    """

    client_id: str = "trionet"
    timeout_seconds: float = 30.0
    in_flight_max: int = 5
    discover_versions: bool = True
