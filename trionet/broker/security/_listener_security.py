"""The security of a listener: TLS contexts and SASL mechanisms, created from its settings.

See :class:`.ListenerSettings` for keys that are set for a single listener or mechanism.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial

import attrs
import trio

from ..._util._logging import get_logger
from ...errors import ConfigError
from ...net._principal import Identity, Principal, PrincipalBuilder, PrincipalMapping
from ...net.sasl import _oauthbearer as oauthbearer
from ...net.sasl import _plain as plain
from ...net.sasl import _scram as scram
from ...net.sasl._jwt import (
    Jwks,
    RefreshTimes,
    SignedTokens,
    TokenRules,
    UnsecuredTokens,
    require_jwt,
)
from ...net.sasl._mechanism import Mechanism
from ...net.tls._key_stores import in_bounded_time
from ...net.tls._tls_context import TlsContexts, TlsSettings
from ...net.wire._endpoint import Endpoint, SecurityProtocol
from ...server._channel_builder import ListenerSecurity
from ..config._broker_config import BrokerConfig, ListenerSettings
from ._sasl_exchange import RespondToApiVersions, SaslExchange, SaslSettings
from ._scram_credentials import ScramCredentials

logger = get_logger("trionet.broker")

# How often certificate files are checked for changes.
RELOAD_CHECK_SECONDS = 10.0
# How long a connection stays open after a failed authentication, so that the client can read the
# reason. A client that reads the reason closes the connection immediately.
FAILURE_LINGER_SECONDS = 0.5

TLS_PROTOCOLS = frozenset((SecurityProtocol.SSL, SecurityProtocol.SASL_SSL))
SASL_PROTOCOLS = frozenset((SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL))

SUPPORTED = (plain.NAME, *scram.HASHES, oauthbearer.NAME)
"""The SASL mechanisms that a listener can enable."""

_OAUTH = "org.apache.kafka.common.security.oauthbearer"
_UNSECURED = f"{_OAUTH}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
_SECURED = f"{_OAUTH}.OAuthBearerValidatorCallbackHandler"
_PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


@attrs.define(eq=False)
class SecuredListener:
    """The security of a listener, whose certificates and keys can be reloaded.

    Attributes:
        endpoint: the endpoint of the listener.
        tls: the TLS contexts; None without TLS.
        sasl: the SASL settings; None without SASL.
        jwks: the keys of the token issuer; None without signed tokens.
    """

    endpoint: Endpoint
    tls: TlsContexts | None
    sasl: SaslSettings | None
    jwks: Jwks | None
    _build_principal: PrincipalBuilder
    _is_client_auth_ignored: bool
    _setting_warnings: tuple[str, ...]

    def for_server(self, respond_to_api_versions: RespondToApiVersions) -> ListenerSecurity:
        """Return the listener's security in the form that the SocketServer needs."""
        tls = self.tls
        authenticator = None
        if self.sasl is not None:
            authenticator = partial(self._authenticator, self.sasl, respond_to_api_versions)
        return ListenerSecurity(
            tls_context=None if tls is None else lambda: tls.context,
            authenticator=authenticator,
            principal_builder=self._build_principal,
        )

    async def load(self) -> None:
        """Fetch the token issuer's keys, if signed tokens are accepted, before the listener opens.

        Raises:
            ConfigError: the keys cannot be fetched.
        """
        await trio.lowlevel.checkpoint()
        if self.jwks is not None:
            await self.jwks.load()

    async def prepare_certificates(self, config: BrokerConfig) -> Callable[[], None]:
        """Read a new keystore and truststore, and return a function that puts them into use.

        Args:
            config: the new settings.

        Raises:
            ConfigError: a new store cannot be used, or is incompatible with the current one.
        """
        tls = self.tls
        assert tls is not None, "the listener does not use TLS"
        name = self.endpoint.listener_name
        settings = _tls(ListenerSettings(config, name), self.endpoint.security_protocol)
        try:
            new = await in_bounded_time(tls.prepare, settings)
        except ConfigError as error:
            raise ConfigError(f"listener {name}: {error}") from error

        def renew() -> None:
            tls.use(new)
            logger.info("listener %s: certificates reloaded", name)
            self.log_warnings()

        return renew

    def log_warnings(self, *, has_scram_users: bool = True) -> None:
        """Log warnings about settings that are valid but probably unintended.

        Args:
            has_scram_users: whether any SCRAM users exist.
        """
        for warning in self._warnings(has_scram_users):
            logger.warning("listener %s: %s", self.endpoint.listener_name, warning)

    def _warnings(self, has_scram_users: bool) -> Iterator[str]:
        if self.tls is not None:
            now = datetime.fromtimestamp(time.time_ns() // 1_000_000_000, UTC)
            if warning := self.tls.doubt(now):
                yield warning
            yield from self._client_auth_warnings(self.tls.settings)
        names = () if self.sasl is None else self.sasl.mechanisms
        if not has_scram_users and any(name in scram.HASHES for name in names):
            yield (
                "there are no SCRAM users; add one with trionet broker --data DIR --add-scram NAME"
            )
        yield from self._setting_warnings

    def _client_auth_warnings(self, settings: TlsSettings) -> Iterator[str]:
        if self._is_client_auth_ignored:
            yield (
                "the broker-wide ssl.client.auth does not apply to SASL listeners; set"
                f" listener.name.{self.endpoint.listener_name.lower()}.ssl.client.auth"
            )
        has_trust = settings.truststore_location or settings.truststore_certificates
        if settings.client_auth != "none" and not has_trust:
            yield (
                "ssl.client.auth is set without a truststore, so certificates from every"
                " authority that this system trusts are accepted"
            )

    async def keep_fresh(self) -> None:
        """Reload changed certificate files and the token issuer's keys until cancelled.

        If reloading fails, the error is logged, and the old certificates or keys stay in use.
        Existing connections are not affected.
        """
        async with trio.open_nursery() as nursery:
            if self.jwks is not None:
                nursery.start_soon(self.jwks.run)
            if self.tls is not None:
                nursery.start_soon(self._watch_files, self.tls)
            await trio.sleep_forever()

    async def _watch_files(self, tls: TlsContexts) -> None:
        name = self.endpoint.listener_name
        logged = ""
        while True:
            await trio.sleep(RELOAD_CHECK_SECONDS)
            if not tls.settings.files:
                continue
            try:
                if await trio.to_thread.run_sync(tls.reload_if_changed, abandon_on_cancel=True):
                    logger.info("listener %s: certificates reloaded", name)
                    self.log_warnings()
                logged = ""
            except (OSError, ConfigError) as error:
                if str(error) == logged:
                    continue  # the same failure at each check
                logged = str(error)
                logger.warning("listener %s: could not reload certificates: %s", name, error)

    def _authenticator(
        self, settings: SaslSettings, respond_to_api_versions: RespondToApiVersions, known: Identity
    ) -> SaslExchange:
        def make_principal(mechanism: str, authorization_id: str) -> Principal:
            identity = attrs.evolve(known, mechanism=mechanism, authorization_id=authorization_id)
            return self._build_principal(identity)

        return SaslExchange(settings, respond_to_api_versions, make_principal)


def listener_security(
    config: BrokerConfig,
    endpoint: Endpoint,
    credentials: ScramCredentials | None,
    principal_builder: PrincipalBuilder | None = None,
) -> SecuredListener:
    """Create the security of a listener from its settings.

    Must run in a worker thread, since it reads files.

    Args:
        config: the broker's settings.
        endpoint: the endpoint of the listener.
        credentials: the SCRAM users; may be None for a listener without SASL.
        principal_builder: builds principals, instead of ``ssl.principal.mapping.rules``.

    Raises:
        ConfigError: a setting is missing or not allowed, or a keystore or truststore cannot be
            read.
    """
    settings = ListenerSettings(config, endpoint.listener_name)
    protocol = endpoint.security_protocol
    mapping = PrincipalMapping(settings.text("ssl.principal.mapping.rules") or "DEFAULT")
    tls = None
    if protocol in TLS_PROTOCOLS:
        try:
            tls = TlsContexts(_tls(settings, protocol))
        except ConfigError as error:
            raise ConfigError(f"listener {endpoint.listener_name}: {error}") from error
    sasl, jwks = None, None
    if protocol in SASL_PROTOCOLS:
        sasl, jwks = _sasl(settings, endpoint.listener_name, credentials)
    client_auth = settings.text("ssl.client.auth") or "none"
    is_client_auth_ignored = tls is not None and client_auth != tls.settings.client_auth
    warnings = []
    if sasl and oauthbearer.NAME in sasl.mechanisms and (warning := _token_warning(settings)):
        warnings.append(warning)
    if tls is not None and principal_builder is None:
        warnings += _mapping_warnings(mapping)
    build_principal = principal_builder or mapping
    return SecuredListener(
        endpoint, tls, sasl, jwks, build_principal, is_client_auth_ignored, tuple(warnings)
    )


def _tls(settings: ListenerSettings, protocol: SecurityProtocol) -> TlsSettings:
    client_auth = settings.text("ssl.client.auth") or "none"
    if protocol is SecurityProtocol.SASL_SSL:
        # As in Kafka, only a listener's own setting requests client certificates besides SASL.
        own = settings.own("ssl.client.auth")
        client_auth = own if isinstance(own, str) else "none"
    return TlsSettings(
        # Java's names of types, which it compares case-insensitively.
        keystore_type=(settings.text("ssl.keystore.type") or "JKS").upper(),
        keystore_location=settings.text("ssl.keystore.location"),
        keystore_password=settings.text("ssl.keystore.password"),
        keystore_key=settings.text("ssl.keystore.key"),
        keystore_certificate_chain=settings.text("ssl.keystore.certificate.chain"),
        key_password=settings.text("ssl.key.password"),
        truststore_type=(settings.text("ssl.truststore.type") or "JKS").upper(),
        truststore_location=settings.text("ssl.truststore.location"),
        truststore_password=settings.text("ssl.truststore.password"),
        truststore_certificates=settings.text("ssl.truststore.certificates"),
        client_auth=client_auth,
        enabled_protocols=settings.names("ssl.enabled.protocols"),
        cipher_suites=settings.names("ssl.cipher.suites"),
        store_bytes_max=settings.integer("ssl.store.max.bytes"),
        allow_dn_changes=bool(settings.value("ssl.allow.dn.changes")),
        allow_san_changes=bool(settings.value("ssl.allow.san.changes")),
    )


def _sasl(
    settings: ListenerSettings,
    listener_name: str,
    credentials: ScramCredentials | None,
) -> tuple[SaslSettings, Jwks | None]:
    names = settings.names("sasl.enabled.mechanisms")
    for name in names:
        if name not in SUPPORTED:
            default = "" if settings.is_set("sasl.enabled.mechanisms") else " (the default)"
            raise ConfigError(
                f"listener {listener_name}: sasl.enabled.mechanisms = {','.join(names)!r}{default}:"
                f" {name} is not supported; allowed: {', '.join(SUPPORTED)}"
            )
    if not names:
        raise ConfigError(
            f"listener {listener_name}: sasl.enabled.mechanisms is empty; expected at least one of"
            f" {', '.join(SUPPORTED)}"
        )
    mechanisms: dict[str, Mechanism] = {}
    jwks = None
    for name in names:
        handler = settings.text("sasl.server.callback.handler.class", name)
        if handler is not None and (
            name != oauthbearer.NAME or handler not in (_SECURED, _UNSECURED)
        ):
            raise ConfigError(
                f"{settings.name('sasl.server.callback.handler.class', name)} = {handler!r} is not"
                f" supported; leave it out, or for {oauthbearer.NAME} set it to {_SECURED} or"
                f" {_UNSECURED}"
            )
        if name == plain.NAME:
            mechanisms[name] = _plain(settings)
        elif name == oauthbearer.NAME:
            mechanisms[name], jwks = _oauthbearer(settings, is_unsecured=handler == _UNSECURED)
        else:
            scram.require_scramp()
            assert credentials is not None
            found = credentials.lookup(name)
            mechanisms[name] = partial(scram.ScramServer, name, found, credentials.secret)
    delay_ms = settings.integer("connection.failed.authentication.delay.ms")
    sasl = SaslSettings(
        mechanisms,
        {name: settings.integer("connections.max.reauth.ms", name) for name in names},
        settings.integer("sasl.server.max.receive.size"),
        delay_ms / 1000,
        FAILURE_LINGER_SECONDS,
    )
    return sasl, jwks


def _plain(settings: ListenerSettings) -> Mechanism:
    name = settings.name("sasl.jaas.config", plain.NAME)
    module = settings.jaas(plain.NAME)
    if module is None or module.name != _PLAIN_MODULE or not module.users:
        raise ConfigError(
            f"{name} must define the PLAIN users; expected: {_PLAIN_MODULE} required"
            ' user_NAME="password" ... ;'
        )
    return partial(plain.PlainServer, plain.verify_with(module.users))


def _oauthbearer(
    settings: ListenerSettings, *, is_unsecured: bool
) -> tuple[Mechanism, Jwks | None]:
    require_jwt()
    name = oauthbearer.NAME
    module = settings.jaas(name)
    options = {} if module is None else module.options
    if is_unsecured:
        return _unsecured(options, settings.name("sasl.jaas.config", name)), None
    url = settings.text("sasl.oauthbearer.jwks.endpoint.url", name)
    if url is None:
        raise ConfigError(
            "sasl.oauthbearer.jwks.endpoint.url must be set to the URL of the token issuer's keys;"
            " to accept unsigned tokens, for testing only, set"
            f" {settings.name('sasl.server.callback.handler.class', name)}={_UNSECURED}"
        )
    times = RefreshTimes(
        settings.integer("sasl.oauthbearer.jwks.endpoint.refresh.ms", name),
        settings.integer("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", name),
        settings.integer("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", name),
    )
    rules = TokenRules(
        audiences=settings.names("sasl.oauthbearer.expected.audience", name),
        issuer=settings.text("sasl.oauthbearer.expected.issuer", name),
        scopes=tuple(options.get("requiredScope", "").split()),
        subject_claim=settings.text("sasl.oauthbearer.sub.claim.name", name) or "sub",
        scope_claim=settings.text("sasl.oauthbearer.scope.claim.name", name) or "scope",
        clock_skew_ms=1000 * settings.integer("sasl.oauthbearer.clock.skew.seconds", name),
    )
    jwks = Jwks(url, times)
    return partial(oauthbearer.OAuthBearerServer, SignedTokens(jwks.find, rules)), jwks


def _mapping_warnings(mapping: PrincipalMapping) -> Iterator[str]:
    for pattern in mapping.bounded:
        yield (
            f"ssl.principal.mapping.rules: {pattern!r} has back-references,"
            r" lookahead, lookbehind, atomic groups, possessive repetition or \R, whose time is not"
            " linear in the length of a name; names that take too long are rejected"
        )


def _token_warning(settings: ListenerSettings) -> str:
    """Return a warning if unintended tokens are accepted, or an empty string."""
    handler = "sasl.server.callback.handler.class"
    if settings.text(handler, oauthbearer.NAME) == _UNSECURED:
        return (
            f"{settings.name(handler, oauthbearer.NAME)} accepts unsigned tokens, so any client"
            " can authenticate as any user; use it only for testing"
        )
    audience, issuer = "sasl.oauthbearer.expected.audience", "sasl.oauthbearer.expected.issuer"
    is_for_us = settings.names(audience, oauthbearer.NAME)
    if is_for_us or settings.text(issuer, oauthbearer.NAME):
        return ""
    return f"without {audience} and {issuer}, tokens issued for other services are accepted"


def _unsecured(options: dict[str, str], key: str) -> Mechanism:
    """Create the mechanism for unsigned tokens, with the options of Kafka's validator."""
    skew = options.get("unsecuredValidatorAllowableClockSkewMs", "0")
    if not skew.isascii() or not skew.isdigit():
        raise ConfigError(
            f"{key}: unsecuredValidatorAllowableClockSkewMs = {skew!r} must be a"
            " whole number, 0 or more"
        )
    rules = TokenRules(
        scopes=tuple(options.get("unsecuredValidatorRequiredScope", "").split()),
        subject_claim=options.get("unsecuredValidatorPrincipalClaimName") or "sub",
        scope_claim=options.get("unsecuredValidatorScopeClaimName") or "scope",
        clock_skew_ms=int(skew),
    )
    return partial(oauthbearer.OAuthBearerServer, UnsecuredTokens(rules))
