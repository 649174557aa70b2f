"""What every test of the network layer may ask for."""

from __future__ import annotations

import pytest

from support.selecting import Link
from trionet.net.wire._readiness import ReadinessKind


@pytest.fixture(params=["poller", "socket"])
def kind(request: pytest.FixtureRequest) -> ReadinessKind:
    """Both readiness backends, one after the other."""
    param: ReadinessKind = request.param
    return param


@pytest.fixture(params=["poller", "socket", "poller under TLS", "socket under TLS"])
def link(request: pytest.FixtureRequest) -> Link:
    """Both of them with plaintext and with TLS: what holds for one holds for the other (S36)."""
    param: Link = request.param
    return param
