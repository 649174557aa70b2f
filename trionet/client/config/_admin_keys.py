"""The keys that only admin clients have, and those whose default is another for them."""

from __future__ import annotations

from ...protocol._config_types import BOOLEAN, FROM_0, INT, INT_MAX, LIST, LONG, Row, between

ADMIN: tuple[Row, ...] = (
    ("bootstrap.controllers", LIST, (), None),
    ("connections.max.idle.ms", LONG, 300_000, None),
    ("default.api.timeout.ms", INT, 60_000, FROM_0),
    ("enable.metrics.push", BOOLEAN, False, None),
    ("retries", INT, INT_MAX, between(0, INT_MAX)),
)
