"""The token of OAUTHBEARER: had before the first connection, replaced before it expires.

(Kafka: ExpiringCredentialRefreshingLogin; KIP-255.) An authentication takes the token that is there
and waits for nothing.
"""

from __future__ import annotations

import base64
import binascii
import inspect
import json
import logging
import random
from typing import Any, Final

import attrs
import trio

from ...errors import ConfigError, TrionetError
from ...net._network import Network
from ...net.sasl._oauthbearer import check_token
from ._settings import BearerToken, RefreshSettings, TokenProvider

logger = logging.getLogger("trionet.client")

# After a provider that failed (Kafka: ExpiringCredentialRefreshingLogin).
RETRY_SECONDS: Final = 10.0


def refresh_at_ms(
    begun_ms: int, expires_ms: int, refresh: RefreshSettings, chance: random.Random
) -> int:
    """When to replace a token.

    Args:
        begun_ms: since when we have it, in ms since the epoch.
        expires_ms: until when it is good.
        refresh: the rules.
        chance: what blurs it.
    """
    share = refresh.window_factor + refresh.window_jitter * chance.random()
    wanted = begun_ms + int((expires_ms - begun_ms) * share)
    earliest = begun_ms + int(refresh.min_period_seconds * 1000)
    latest = expires_ms - int(refresh.buffer_seconds * 1000)
    if earliest > latest:
        return wanted  # so short a life has no room for both
    return min(max(wanted, earliest), latest)


def expiry_of(token: str) -> int | None:
    """The claim ``exp`` of a JSON Web Token in ms since the epoch; None for any other token.

    Nothing is checked: that is the broker's business.
    """
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        return None
    return milliseconds(claims.get("exp")) if isinstance(claims, dict) else None


def milliseconds(seconds: Any) -> int | None:
    """Of a number of seconds, which some servers give as a text; None if it is none."""
    try:
        return int(float(seconds) * 1000)
    except (TypeError, ValueError, OverflowError):
        return None


class TokenLogin:
    """Who we are by tokens.

    Args:
        provider: gives them.
        refresh: when it is asked for the next.
        network: its time of day counts.
    """

    def __init__(self, provider: TokenProvider, refresh: RefreshSettings, network: Network) -> None:
        self._provider = provider
        self._refresh = refresh
        self._network = network
        self._token: BearerToken | None = None
        self._had_ms = 0

    @property
    def token(self) -> BearerToken:
        """The newest."""
        assert self._token is not None, "there is none before the login"
        return self._token

    async def log_in(self) -> None:
        """Have a new token.

        Raises:
            ConfigError: the provider gave something else, or a token that has expired already.
            Exception: what the provider raised.

        Cancellation: a provider that is a plain function goes on in its thread, for nobody.
        """
        given: object = await self._ask()
        token = BearerToken(given) if isinstance(given, str) else given
        if not isinstance(token, BearerToken):
            kind = type(token).__name__
            raise ConfigError(f"the token provider gave a {kind}; allowed: a text or a BearerToken")
        check_token(token.value, token.extensions)
        if token.expires_ms is None:
            token = attrs.evolve(token, expires_ms=expiry_of(token.value))
        now_ms = self._network.now_ms()
        if token.expires_ms is not None and token.expires_ms <= now_ms:
            raise ConfigError("the token provider gave a token that has expired")
        self._token, self._had_ms = token, now_ms

    async def _ask(self) -> BearerToken | str:
        provider = self._provider
        if self._network.is_virtual or inspect.iscoroutinefunction(provider):
            await trio.lowlevel.checkpoint()
            given = provider()
        else:
            given = await trio.to_thread.run_sync(provider, abandon_on_cancel=True)
        return await given if inspect.isawaitable(given) else given

    async def keep_fresh(self) -> None:
        """Replace the token before it expires, until cancelled or there is one that never does."""
        await trio.lowlevel.checkpoint()
        while (expires_ms := self.token.expires_ms) is not None:
            chance = self._network.chance
            at_ms = refresh_at_ms(self._had_ms, expires_ms, self._refresh, chance)
            await trio.sleep(max(0, at_ms - self._network.now_ms()) / 1000)
            await self._replace()

    async def _replace(self) -> None:
        while True:
            try:
                await self.log_in()
            except TrionetError as error:
                logger.warning("the next OAUTHBEARER token cannot be used: %s", error)
            except Exception:  # boundary: a provider
                logger.exception("the next OAUTHBEARER token could not be had")
            else:
                return
            await trio.sleep(RETRY_SECONDS)
