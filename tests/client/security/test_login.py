"""Tokens: had before the first connection, replaced in time, and never waited for."""

from __future__ import annotations

import logging
import random
import threading
import time
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from support.tokens import unsecured
from trionet.client.network._open_client import open_network_client
from trionet.client.network._settings import ClientSettings
from trionet.client.security._login import RETRY_SECONDS, TokenLogin, expiry_of, refresh_at_ms
from trionet.client.security._settings import (
    BearerToken,
    RefreshSettings,
    SaslClientSettings,
    SecuritySettings,
    TokenProvider,
)
from trionet.errors import ConfigError
from trionet.net._network import SYSTEM, Network
from trionet.net.wire._endpoint import SecurityProtocol
from trionet.testing import MemoryNetwork

RULES = RefreshSettings()
HOUR = 3_600_000


def login(
    provider: TokenProvider, network: Network | None = None, refresh: RefreshSettings = RULES
) -> TokenLogin:
    return TokenLogin(provider, refresh, network or MemoryNetwork())


@pytest.mark.parametrize(
    ("life_ms", "lowest", "highest"),
    [
        (HOUR, 0.80 * HOUR, 0.85 * HOUR),
        (600_000, 300_000, 300_000),  # five minutes before its end, which is before 80 %
        (360_000, 60_000, 60_000),  # so late as that allows, and not sooner than after a minute
        (300_000, 240_000, 255_000),  # there is no room for both
    ],
)
def test_when_a_token_is_replaced(life_ms: int, lowest: float, highest: float) -> None:
    for seed in range(20):
        found = refresh_at_ms(1000, 1000 + life_ms, RULES, random.Random(seed))

        assert lowest <= found - 1000 <= highest


@given(st.integers(1, 10 * HOUR), st.floats(0.5, 1.0), st.floats(0, 0.25), st.randoms())
def test_a_token_is_replaced_while_it_is_good(
    life_ms: int, factor: float, jitter: float, rng: random.Random
) -> None:
    rules = RefreshSettings(window_factor=factor, window_jitter=min(jitter, 1 - factor))

    assert 0 <= refresh_at_ms(0, life_ms, rules, rng) <= life_ms


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        (unsecured({"exp": 1000}), 1_000_000),
        (unsecured({"exp": 1000.5}), 1_000_500),
        (unsecured({}), None),
        (unsecured({"exp": "soon"}), None),
        (unsecured({"exp": 10**400}), None),
        ("opaque", None),
        ("a.b.c", None),
        ("a.W10.c", None),  # a list
    ],
)
def test_what_a_token_says_of_its_end(token: str, expected: int | None) -> None:
    assert expected == expiry_of(token)


async def test_an_async_provider_is_awaited(autojump_clock: MockClock) -> None:
    async def provide() -> str:
        await trio.sleep(5)
        return "token"

    begun = login(provide)
    await begun.log_in()

    assert BearerToken("token") == begun.token


async def test_a_plain_provider_may_wait_and_holds_up_no_other() -> None:
    """It is called in a thread; one of its own clock, because a virtual one has no threads."""
    released = threading.Event()
    begun = login(lambda: "token" if released.wait(10) else "late", SYSTEM)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(begun.log_in)
        await trio.testing.wait_all_tasks_blocked()
        released.set()

    assert "token" == begun.token.value


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, "returned a NoneType"),
        (b"bytes", "returned a bytes"),
        ("two words", "contains an invalid character"),
        (BearerToken("x", extensions={"auth": "x"}), "'auth'; allowed: letters"),
        (unsecured({"exp": 1000}), "a token that has already expired"),
        (BearerToken("x", expires_ms=1), "a token that has already expired"),
    ],
)
async def test_what_is_no_good_token_is_reported(given: Any, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        await login(lambda: given).log_in()


async def test_a_token_is_replaced_and_a_provider_that_fails_is_asked_again(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    network = MemoryNetwork()
    asked_at: list[float] = []

    def provide() -> BearerToken:
        asked_at.append(trio.current_time())
        if len(asked_at) == 2:
            raise OSError("the issuer is away")
        number = len(asked_at)
        return BearerToken(f"token{number}", network.now_ms() + HOUR)

    begun = login(provide, network)
    await begun.log_in()
    with trio.move_on_after(1.8 * 3600), caplog.at_level(logging.WARNING):
        await begun.keep_token_fresh()

    assert [1, 2, 3, 4] == list(range(1, len(asked_at) + 1))
    assert 0.8 * 3600 <= asked_at[1] <= 0.85 * 3600
    assert RETRY_SECONDS == pytest.approx(asked_at[2] - asked_at[1])
    assert "token4" == begun.token.value
    assert "token provider failed" in caplog.text


async def test_a_token_without_an_end_is_kept(autojump_clock: MockClock) -> None:
    begun = login(lambda: "opaque")
    await begun.log_in()

    with trio.fail_after(1):
        await begun.keep_token_fresh()


async def test_the_error_of_a_provider_is_reported_as_it_is_when_the_client_is_opened() -> None:
    def provide() -> str:
        raise PermissionError("no")

    sasl = SaslClientSettings(mechanism="OAUTHBEARER", token_provider=provide)
    security = SecuritySettings(protocol=SecurityProtocol.SASL_PLAINTEXT, sasl=sasl)
    with pytest.raises(PermissionError):
        async with open_network_client("127.0.0.1:1", ClientSettings(security=security)):
            raise AssertionError("it was opened")


async def test_a_client_is_closed_although_its_provider_hangs() -> None:
    """The thread is left behind, and what it gives is for nobody."""
    released = threading.Event()
    sasl = SaslClientSettings(
        mechanism="OAUTHBEARER", token_provider=lambda: str(released.wait(10))
    )
    security = SecuritySettings(protocol=SecurityProtocol.SASL_PLAINTEXT, sasl=sasl)
    begin = time.perf_counter()
    with trio.move_on_after(0.05) as scope:
        async with open_network_client("127.0.0.1:1", ClientSettings(security=security)):
            raise AssertionError("it was opened")
    released.set()

    assert scope.cancelled_caught
    assert time.perf_counter() - begin < 5
