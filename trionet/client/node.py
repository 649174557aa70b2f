"""A broker as a client knows it."""

from __future__ import annotations

import attrs


@attrs.frozen
class Node:
    """One broker of a cluster.

    Attributes:
        id: the broker's ``node.id``; below zero for one that is only known from
            ``bootstrap.servers``.
        host: the name or address that it tells clients to connect to.
        port: its port.
        rack: where it stands; None if it does not say.
    """

    id: int
    host: str
    port: int
    rack: str | None = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port} (node {self.id})"
