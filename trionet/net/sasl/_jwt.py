"""JSON Web Tokens: an issuer's signing keys, and the validation of a token.

(Kafka: BrokerJwtValidator, RefreshingHttpsJwks, OAuthBearerUnsecuredValidatorCallbackHandler.) The
library PyJWT checks signatures. Only the algorithms listed here, which are all asymmetric, are
accepted, and only with a key of the right type. So a token can neither disable the check nor use a
public key as an HMAC secret.

Signing keys are loaded from a file or a URL and refreshed periodically. A token that names an
unknown key triggers an earlier refresh, because issuers rotate their keys. This happens at most
once every ten seconds, because any client can invent key ids. The token itself is rejected, because
nothing here waits for a refresh.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import attrs
import trio

from ..._util._logging import get_logger
from ..._util.files._regular_file import read_regular_file
from ...errors import ConfigError
from ..tls._tls_transport import describe
from ._mechanism import require
from ._oauthbearer import Token, TokenError

logger = get_logger("trionet.net.sasl")

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

    def find(self, key_id: str | None, algorithm: str) -> tuple[Key, ...]:
        """Return the keys that a token names; if there is none, the next refresh comes earlier.

        See :meth:`._jwt.KeySet.find`.
        """
        keys = self._keys.find(key_id, algorithm)
        if not keys and self._schedule is not None:
            self._schedule.hurry()
            self._hurried.set()
        return keys

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


ALGORITHMS = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    **dict.fromkeys(("ES256", "ES384", "ES512"), "EC"),
    "EdDSA": "OKP",
}
"""The accepted algorithms, and the key type of each."""

# The algorithms to assume for keys without `alg`: the library requires one, key sets need not.
_IMPLIED = {"RSA": "RS256", "OKP": "EdDSA"}

# Shorter keys are not secure (RFC 7518, 3.3), and Kafka does not accept them.
RSA_BITS_MIN = 2048

CLOCK_SKEW_MS = 30_000

# JSON may contain lone surrogates, which cannot be encoded to be sent or logged.
_SURROGATE = re.compile("[\ud800-\udfff]")


@attrs.frozen
class Key:
    """One public key of a key set.

    Attributes:
        id: the ``kid`` of the key; None without one.
        type: ``RSA``, ``EC`` or ``OKP``.
        algorithm: the only algorithm that may use the key; None for all algorithms of its type.
        key: the library's key object.
    """

    id: str | None
    type: str
    algorithm: str | None
    key: Any = attrs.field(repr=False)


@attrs.frozen
class KeySet:
    """The keys of an issuer, in any order."""

    keys: tuple[Key, ...] = ()

    @classmethod
    def parse(cls, text: str | bytes) -> KeySet:
        """Parse a JSON Web Key Set, skipping keys that are not for signatures.

        Raises:
            ConfigError: the text is not a key set, or none of its keys is usable.
        """
        jwt = require_jwt()
        try:
            entries = json.loads(text)["keys"]
            usable = [entry for entry in entries if _is_for_signatures(entry)]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise ConfigError(
                "not a JSON Web Key Set; expected a JSON object with a list of keys"
            ) from None
        keys = []
        for entry in usable:
            try:
                key = jwt.PyJWK(entry, algorithm=entry.get("alg", _IMPLIED.get(entry["kty"]))).key
            except (jwt.PyJWTError, ValueError, TypeError):
                continue  # an unusable key does not affect the others
            if entry["kty"] == "RSA" and key.key_size < RSA_BITS_MIN:
                continue
            keys.append(Key(entry.get("kid"), entry["kty"], entry.get("alg"), key))
        if not keys:
            raise ConfigError("the JSON Web Key Set contains no usable public key")
        return cls(tuple(keys))

    def find(self, key_id: str | None, algorithm: str) -> tuple[Key, ...]:
        """Return the keys with this id, or without an id the only suitable key.

        Ids should be unique, but need not be (RFC 7517, 4.5).
        """
        fitting = [
            key
            for key in self.keys
            if key.type == ALGORITHMS[algorithm] and key.algorithm in (None, algorithm)
        ]
        if key_id is not None:
            return tuple(key for key in fitting if key.id == key_id)
        return tuple(fitting) if len(fitting) == 1 else ()


@attrs.frozen
class TokenRules:
    """The rules for the claims of a token.

    Attributes:
        audiences: at least one of these must be in the ``aud`` claim; empty for any.
        issuer: the required ``iss`` claim; None for any.
        scopes: the scopes that the scope claim must contain.
        subject_claim: the name of the claim with the principal's name.
        scope_claim: the name of the claim that holds the scopes, as a list or separated by spaces.
        clock_skew_ms: the tolerated difference from the issuer's clock, in milliseconds.
    """

    audiences: tuple[str, ...] = ()
    issuer: str | None = None
    scopes: tuple[str, ...] = ()
    subject_claim: str = "sub"
    scope_claim: str = "scope"
    clock_skew_ms: int = CLOCK_SKEW_MS


@attrs.frozen
class SignedTokens:
    """A validator of tokens signed by an issuer (see :data:`._oauthbearer.Validate`).

    Attributes:
        find_keys: returns keys of the issuer; see :meth:`KeySet.find`.
        rules: the claims that tokens must have.
    """

    find_keys: Callable[[str | None, str], Sequence[Key]]
    rules: TokenRules

    def __call__(self, token: str, now_ms: int) -> Token:
        jwt = require_jwt()
        rules = self.rules
        try:
            header = jwt.get_unverified_header(token)
            algorithm = header.get("alg")
            if algorithm not in ALGORITHMS:
                raise TokenError(f"the algorithm {algorithm!r} is not allowed")
            key_id = header.get("kid")
            keys = self.find_keys(key_id, algorithm)
            if not keys:
                raise TokenError(f"unknown key {key_id!r} for {algorithm}")
            claims = self._verified(token, algorithm, keys)
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
            raise TokenError(_text_of(error)) from None
        return _token(claims, rules, now_ms)

    def _verified(self, token: str, algorithm: str, keys: Sequence[Key]) -> Mapping[str, Any]:
        """Return the claims of a token that one of the keys has signed; raise as PyJWT does."""
        jwt, rules = require_jwt(), self.rules
        decode = partial(
            jwt.decode,
            algorithms=[algorithm],
            audience=rules.audiences or None,
            issuer=rules.issuer,
            options={
                # Times are checked by the caller, against its time.
                "verify_exp": False,
                "verify_nbf": False,
                "verify_iat": False,
                "verify_aud": bool(rules.audiences),
                "require": ["exp", "iat"],
            },
        )
        for key in keys[:-1]:
            # InvalidKeyError: the key of another curve.
            with suppress(jwt.InvalidSignatureError, jwt.InvalidKeyError):
                found: Mapping[str, Any] = decode(token, key.key)
                return found
        last: Mapping[str, Any] = decode(token, keys[-1].key)
        return last


@attrs.frozen
class UnsecuredTokens:
    """A validator that accepts only unsigned tokens, for testing clients.

    Attributes:
        rules: the claims that tokens must have; ``audiences`` and ``issuer`` are not checked.
    """

    rules: TokenRules

    def __call__(self, token: str, now_ms: int) -> Token:
        jwt = require_jwt()
        try:
            parts = jwt.decode_complete(token, options={"verify_signature": False})
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
            raise TokenError(_text_of(error)) from None
        if parts["header"].get("alg") != "none" or parts["signature"]:
            raise TokenError("the token is signed, but only unsecured tokens are accepted")
        return _token(parts["payload"], self.rules, now_ms)


def require_jwt() -> Any:
    """Return the token library, PyJWT.

    Raises:
        ConfigError: the library is not installed.
    """
    return require("OAUTHBEARER", "jwt")


def _text_of(error: Exception) -> str:
    """Return the text of the library's error in ASCII, since it may quote an unverified token."""
    return f"{type(error).__name__}: {ascii(str(error))[1:-1]}"


