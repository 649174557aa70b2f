"""What the dashboard shows: the broker or cluster, of which the header speaks."""

from __future__ import annotations

from typing import Final

import attrs

#: What the client ids of a dashboard's own connections begin with, unless the user has set another.
CLIENT_ID: Final = "trionet-dashboard"


@attrs.frozen
class About:
    """The broker or cluster that the dashboard shows.

    Attributes:
        source: the address, such as ``PLAINTEXT://127.0.0.1:9092``.
        via: how it is read, such as ``local socket``; empty if unknown or obvious.
        software: the name and version of the broker's software, if reported.
        node_id: the id of the broker whose network layer is shown.
        cluster_id: the id of the cluster.
        uptime_seconds: the time since the broker started.
        listeners: the addresses on which the broker listens.
        controller: the id of the cluster's controller.
    """

    source: str = ""
    via: str = ""
    software: str | None = None
    node_id: int | None = None
    cluster_id: str | None = None
    uptime_seconds: float | None = None
    listeners: tuple[str, ...] = ()
    controller: int | None = None
