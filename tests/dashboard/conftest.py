"""A terminal for each test that looks at a dashboard in one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.processes import SAME_TRIONET
from support.terminal import Terminal, terminal


@pytest.fixture
def screen() -> Iterator[Terminal]:
    """A terminal of 120 columns and 40 lines."""
    with terminal(120, 40, SAME_TRIONET) as found:
        yield found
