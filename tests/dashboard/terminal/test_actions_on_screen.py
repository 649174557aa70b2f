"""Every action of a dashboard in a terminal: asked for by key and as a command, done, and not.

``python3 tests terminal`` runs them.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
import trio

from support.processes import SAME_TRIONET
from support.seen_dashboard import (
    FOOT,
    assert_restored,
    start,
    status,
    title,
    wait_for_title,
)
from support.terminal import Terminal, needs_tmux, terminal
from support.trionet_process import trionet_broker_process
from trionet import Admin, open_admin, open_consumer, open_producer
from trionet.client._topic_partition import TopicPartition
from trionet.client.admin import ConfigResource, ConfigResourceType, NewTopic

pytestmark = [needs_tmux, pytest.mark.slow, pytest.mark.terminal]

T = TypeVar("T")
TOKEN = "a-token-of-this-broker"
SIZES = ((120, 40), (60, 15))


class Rig:
    """A terminal with a dashboard, and a client at the same broker.

    Args:
        screen: has the dashboard.
        address: of the broker.
    """

    def __init__(self, screen: Terminal, address: str) -> None:
        self.screen = screen
        self.address = address

    def ask(self, question: Callable[[Admin], Awaitable[T]]) -> T:
        """What a client says that asks the broker itself."""

        async def run() -> T:
            async with open_admin(self.address, client_id="asks") as admin:
                return await question(admin)

        return trio.run(run)

    def view(self, key: str, text: str, *, at: str = "") -> None:
        """Go to a view, with one row that has this name."""
        self.screen.press(key, key)
        wait_for_title(self.screen, text)
        if at:
            self.screen.press("/", "C-u")
            self.screen.type(at)
            self.screen.press("Enter")
            self.screen.wait_until(
                lambda _: re.search(rf"  1(?: of|  ).* filter {at}$", title(self.screen)),
                f"only {at}",
            )

    def fill_in(self, *answers: str) -> None:
        """Type answers, each in a field of its own."""
        for answer in answers:
            self.screen.press("C-u")
            self.screen.type(answer)
            self.screen.press("Enter")

    def refuse(self, key: str, question: str, *answers: str) -> None:
        """Ask for an action, and have it not done, in two ways."""
        for no in ("n", "Escape"):
            self.screen.press(key)
            self.fill_in(*answers)
            self.wait_for_question(question)
            self.screen.press(no)
            self.screen.wait_for(": cancelled")

    def do(self, key: str, question: str, *answers: str, done: str) -> None:
        """Have an action done."""
        self.screen.press(key)
        self.fill_in(*answers)
        self.wait_for_question(question)
        self.screen.press("y")
        self.wait_for_foot(done)

    def command(self, text: str, question: str, done: str) -> None:
        """Have an action done by its name."""
        self.screen.press(":")
        self.screen.type(text)
        self.screen.press("Enter")
        self.wait_for_question(question)
        self.screen.press("y")
        self.wait_for_foot(done)

    def wait_for_question(self, question: str) -> None:
        self.wait_for_foot(question)
        self.screen.wait_for("[y/N]")

    def wait_for_foot(self, text: str) -> None:
        """Wait for a text at the foot, which has more than one line where there is little room."""
        self.screen.wait_until(
            lambda shown: text in " ".join(" ".join(shown.rstrip("\n").split("\n")[-3:]).split()),
            f"{text!r} at the foot",
        )


@pytest.fixture(params=SIZES, ids=str)
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rig]:
    settings = {
        "metrics.listener": "http://127.0.0.1:0",
        "metrics.listener.token": TOKEN,
        "auto.create.topics.enable": "false",
    }
    columns, lines = request.param
    log, token = tmp_path / "log", tmp_path / "token"
    token.write_text(TOKEN)
    with (
        trionet_broker_process(settings=settings, log=log) as (address, _),
        terminal(columns, lines, SAME_TRIONET) as screen,
    ):
        url = re.search(r"metrics are at (\S+)/metrics", log.read_text())
        assert url is not None
        found = Rig(screen, address)
        found.ask(lambda admin: admin.create_topics([NewTopic("orders", 2)]))
        metrics = ["--metrics", url[1], "--metrics-token-file", str(token)]
        modes = start(screen, [address, *metrics])
        yield found
        screen.press("q")
        assert "0" == status(screen)
        assert_restored(screen, modes)


def test_topics_are_made_grown_and_deleted(rig: Rig) -> None:
    rig.view("5", "Topics")
    rig.screen.wait_for("orders")
    rig.refuse("C", "Create the topic new?", "new", "3", "")
    rig.screen.press("C")
    rig.fill_in("new", "0")
    rig.wait_for_foot("! partitions: must be an integer of at least 1")
    rig.screen.press("Escape")
    rig.wait_for_foot("create a topic: cancelled")
    assert {"orders"} == set(rig.ask(lambda admin: admin.list_topics()))

    rig.do("C", "Create the topic new?", "new", "3", "", done="created topic new with 3 partitions")
    rig.command("create-topic by-name 2 1", "Create the topic by-name?", "created topic by-name")
    rig.do("C", "Create the topic new?", "new", "", "", done="! create a topic: ")
    rig.view("5", "Topics", at="new")
    rig.refuse("N", "Increase new to 4 partitions?", "4")
    rig.do("N", "Increase new to 5 partitions?", "5", done="topic new now has 5 partitions")
    rig.do("N", "Increase new to 2 partitions?", "2", done="! add partitions: ")
    rig.command("add-partitions 6", "Increase new to 6 partitions?", "has 6 partitions")
    found = rig.ask(lambda admin: admin.describe_topics(["new", "by-name"])).checked()
    assert {"new": 6, "by-name": 2} == {name: len(each.partitions) for name, each in found.items()}

    rig.refuse("D", "Delete the topic new and all its records?")
    rig.do("D", "Delete the topic new and all its records?", done="deleted topic new")
    rig.view("5", "Topics", at="by-name")
    rig.command("delete-topic", "Delete the topic by-name", "deleted topic by-name")
    assert {"orders"} == set(rig.ask(lambda admin: admin.list_topics()))


def test_records_are_produced_and_seen(rig: Rig) -> None:
    rig.view("5", "Topics", at="orders")
    rig.refuse("P", "Write this record to orders?", "k", "v")
    rig.do("P", "Write this record to orders?", "key", '{"n": 1}', done="wrote orders partition")
    rig.do("P", "Write a tombstone to orders?", "key", "null", done="offset 1")
    rig.screen.press("Enter")
    wait_for_title(rig.screen, "Topics → orders")
    rig.do("P", "Write this record to orders?", "key", "3rd", done="offset 2")
    rig.screen.press("f")
    rig.screen.wait_for("3rd", '{"n": 1}')
    rig.command("produce key 4th", "Write this record to orders?", "offset 3")
    rig.screen.wait_for("4th")

    assert [b'{"n": 1}', None, b"3rd", b"4th"] == trio.run(records, rig.address)


async def records(address: str) -> list[bytes | None]:
    async with open_consumer(
        address, group_id="checks", topics="orders", auto_offset_reset="earliest"
    ) as consumer:
        return [(await anext(consumer)).value for _ in range(4)]


def test_settings_are_altered_and_taken_back(rig: Rig) -> None:
    topic = ConfigResource(ConfigResourceType.TOPIC, "orders")

    def retention() -> str | None:
        return (
            rig.ask(lambda admin: admin.describe_configs([topic]))
            .checked()[topic]["retention.ms"]
            .value
        )

    before = retention()
    rig.view("5", "Topics", at="orders")
    rig.screen.press("c")
    wait_for_title(rig.screen, "Topics → configs of topic orders")
    rig.screen.press("/")
    rig.screen.type("retention.ms !delete !local")
    rig.screen.press("Enter")
    rig.screen.wait_for("  1 of ", "retention.ms  ", "604800000")
    rig.refuse("A", "Set retention.ms of topic orders to 1000?", "1000")
    assert before == retention()
    question = "Set retention.ms of topic orders to"
    rig.do("A", f"{question} 1000?", "1000", done="topic orders: retention.ms set to 1000")
    assert "1000" == retention()
    rig.do("A", f"{question} soon?", "soon", done="! set a config: ")
    rig.command("alter 2000", f"{question} 2000?", "retention.ms set to 2000")
    back = "Reset retention.ms of topic orders to its default?"
    rig.refuse("U", back)
    assert "2000" == retention()
    rig.do("U", back, done="retention.ms reset to its default")
    assert before == retention()
    rig.view("b", "Brokers")
    rig.screen.wait_for("127.0.0.1")
    rig.screen.press("Enter")
    wait_for_title(rig.screen, "Brokers → configs of broker")
    rig.screen.wait_for("CONFIG", "advertised.listeners")


def test_groups_are_reset_and_deleted(rig: Rig) -> None:
    async def commit(admin: Admin) -> None:
        async with open_producer(rig.address) as producer:
            for _ in range(10):
                await producer.send("orders", b"x", partition=0)
        for group in ("away", "here"):
            (await admin.alter_group_offsets(group, {partition: 4})).checked()

    def committed() -> int:
        groups = rig.ask(lambda admin: admin.list_group_offsets(["away"])).checked()
        found = groups["away"].checked()[partition]
        assert found is not None
        return found.offset

    partition = TopicPartition("orders", 0)
    rig.ask(commit)
    rig.view("6", "Groups", at="away")
    all_topics = "in all its topics?"
    rig.refuse("R", f"Reset away to start {all_topics}", "start", "")
    assert 4 == committed()
    for to, expected in (("start", 0), ("+3", 3), ("7", 7), ("-2", 5), ("end", 10)):
        goes = f"Reset away to {to} {all_topics}"
        rig.do("R", goes, to, "", done="reset group away in 1 partitions")
        assert expected == committed()
    rig.screen.press("R")
    rig.fill_in("soon")
    rig.wait_for_foot("use start, end")
    rig.screen.press("Escape")
    rig.wait_for_foot("cancelled")
    rig.do("R", "Reset away to 1 in nothing?", "1", "nothing", done="has no committed offsets")
    rig.command("reset 2 orders", "Reset away to 2 in orders?", "reset group away")
    assert 2 == committed()
    rig.refuse("D", "Delete the group away and its offsets?")
    rig.do("D", "Delete the group away and its offsets?", done="deleted group away")
    rig.view("6", "Groups", at="here")
    rig.command("delete-group", "Delete the group here and its offsets?", "deleted group here")
    assert {} == rig.ask(lambda admin: admin.list_groups())


def test_a_connection_is_closed_by_who_has_the_token(rig: Rig) -> None:
    async def stay() -> None:
        for name in ("unwanted", "unloved"):
            async with open_admin(rig.address, client_id=name) as admin:
                await admin.describe_cluster()
                await trio.to_thread.run_sync(close, name)

    def close(name: str) -> None:
        rig.view("2", "Connections", at=name)
        if name == "unwanted":
            rig.refuse("K", "Close the connection of 127.0.0.1:")
            rig.do("K", "Close the connection of 127.0.0.1:", done="closed connection")
        else:
            rig.command("close", "Close the connection of 127.0.0.1:", "closed connection")
        rig.screen.press("8")
        rig.screen.wait_for("LOCAL_CLOSE")

    trio.run(stay)


def test_what_has_no_row_is_refused(rig: Rig) -> None:
    for key, text, actions in (
        ("5", "Topics", "DNP"),
        ("6", "Groups", "RD"),
        ("2", "Connections", "K"),
    ):
        rig.screen.press(key)
        wait_for_title(rig.screen, text)
        rig.screen.press("/")
        rig.screen.type("no such row")
        rig.screen.press("Enter")
        rig.screen.wait_for(FOOT)
        for action in actions:
            rig.screen.press(action)
            rig.wait_for_foot("select a row first")
            rig.screen.press("Home")
            rig.screen.wait_for(FOOT)


def wait_for_match(screen: Terminal, pattern: str) -> None:
    screen.wait_until(lambda _: re.match(pattern, title(screen)), f"a title like {pattern}")


def test_of_a_broker_that_is_gone_nothing_is_shown_as_if_it_were_there(
    screen: Terminal, tmp_path: Path
) -> None:
    settings = {"metrics.listener": "http://127.0.0.1:0"}
    log = tmp_path / "log"
    with trionet_broker_process(settings=settings, log=log) as (address, _):
        url = re.search(r"metrics are at (\S+)/metrics", log.read_text())
        assert url is not None
        start(screen, [address, "--metrics", url[1]])
        screen.wait_until(lambda text: re.search(r"requests .* \d\S*/s", text), "rates")
        for key, text in (("5", "Topics"), ("2", "trionet-dashboard"), ("3", "ApiVersions")):
            screen.press(key)
            screen.wait_for(text)

    header = re.compile(r"! not live for \S")
    screen.wait_until(lambda text: header.search(text.split("\n")[0]), "that it is not live")
    screen.wait_for(" ! http://127.0.0.1:")
    for key, aged in (("3", r"APIs  .*! as of .* ago"), ("2", r"Connections  .*! as of .* ago")):
        screen.press(key)
        wait_for_match(screen, aged)
        assert not re.search(r"\d/s", screen.text())
    screen.press("1")
    text = screen.wait_until(
        lambda text: re.search(r"requests .* -(?: |$)", text, re.MULTILINE), "no rate"
    )
    assert not re.search(r"\d/s| \d+ %", text)
    assert " live " not in text.split("\n")[0].replace("not live", "")

    port = int(address.rpartition(":")[2])
    settings = {"metrics.listener": url[1]}
    with trionet_broker_process(port=port, settings=settings):
        screen.wait_until(lambda text: text.split("\n")[0].endswith(" live"), "that it is back")
        screen.wait_until(lambda text: re.search(r"requests .* \d\S*/s", text), "rates again")
        assert " ! " not in screen.text()
        screen.press("q")
        assert "0" == status(screen)