def _is_for_signatures(entry: Mapping[str, Any]) -> bool:
    return (
        entry["kty"] in ALGORITHMS.values()
        and entry.get("use", "sig") == "sig"
        and entry.get("alg") in (None, *ALGORITHMS)
        and isinstance(entry.get("kid", ""), str)
    )


def _token(claims: Mapping[str, Any], rules: TokenRules, now_ms: int) -> Token:
    """Check the claims that PyJWT is not asked to check, and return the Token."""
    expires_ms = _time_ms(claims, "exp")
    if expires_ms is None:
        raise TokenError("the token has no exp claim")
    if now_ms - rules.clock_skew_ms >= expires_ms:
        raise TokenError("the token has expired")
    for name in ("nbf", "iat"):
        time_ms = _time_ms(claims, name)
        if time_ms is not None and time_ms > now_ms + rules.clock_skew_ms:
            raise TokenError(f"the token is not valid yet: its {name} claim is in the future")
    bearer = claims.get(rules.subject_claim)
    if not isinstance(bearer, str) or not bearer.strip() or _SURROGATE.search(bearer):
        raise TokenError(f"the token's {rules.subject_claim!r} claim is not a valid principal name")
    scopes = _scopes(claims.get(rules.scope_claim, ""))
    if not scopes.issuperset(rules.scopes):
        raise TokenError(
            f"the token lacks a required scope; it has {sorted(scopes)}",
            "insufficient_scope",
            " ".join(rules.scopes),
        )
    return Token(bearer.strip(), expires_ms, scopes)


def _time_ms(claims: Mapping[str, Any], name: str) -> int | None:
    seconds = claims.get(name)
    if seconds is None:
        return None
    # Times beyond the year 9999 are invalid, and infinity has no value in milliseconds.
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not 0 <= seconds < 253_402_300_800:
        raise TokenError(f"the token's {name} claim is not a valid timestamp")
    return int(seconds * 1000)


def _scopes(claim: object) -> frozenset[str]:
    if isinstance(claim, str):
        return frozenset(claim.split())
    if isinstance(claim, list) and all(isinstance(scope, str) for scope in claim):
        return frozenset(claim)
    raise TokenError("the token's scope claim is neither a string nor a list of strings")
