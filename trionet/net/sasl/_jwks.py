"""The keys that tokens are signed with, from a file or a URL, read again now and then.

(Kafka: RefreshingHttpsJwks.) A token that names an unknown key hurries the next reading, because
issuers change keys; but not by more than one reading in ten seconds, because anybody can make up
names of keys. That token itself is refused: nothing here waits.
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
# However small the settings are, neither the issuer nor this machine is kept busy with readings.
WAIT_SECONDS_MIN = 0.1
FETCH_SECONDS_MAX = 10.0
BYTES_MAX = 1024 * 1024
# How much of an answer that is none goes into the log.
_QUOTED_CHARS_MAX = 200

_LOOPBACK = frozenset(("127.0.0.1", "::1", "localhost"))


@attrs.frozen
class RefreshTimes:
    """When keys are read again.

    Attributes:
        refresh_ms: after a reading that succeeded (``sasl.oauthbearer.jwks.endpoint.refresh.ms``).
        retry_ms: after the first that failed; doubled with each that follows.
        retry_ms_max: the most that this becomes.
    """

    refresh_ms: int = 3_600_000
    retry_ms: int = 100
    retry_ms_max: int = 10_000


class RefreshSchedule:
    """Decides when to read next; pure.

    Args:
        times: the waits.
        now: when the first reading succeeded, in seconds of the loop's clock.

    Attributes:
        next_at: when to read next, in seconds.
    """

    def __init__(self, times: RefreshTimes, now: float) -> None:
        self._times = times
        self.succeeded(now)

    def succeeded(self, now: float) -> None:
        """The keys were read."""
        self._failures = 0
        self._last = now
        self.next_at = now + max(WAIT_SECONDS_MIN, self._times.refresh_ms / 1000)

    def failed(self, now: float) -> None:
        """They could not be read; the old ones stay."""
        times = self._times
        wait_ms = min(times.retry_ms * 2 ** min(self._failures, 30), times.retry_ms_max)
        self._failures += 1
        self._last = now
        self.next_at = now + max(WAIT_SECONDS_MIN, wait_ms / 1000)

    def hurry(self) -> None:
        """A key is missing: read as soon as that is allowed."""
        self.next_at = min(self.next_at, self._last + READINGS_SECONDS_MIN)


class Jwks:
    """The key set of an issuer, kept up to date by :meth:`run`.

    Args:
        url: ``file:``, ``https:``, or ``http:`` on the loopback.
        times: when to read again.

    Attributes:
        readings: how often the keys were to be read again, successfully or not.

    Raises:
        ConfigError: the URL is of another kind.
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
                f"sasl.oauthbearer.jwks.endpoint.url = {url!r} is not allowed; allowed: file:///..."
                " or https://..., since whoever could change the keys on their way could let"
                " anybody in"
            )
        self.url = url
        self.readings = 0
        self._times = times
        self._keys = KeySet()
        self._schedule: RefreshSchedule | None = None
        self._hurried = trio.Event()

    async def load(self) -> None:
        """Read the keys for the first time, in a thread.

        Raises:
            ConfigError: they cannot be read, and without them nobody could log in.
        """
        try:
            self._keys = await trio.to_thread.run_sync(self._read, abandon_on_cancel=True)
        except (OSError, ConfigError) as error:
            raise ConfigError(
                f"sasl.oauthbearer.jwks.endpoint.url: cannot read {self.url}: {_why(error)}"
            ) from error
        self._schedule = RefreshSchedule(self._times, trio.current_time())

    async def run(self) -> None:
        """Read the keys again when they are due, until cancelled. Call :meth:`load` before."""
        schedule = self._schedule
        assert schedule is not None
        while True:
            await self._wait_until_due(schedule)
            try:
                keys = await trio.to_thread.run_sync(self._read, abandon_on_cancel=True)
            except (OSError, ConfigError) as error:
                why = _why(error)
                logger.warning("cannot read the keys of %s: %s; keeping the old", self.url, why)
                schedule.failed(trio.current_time())
            else:
                self._keys = keys
                schedule.succeeded(trio.current_time())
            self.readings += 1

    async def _wait_until_due(self, schedule: RefreshSchedule) -> None:
        await trio.lowlevel.checkpoint()
        while trio.current_time() < schedule.next_at:
            with trio.move_on_at(schedule.next_at):
                await self._hurried.wait()
            self._hurried = trio.Event()

    def find(self, key_id: str | None, algorithm: str) -> Key | None:
        """As :meth:`._jwt_validation.KeySet.find`; a missing key hurries the next reading."""
        key = self._keys.find(key_id, algorithm)
        if key is None and self._schedule is not None:
            before = self._schedule.next_at
            self._schedule.hurry()
            if self._schedule.next_at < before:
                self._hurried.set()
        return key

    def _read(self) -> KeySet:
        parts = urlsplit(self.url)
        if parts.scheme == "file":
            path = urllib.request.url2pathname(parts.path)
            return KeySet.parse(read_regular_file(path, BYTES_MAX))
        return self._fetch()

    def _fetch(self) -> KeySet:
        handlers: list[Any] = [_NoRedirects]
        if not self.url.startswith("https:"):
            # Through a proxy, keys would leave this machine, and come back as anybody likes.
            handlers.append(urllib.request.ProxyHandler({}))
        opener = urllib.request.build_opener(*handlers)
        try:
            with opener.open(self.url, timeout=FETCH_SECONDS_MAX) as response:
                data = response.read(BYTES_MAX + 1)
        except urllib.error.HTTPError as error:
            error.close()  # it holds the connection
            raise
        except OSError:
            raise  # what OpenSSL refuses is a ValueError as well
        except (http.client.HTTPException, ValueError) as error:
            raise ConfigError(f"not HTTP: {error!r:.{_QUOTED_CHARS_MAX}}") from None
        if len(data) > BYTES_MAX:
            raise ConfigError(f"the key set is larger than {BYTES_MAX} bytes")
        return KeySet.parse(data)


def _why(error: OSError | ConfigError) -> str:
    """What went wrong, without the numbers of the system and the words of the library."""
    reason = getattr(error, "reason", None)
    cause = reason if isinstance(reason, OSError) else error
    if isinstance(cause, ssl.SSLError):
        return describe(cause)
    return getattr(cause, "strerror", None) or str(cause)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Keys come from where the setting says, or not at all."""

    def redirect_request(self, *_: Any) -> None:
        return None
