"""One broker with a crowd of clients for all tests of this folder, and a terminal for each."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import crowd
from support.processes import SAME_TRIONET, first_line, running
from support.terminal import Terminal, terminal
from support.trionet_process import trionet_broker_process

TOKEN = "a-token-of-this-broker"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """What tells a dashboard of a broker with a crowd: its address, and its metrics with token."""
    folder = tmp_path_factory.mktemp("crowd")
    settings = {
        "metrics.listener": "http://127.0.0.1:0",
        "metrics.listener.token": TOKEN,
        "group.initial.rebalance.delay.ms": "0",
    }
    (folder / "token").write_text(TOKEN)
    with trionet_broker_process(settings=settings, log=folder / "log") as (address, _):
        url = re.search(r"metrics are at (\S+)/metrics", (folder / "log").read_text())
        assert url is not None
        with running([sys.executable, Path(crowd.__file__), address], env=SAME_TRIONET) as clients:
            assert "ready" == first_line(clients)
            yield [
                address,
                "--metrics",
                url[1],
                "--metrics-token-file",
                str(folder / "token"),
            ]


@pytest.fixture
def screen() -> Iterator[Terminal]:
    """A terminal of 120 columns and 40 lines."""
    with terminal(120, 40, SAME_TRIONET) as found:
        yield found
