"""An issuer's signing keys, loaded from a file or a URL and refreshed periodically.

(Kafka: RefreshingHttpsJwks.) A token that names an unknown key triggers an earlier refresh, because
issuers rotate their keys. This happens at most once every ten seconds, because any client can
invent key ids. The token itself is rejected, because nothing here waits for a refresh.
"""

from __future__ import annotations

import http.client
import logging
import ssl
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

import attrs
import trio

from ..._util._regular_file import read_regular_file
from ...errors import ConfigError
from ..tls._tls_transport import describe
from ._jwt_validation import Key, KeySet

logger = logging.getLogger("trionet.net.sasl")

READINGS_SECONDS_MIN = 10.0
# However small the settings are, refreshes keep neither the issuer nor this machine busy.
WAIT_SECONDS_MIN = 0.1
FETCH_SECONDS_MAX = 10.0
BYTES_MAX = 1024 * 1024
# How much of a malformed response is logged.
_QUOTED_CHARS_MAX = 200

_LOOPBACK = frozenset(("127.0.0.1", "::1", "localhost"))


@attrs.frozen
class RefreshTimes:
    """The intervals between refreshes.

    Attributes:
        refresh_ms: the interval after a success
            (``sasl.oauthbearer.jwks.endpoint.refresh.ms``).
        retry_ms: the interval after the first failure; it doubles with each further failure.
        retry_ms_max: the maximum interval after a failure.
    """

    refresh_ms: int = 3_600_000
    retry_ms: int = 100
    retry_ms_max: int = 10_000


class RefreshSchedule:
    """The schedule of refreshes.

    Args:
        times: the intervals.
        now: when the keys were first loaded, in seconds on the loop's clock.

    Attributes:
        next_at: when to refresh next, in seconds on the loop's clock.
    """

    def __init__(self, times: RefreshTimes, now: float) -> None:
        self._times = times
        self.succeeded(now)

    def succeeded(self, now: float) -> None:
        """Record a successful refresh."""
        self._failures = 0
        self._last = now
        self.next_at = now + max(WAIT_SECONDS_MIN, self._times.refresh_ms / 1000)

    def failed(self, now: float) -> None:
        """Record a failed refresh, after which the old keys stay in use."""
        times = self._times
        wait_ms = min(times.retry_ms * 2 ** min(self._failures, 30), times.retry_ms_max)
        self._failures += 1
        self._last = now
        self.next_at = now + max(WAIT_SECONDS_MIN, wait_ms / 1000)

    def hurry(self) -> None:
        """Schedule the next refresh as early as allowed, because a key is missing."""
        self.next_at = min(self.next_at, self._last + READINGS_SECONDS_MIN)


class Jwks:
    """The key set of an issuer, kept up to date by :meth:`run`.

    Args:
        url: a URL with ``file:``, ``https:``, or ``http:`` and a loopback address.
        times: the intervals between refreshes.

    Attributes:
        readings: the number of refreshes, including failed ones but not the first load.

    Raises:
        ConfigError: the URL is not allowed.
    """

    def __init__(self, url: str, times: RefreshTimes) -> None:
        try:
            parts = urlsplit(url)
        except ValueError as error:
            raise ConfigError(f"sasl.oauthbearer.jwks.endpoint.url = {url!r}: {error}") from None
        is_local = parts.scheme == "http" and parts.hostname in _LOOPBACK
        is_other = parts.scheme == "file" and parts.netloc not in ("", "localhost")
        if is_other or (parts.scheme not in ("file", "https") and not is_local):
            raise ConfigError(
                f"sasl.oauthbearer.jwks.endpoint.url = {url!r} is not allowed; it must be"
                " file:///... or https://..., since keys altered in transit would admit any client"
            )
        self.url = url
        self.readings = 0
        self._times = times
        self._keys = KeySet()
        self._schedule: RefreshSchedule | None = None
        self._hurried = trio.Event()

    async def load(self) -> None:
        """Load the keys for the first time, in a thread.

        Raises:
            ConfigError: the keys cannot be read; without them every login would fail.
        """
        try:
            self._keys = await trio.to_thread.run_sync(self._read, abandon_on_cancel=True)
        except (OSError, ConfigError) as error:
            raise ConfigError(
                f"sasl.oauthbearer.jwks.endpoint.url: cannot read {self.url}: {_why(error)}"
            ) from error
        self._schedule = RefreshSchedule(self._times, trio.current_time())

    async def run(self) -> None:
        """Refresh the keys when due, until cancelled. Call :meth:`load` first."""
        schedule = self._schedule
        assert schedule is not None
        while True:
            await trio.lowlevel.checkpoint()
            while trio.current_time() < schedule.next_at:
                with trio.move_on_at(schedule.next_at):
                    await self._hurried.wait()
                self._hurried = trio.Event()
            try:
                keys = await trio.to_thread.run_sync(self._read, abandon_on_cancel=True)
            except (OSError, ConfigError) as error:
                logger.warning(
                    "cannot read the keys from %s: %s; keeping the old keys", self.url, _why(error)
                )
                schedule.failed(trio.current_time())
            else:
                self._keys = keys
                schedule.succeeded(trio.current_time())
            self.readings += 1

    def find(self, key_id: str | None, algorithm: str) -> Key | None:
        """Return the key that a token names, or None, which also triggers an earlier refresh.

        See :meth:`._jwt_validation.KeySet.find`.
        """
        key = self._keys.find(key_id, algorithm)
        if key is None and self._schedule is not None:
            self._schedule.hurry()
            self._hurried.set()
        return key

    def _read(self) -> KeySet:
        parts = urlsplit(self.url)
        if parts.scheme == "file":
            data = read_regular_file(urllib.request.url2pathname(parts.path), BYTES_MAX)
        else:
            data = self._fetch()
        return KeySet.parse(data)

    def _fetch(self) -> bytes:
        handlers: list[Any] = [_NoRedirects]
        if not self.url.startswith("https:"):
            # A proxy would take the request off this machine and could replace the keys.
            handlers.append(urllib.request.ProxyHandler({}))
        opener = urllib.request.build_opener(*handlers)
        try:
            with opener.open(self.url, timeout=FETCH_SECONDS_MAX) as response:
                data: bytes = response.read(BYTES_MAX + 1)
        except OSError as error:  # before ValueError, which an ssl.SSLError is as well
            if isinstance(error, urllib.error.HTTPError):
                error.close()  # it keeps the connection open
            raise
        except (http.client.HTTPException, ValueError) as error:
            raise ConfigError(
                f"not a valid HTTP response: {error!r:.{_QUOTED_CHARS_MAX}}"
            ) from None
        if len(data) > BYTES_MAX:
            raise ConfigError(f"the key set is too large; at most {BYTES_MAX} bytes are allowed")
        return data


def _why(error: OSError | ConfigError) -> str:
    """Return the reason for a failure, without system error numbers and library wrappers."""
    reason = getattr(error, "reason", None)
    cause = reason if isinstance(reason, OSError) else error
    if isinstance(cause, ssl.SSLError):
        return describe(cause)
    return getattr(cause, "strerror", None) or str(cause)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A handler that rejects redirects, so that keys come only from the configured URL."""

    def redirect_request(self, *_: Any) -> None:
        return None
