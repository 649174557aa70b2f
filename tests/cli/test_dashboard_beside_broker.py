"""`trionet broker` and `trionet dashboard` in two terminals, with nothing set."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Iterator

import pytest
import trio

from support.ports import free_ports
from support.processes import SAME_TRIONET
from support.terminal import Terminal, close_connection_of, needs_tmux, terminal
from support.trionet_process import trionet_broker_process
from trionet import open_admin

pytestmark = [pytest.mark.slow, pytest.mark.terminal, needs_tmux]

DASHBOARD = [sys.executable, "-m", "trionet", "dashboard"]


@pytest.fixture
def screen() -> Iterator[Terminal]:
    with terminal(120, 30, SAME_TRIONET) as found:
        yield found


def header(screen: Terminal) -> str:
    return screen.screen()[0]


def test_the_inside_is_shown_and_a_connection_closed(screen: Terminal) -> None:
    with trionet_broker_process() as (address, _):
        screen.run([*DASHBOARD, address])
        screen.wait_for("(local socket)", "node 1", "live", "loop lag")

        async def stay() -> None:
            async with open_admin(address, client_id="unwanted") as admin:
                await admin.describe_cluster()
                await trio.to_thread.run_sync(close)

        def close() -> None:
            screen.press("2")
            screen.wait_for("unwanted")
            close_connection_of(screen, "unwanted")

        trio.run(stay)
        for key, text in (("3", "ApiVersions"), ("4", "PLAINTEXT"), ("8", "LOCAL_CLOSE")):
            screen.press(key)
            screen.wait_for(text)
        screen.press("q")
        screen.wait_for_prompt()


def test_it_waits_for_a_broker_and_notices_its_end(screen: Terminal) -> None:
    [port] = free_ports(1)
    screen.run([*DASHBOARD, f"localhost:{port}"])
    screen.wait_for("connecting")
    screen.wait_for(f"nothing listens at localhost:{port} (connection refused); trying again")
    assert "not live" in header(screen)

    with trionet_broker_process(port=port) as (_, process):
        screen.wait_until(lambda _: re.search(r"\(local socket\).* live", header(screen)), "live")
        process.send_signal(signal.SIGKILL)
        screen.wait_for("not live", f"nothing listens at localhost:{port}")
    screen.press("q")
    screen.wait_for_prompt()
