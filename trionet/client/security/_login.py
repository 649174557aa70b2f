"""The OAUTHBEARER token, obtained before the first connection and refreshed before expiry.

(Kafka: ExpiringCredentialRefreshingLogin; KIP-255.) Authentication uses the current token, and
never waits for a new one.
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

# The wait after a provider has failed (Kafka: ExpiringCredentialRefreshingLogin).
RETRY_SECONDS: Final = 10.0


def refresh_at_ms(
    obtained_ms: int, expires_ms: int, refresh: RefreshSettings, rng: random.Random
) -> int:
    """Return the time at which to refresh a token, in ms since the epoch.

    Args:
        obtained_ms: when the token was obtained, in ms since the epoch.
        expires_ms: when the token expires, in ms since the epoch.
        refresh: the settings.
        rng: the source of the jitter.
    """
    share = refresh.window_factor + refresh.window_jitter * rng.random()
    wanted = obtained_ms + int((expires_ms - obtained_ms) * share)
    earliest = obtained_ms + int(refresh.min_period_seconds * 1000)
    latest = expires_ms - int(refresh.buffer_seconds * 1000)
    if earliest > latest:
        return wanted  # the lifetime is too short for both limits
    return min(max(wanted, earliest), latest)


def expiry_of(token: str) -> int | None:
    """Return the ``exp`` claim of a JSON Web Token in ms since the epoch; None if it has none.

    The token is not verified; only the broker can do that.
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
    """Convert seconds (a string in some servers' responses) to ms; None if not a number."""
    try:
        return int(float(seconds) * 1000)
    except (TypeError, ValueError, OverflowError):
        return None


class TokenLogin:
    """The OAUTHBEARER login of a client: obtains and refreshes the token.

    Args:
        provider: returns a new token.
        refresh: when to refresh.
        network: provides the wall-clock time.
    """

    def __init__(self, provider: TokenProvider, refresh: RefreshSettings, network: Network) -> None:
        self._provider = provider
        self._refresh = refresh
        self._network = network
        self._token: BearerToken | None = None
        self._obtained_ms = 0

    @property
    def token(self) -> BearerToken:
        """The current token."""
        assert self._token is not None, "not logged in"
        return self._token

    async def log_in(self) -> None:
        """Obtain a new token from the provider.

        Raises:
            ConfigError: the provider returned an invalid or expired token, or no token.
            Exception: the provider raised it.

        Cancellation: a synchronous provider keeps running in its thread, and the token that it
        returns is discarded.
        """
        provided: object = await self._call_provider()
        token = BearerToken(provided) if isinstance(provided, str) else provided
        if not isinstance(token, BearerToken):
            kind = type(token).__name__
            raise ConfigError(
                f"the token provider returned a {kind}; expected a str or a BearerToken"
            )
        check_token(token.value, token.extensions)
        if token.expires_ms is None:
            token = attrs.evolve(token, expires_ms=expiry_of(token.value))
        now_ms = self._network.now_ms()
        if token.expires_ms is not None and token.expires_ms <= now_ms:
            raise ConfigError("the token provider returned a token that has already expired")
        self._token, self._obtained_ms = token, now_ms

    async def _call_provider(self) -> BearerToken | str:
        provider = self._provider
        if self._network.is_virtual or inspect.iscoroutinefunction(provider):
            await trio.lowlevel.checkpoint()
            provided = provider()
        else:
            provided = await trio.to_thread.run_sync(provider, abandon_on_cancel=True)
        return await provided if inspect.isawaitable(provided) else provided

    async def keep_token_fresh(self) -> None:
        """Refresh the token before each expiry until cancelled; return if a token never expires."""
        await trio.lowlevel.checkpoint()
        while (expires_ms := self.token.expires_ms) is not None:
            rng = self._network.rng
            at_ms = refresh_at_ms(self._obtained_ms, expires_ms, self._refresh, rng)
            await trio.sleep(max(0, at_ms - self._network.now_ms()) / 1000)
            await self._replace()

    async def _replace(self) -> None:
        while True:
            try:
                await self.log_in()
            except TrionetError as error:
                logger.warning("could not refresh the OAUTHBEARER token: %s", error)
            except Exception:  # boundary: a provider
                logger.exception("the OAUTHBEARER token provider failed")
            else:
                return
            await trio.sleep(RETRY_SECONDS)
