"""A broker with a crowd of clients, and what tells a dashboard of it."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from support import crowd
from support.processes import SAME_TRIONET, first_line, running
from support.trionet_process import trionet_broker_process

TOKEN: Final = "a-token-of-this-broker"


@contextlib.contextmanager
def crowded_broker(
    folder: Path, many: int = crowd.MANY
) -> Iterator[tuple[list[str], subprocess.Popen[bytes]]]:
    """Arguments of a dashboard, its address and its metrics with token; and the broker's process.

    Args:
        folder: for its log, and for a file with the token.
        many: how many clients there are, and as many of whatever else the crowd makes.
    """
    settings = {
        "metrics.listener": "http://127.0.0.1:0",
        "metrics.listener.token": TOKEN,
        "group.initial.rebalance.delay.ms": "0",
    }
    log, token = folder / "log", folder / "token"
    token.write_text(TOKEN)
    with trionet_broker_process(settings=settings, log=log) as (address, process):
        url = re.search(r"metrics are at (\S+)/metrics", log.read_text())
        assert url is not None
        come = [sys.executable, crowd.__file__, address, str(many)]
        with running(come, env=SAME_TRIONET) as clients:
            assert "ready" == first_line(clients)
            yield [address, "--metrics", url[1], "--metrics-token-file", str(token)], process
