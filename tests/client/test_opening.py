"""What is said of a client that is opened with something wrong, and of a program without trio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

import trionet
from trionet.testing import open_raw_peer

Open = Callable[..., AbstractAsyncContextManager[Any]]

CLIENTS: list[Open] = [trionet.open_producer, trionet.open_consumer, trionet.open_admin]
SETTINGS = r"expected settings as the second argument, such as \{'client.id': 'shop'\}, not"


async def opened(open_it: Open, *arguments: Any, **keywords: Any) -> None:
    async with open_it(*arguments, **keywords):
        pass


@pytest.mark.parametrize("config", ["orders", ["orders"], 9092])
@pytest.mark.parametrize(
    ("open_it", "advice"),
    [
        (trionet.open_producer, r"a topic is the first argument of send\(\)"),
        (
            trionet.open_consumer,
            "the topics to read are the keyword topics, such as topics='orders'",
        ),
        (trionet.open_admin, r"topics are arguments of its calls, such as create_topics\(\)"),
    ],
)
async def test_what_is_no_settings_is_told_where_topics_go(
    open_it: Open, advice: str, config: Any
) -> None:
    with pytest.raises(TypeError, match=f"{SETTINGS} .*; {advice}$"):
        await opened(open_it, "localhost:9092", config)


async def test_a_network_client_says_what_its_settings_are() -> None:
    with pytest.raises(TypeError, match="settings must be ClientSettings or None, not 'orders'"):
        await opened(trionet.open_network_client, "localhost:9092", "orders")


async def test_a_consumer_of_one_topic_names_it_in_the_plural() -> None:
    with pytest.raises(
        trionet.ConfigError, match=r"topic: unknown key; .* such as topics='orders'"
    ):
        await opened(trionet.open_consumer, "localhost:9092", topic="orders")


@pytest.mark.parametrize("open_it", CLIENTS)
async def test_time_is_limited_by_trio(open_it: Open) -> None:
    with pytest.raises(
        trionet.ConfigError, match=r"timeout: unknown key; write `with trio\.move_on_after\(5\):`"
    ):
        await opened(open_it, "localhost:9092", timeout=5)


@pytest.mark.parametrize("open_it", CLIENTS)
async def test_keys_of_settings_are_texts(open_it: Open) -> None:
    with pytest.raises(TypeError, match="the keys of settings must be str, not int: 1"):
        await opened(open_it, "localhost:9092", {1: 2})


@pytest.mark.parametrize("servers", [9092, b"localhost:9092", {"bootstrap.servers": "a:1"}])
@pytest.mark.parametrize("open_it", [*CLIENTS, trionet.open_network_client])
async def test_servers_are_texts(open_it: Open, servers: Any) -> None:
    with pytest.raises(
        trionet.ConfigError,
        match=r"bootstrap\.servers: expected a string such as 'localhost:9092', or a list of them",
    ):
        await opened(open_it, servers)


@pytest.mark.parametrize("open_it", CLIENTS)
async def test_servers_may_be_named_as_other_clients_name_them(open_it: Open) -> None:
    await opened(open_it, bootstrap_servers="localhost:9092", config={"client.id": "shop"})


async def test_a_broker_is_told_by_its_address() -> None:
    async with trionet.open_broker() as broker:
        with pytest.raises(
            trionet.ConfigError, match=r"not <Broker .*; pass its bootstrap_servers"
        ):
            await opened(trionet.open_producer, broker)


# Without trio.

STARTED = r"trio\.run\(main\) instead of asyncio\.run\(main\(\)\)"
AS_GUEST = (
    "a program that uses asyncio runs them in a worker thread, or trio as a guest of its loop"
)


@pytest.mark.parametrize(
    "open_it",
    [*CLIENTS, trionet.open_network_client, trionet.open_jafka_client],
)
def test_a_client_under_asyncio_says_what_to_do(open_it: Open) -> None:
    with pytest.raises(
        RuntimeError, match=f"clients need trio, .*; start .* {STARTED}; {AS_GUEST}"
    ):
        asyncio.run(opened(open_it, "127.0.0.1:9092"))


def test_a_raw_peer_under_asyncio_says_what_to_do() -> None:
    with pytest.raises(
        RuntimeError, match=r"a program without trio uses trionet\.testing\.raw_peer"
    ):
        asyncio.run(opened(open_raw_peer, "127.0.0.1:9092"))


@pytest.mark.parametrize("open_it", [trionet.open_broker, trionet.open_jafka_broker])
def test_a_broker_under_asyncio_says_what_to_do(open_it: Open) -> None:
    with pytest.raises(RuntimeError, match=f"brokers need trio, .* {STARTED}; a program"):
        asyncio.run(opened(open_it))


def test_a_broker_of_kafkas_protocol_has_a_thread_of_its_own_for_others() -> None:
    with pytest.raises(RuntimeError, match=r"uses trionet\.testing\.broker\(\), whose broker has"):
        asyncio.run(opened(trionet.open_broker))


def test_a_server_under_asyncio_says_what_to_do() -> None:
    async def handle(request: trionet.Request) -> bytes:
        return b""

    with pytest.raises(RuntimeError, match=f"servers need trio, .* {STARTED}"):
        asyncio.run(trionet.serve(handle, ["PLAINTEXT://127.0.0.1:0"]))
