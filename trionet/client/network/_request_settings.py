"""Settings of a NetworkClient's requests."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class RequestSettings:
    """Settings of requests.

    Attributes:
        client_id: the client's name in requests (``client.id``).
        timeout_seconds: how long a response may take (``request.timeout.ms``).
        in_flight_max: the limit of requests in flight per node
            (``max.in.flight.requests.per.connection``).
        discover_versions: whether to send ApiVersions to each node; if not, the newest versions
            are used.
    """

    client_id: str = "trionet"
    timeout_seconds: float = 30.0
    in_flight_max: int = 5
    discover_versions: bool = True
