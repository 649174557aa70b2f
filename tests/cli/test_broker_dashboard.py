"""``trionet broker --dashboard`` in a terminal, with clients that come and go."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
import trio

from support.processes import SAME_TRIONET
from support.terminal import Terminal, close_connection_of, needs_tmux, terminal
from trionet import open_admin, open_consumer, open_producer
from trionet.client.admin import NewTopic

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "-m", "trionet", "broker", "--listen", "127.0.0.1:0", "--dashboard"]


@pytest.fixture
def screen() -> Iterator[Terminal]:
    with terminal(120, 30, SAME_TRIONET) as found:
        yield found


def start(screen: Terminal) -> str:
    """The address of a broker, when its dashboard is on the screen."""
    screen.run(COMMAND)
    text = screen.wait_for("Overview", "PLAINTEXT://127.0.0.1:", "requests")
    found = re.search(r"PLAINTEXT://(127\.0\.0\.1:\d+)", text)
    assert found is not None
    return found[1]


@needs_tmux
def test_a_broker_is_seen_at_work_and_leaving_stops_it(screen: Terminal) -> None:
    address = start(screen)

    async def work() -> None:
        async with open_admin(address) as admin, open_producer(address) as producer:
            await admin.create_topics([NewTopic("orders", 2)])
            for number in range(20):
                await producer.send("orders", b'{"id": %d}' % number, partition=0)
            async with open_consumer(
                address,
                group_id="readers",
                topics="orders",
                client_id="a reader",
                auto_offset_reset="earliest",
            ) as consumer:
                await consumer.next_batch()
                await trio.to_thread.run_sync(look)

    def look() -> None:
        screen.press("2")
        screen.wait_for("a reader", "idle")
        screen.press("5")
        screen.wait_until(lambda text: re.search(r"orders +2 +1 +0 +0 +20", text), "the topic")
        screen.press("Enter")
        screen.wait_for("20 records", "LEADER")
        screen.press("Enter")
        screen.wait_for('{"id": 19}', "json")
        screen.press("6")
        screen.wait_until(
            # In between: what is unread, and the trend of the lag.
            lambda text: re.search(r"readers +Stable .* 1 +20 .* 1 +classic", text),
            "the group",
        )
        screen.press("t", "/")
        screen.type("alarm of")  # the tree has more tasks than the screen has lines
        screen.wait_for("alarm of processor 0", "trionet.net._alarm")
        screen.press("Enter")

    trio.run(work)
    screen.press("q")
    text = screen.wait_for_prompt()

    assert f"trionet broker ready: PLAINTEXT://{address}" in text
    screen.type("echo status=$?\n")
    screen.wait_for("status=0")
    with pytest.raises(OSError, match="connect to"):
        trio.run(trio.open_tcp_stream, "127.0.0.1", int(address.rpartition(":")[2]))


@needs_tmux
def test_a_connection_is_closed_from_the_dashboard(screen: Terminal) -> None:
    address = start(screen)

    async def stay() -> None:
        async with open_admin(address, client_id="unwanted") as admin:
            await admin.describe_cluster()
            await trio.to_thread.run_sync(close)

    def close() -> None:
        close_connection_of(screen, "unwanted")
        screen.press("8")
        screen.wait_for("LOCAL_CLOSE", "closed by an operator")

    trio.run(stay)
    screen.press("q")
    screen.wait_for_prompt()


@needs_tmux
@pytest.mark.terminal
def test_a_signal_stops_the_broker_and_gives_the_terminal_back(screen: Terminal) -> None:
    start(screen)

    screen.press("C-c")
    screen.wait_for_prompt()
    screen.type("echo status=$?\n")
    screen.wait_for("status=0")

    assert not screen.has_alternate_screen()


def test_without_a_terminal_it_says_what_else_there_is() -> None:
    done = subprocess.run(COMMAND, capture_output=True, text=True, env=SAME_TRIONET, check=False)

    assert (2, "") == (done.returncode, done.stdout)
    assert "--dashboard requires a terminal" in done.stderr
