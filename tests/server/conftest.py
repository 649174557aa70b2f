"""What every test of the server may ask for."""

from __future__ import annotations

import pytest

from trionet.net.wire._readiness import ReadinessKind


@pytest.fixture(params=["poller", "socket"])
def kind(request: pytest.FixtureRequest) -> ReadinessKind:
    """Both readiness backends, one after the other."""
    param: ReadinessKind = request.param
    return param
