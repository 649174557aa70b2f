"""From settings to the security of a listener: certificates, mechanisms, users, principals."""

from __future__ import annotations

import logging
import select
import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from support.sasl import NOW_MS, handshake, plain, respond_to_api_versions, response, token
from support.tls import (
    TlsClient,
    authority,
    certificate,
    client_context,
    shake_hands,
    write_pem,
    write_trust,
)
from support.tokens import RSA_KEY, initial, jwk, key_set, signed, unsecured
from support.wire import tcp_pair
from trionet.broker.config._broker_config import BrokerConfig
from trionet.broker.security._listener_security import (
    RELOAD_CHECK_SECONDS,
    SecuredListener,
    listener_security,
)
from trionet.broker.security._scram_credentials import ScramCredentials
from trionet.broker.storage._database import Database
from trionet.errors import AuthenticationError, ConfigError
from trionet.net._authenticator import Authenticator, Progress
from trionet.net._principal import Identity, Principal
from trionet.net.sasl._scram import HASHES, salted
from trionet.net.tls._certificate import distinguished_name
from trionet.net.tls._tls_transport import TlsTransport
from trionet.net.wire._endpoint import Endpoint, SecurityProtocol
from trionet.protocol import api_keys

UNSECURED = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured"
    ".OAuthBearerUnsecuredValidatorCallbackHandler"
)
PLAIN_USERS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required"
    ' user_alice="secret" user_bob="hunter2";'
)
PLAIN_KEY = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
SCRAM = ScramCredentials(
    {mechanism: {"alice": salted("SCRAM-SHA-256", "secret")} for mechanism in HASHES},
    b"secret",
    cast(Database, None),  # for changes only
)
ADDRESS = "127.0.0.1"


def security(
    settings: dict[str, Any],
    protocol: SecurityProtocol = SecurityProtocol.SASL_PLAINTEXT,
    name: str = "",
    **options: Any,
) -> SecuredListener:
    config = BrokerConfig.from_settings(settings)
    endpoint = Endpoint(name or protocol.value, protocol, ADDRESS, 0)
    return listener_security(config, endpoint, SCRAM, **options)


def begin(secure: SecuredListener) -> Authenticator:
    begin_one = secure.for_server(respond_to_api_versions).authenticator
    assert begin_one is not None
    return begin_one(Identity(secure.endpoint.security_protocol, ADDRESS))


def log_in(secure: SecuredListener, mechanism: str, data: bytes) -> Authenticator:
    """The exchange after one token."""
    begun = begin(secure)
    begun.receive(handshake(mechanism), 0.0, NOW_MS)
    begun.receive(token(data), 0.0, NOW_MS)
    return begun


def test_the_users_of_plain_are_those_of_the_jaas_property() -> None:
    """A18: JAAS configuration as a setting."""
    secure = security({"sasl.enabled.mechanisms": "PLAIN", PLAIN_KEY: PLAIN_USERS})

    assert log_in(secure, "PLAIN", plain("bob", "hunter2")).is_complete
    assert not log_in(secure, "PLAIN", plain("bob", "x")).is_complete
    assert "User:alice" == str(log_in(secure, "PLAIN", plain("alice", "secret")).principal)


def test_listeners_have_users_and_mechanisms_of_their_own() -> None:
    """A17: the most special key wins; the listener's name counts in any case."""
    settings = {
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "listener.name.INSIDE.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.inside.plain.sasl.jaas.config": PLAIN_USERS,
        "connections.max.reauth.ms": "1000",
        "listener.name.inside.connections.max.reauth.ms": "2000",
        "listener.name.inside.plain.connections.max.reauth.ms": "3000",
        "sasl.server.max.receive.size": 1024,
        "connection.failed.authentication.delay.ms": 250,
    }

    inside, outside = (security(settings, name=name).sasl for name in ("INSIDE", "OUTSIDE"))

    assert inside is not None
    assert outside is not None
    assert (["PLAIN"], {"PLAIN": 3000}) == (list(inside.mechanisms), inside.session_ms)
    assert (["SCRAM-SHA-256"], {"SCRAM-SHA-256": 1000}) == (
        list(outside.mechanisms),
        outside.session_ms,
    )
    assert (1024, 0.25) == (inside.frame_bytes_max, inside.failure_delay_seconds)


def test_settings_of_listeners_are_applied() -> None:
    config = BrokerConfig.from_settings(
        {
            "listener.name.inside.ssl.client.auth": "required",
            PLAIN_KEY: PLAIN_USERS,
            "listener.name.inside.plain.connections.max.reauth.ms": "3000",
            "listener.name.inside.group.max.size": "1",
        }
    )

    assert ("listener.name.inside.group.max.size=1",) == config.not_applied


def test_users_of_scram_come_from_the_credentials() -> None:
    secure = security({"sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512"})
    begun = begin(secure)

    answer = response(
        begun.receive(handshake("SCRAM-SHA-256"), 0.0, NOW_MS), api_keys.SASL_HANDSHAKE, 1
    )

    assert ["SCRAM-SHA-256", "SCRAM-SHA-512"] == answer.mechanisms


def test_the_secret_of_scram_is_no_part_of_a_repr() -> None:
    secure = security({"sasl.enabled.mechanisms": "SCRAM-SHA-256"})

    assert repr(SCRAM.secret) not in repr(secure)
    assert repr(SCRAM.secret) not in repr(secure.sasl)


async def test_signed_tokens_need_the_keys_of_their_issuer(tmp_path: Path) -> None:
    """A20: with the keys that the setting names."""
    keys = tmp_path / "keys.json"
    keys.write_text(key_set(jwk(RSA_KEY, kid="rsa")))
    settings = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.expected.audience": "kafka,other",
        "sasl.oauthbearer.expected.issuer": "issuer",
        "sasl.oauthbearer.sub.claim.name": "user",
        "sasl.oauthbearer.scope.claim.name": "roles",
        "sasl.oauthbearer.clock.skew.seconds": "0",
        "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
            ' requiredScope="produce";'
        ),
    }
    secure = security(settings)
    await secure.load()
    now = NOW_MS // 1000
    good = {
        "user": "alice",
        "aud": "kafka",
        "iss": "issuer",
        "roles": "produce consume",
        "iat": now,
        "exp": now + 1,
    }

    assert "User:alice" == str(log_in(secure, "OAUTHBEARER", initial(signed(good))).principal)
    for bad in ({"aud": "x"}, {"iss": "x"}, {"roles": "consume"}, {"user": ""}, {"exp": now - 1}):
        token_of_it = signed({**good, **bad})
        assert not log_in(secure, "OAUTHBEARER", initial(token_of_it)).is_complete, bad
    assert not log_in(secure, "OAUTHBEARER", initial(unsecured(good))).is_complete


def test_unsecured_tokens_need_kafkas_class_for_them() -> None:
    prefix = "listener.name.sasl_plaintext.oauthbearer.sasl"
    secure = security(
        {
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            f"{prefix}.server.callback.handler.class": UNSECURED,
            f"{prefix}.jaas.config": (
                'M required unsecuredValidatorPrincipalClaimName="user"'
                ' unsecuredValidatorRequiredScope="a" unsecuredValidatorScopeClaimName="roles"'
                ' unsecuredValidatorAllowableClockSkewMs="3000";'
            ),
        }
    )
    now = NOW_MS // 1000
    good = {"user": "alice", "roles": ["a", "b"], "exp": now - 2}

    assert secure.jwks is None
    assert log_in(secure, "OAUTHBEARER", initial(unsecured(good))).is_complete
    others: list[dict[str, Any]] = [{"roles": []}, {"exp": now - 3}, {"user": None}]
    for bad in others:
        assert not log_in(secure, "OAUTHBEARER", initial(unsecured({**good, **bad}))).is_complete


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "'GSSAPI' (the default): GSSAPI is not supported"),
        (
            {"sasl.enabled.mechanisms": "PLAIN,GSSAPI"},
            "listener SASL_PLAINTEXT: sasl.enabled.mechanisms = 'PLAIN,GSSAPI': GSSAPI is not",
        ),
        ({"sasl.enabled.mechanisms": ""}, "is empty"),
        ({"sasl.enabled.mechanisms": "PLAIN"}, f"{PLAIN_KEY} must define the PLAIN users"),
        (
            {"sasl.enabled.mechanisms": "PLAIN", PLAIN_KEY: 'Other required user_a="secret";'},
            f"{PLAIN_KEY} must define the PLAIN users",
        ),
        (
            {"sasl.enabled.mechanisms": "PLAIN", "sasl.jaas.config": PLAIN_USERS},
            f"{PLAIN_KEY} must define the PLAIN users",
        ),
        (
            {
                "sasl.enabled.mechanisms": "PLAIN",
                PLAIN_KEY: PLAIN_USERS.replace("user_alice", "username").replace("user_bob", "x"),
            },
            f"{PLAIN_KEY} must define the PLAIN users",
        ),
        ({"sasl.enabled.mechanisms": "PLAIN", PLAIN_KEY: "secret"}, "no flag after"),
        ({"sasl.enabled.mechanisms": "OAUTHBEARER"}, "jwks.endpoint.url must be set to the URL"),
        (
            {
                "sasl.enabled.mechanisms": "OAUTHBEARER",
                "sasl.oauthbearer.jwks.endpoint.url": "http://example.org/keys",
            },
            "is not allowed",
        ),
        (
            {"listener.name.sasl_plaintext.sasl.oauthbearer.jwks.endpoint.refresh.ms": "0"},
            "refresh.ms = '0' is not allowed; allowed: an integer from 1",
        ),
        (
            {"sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": "-1"},
            "backoff.ms = '-1' is not allowed; allowed: an integer from 0",
        ),
        (
            {"sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": "-1"},
            "backoff.max.ms = '-1' is not allowed; allowed: an integer from 0",
        ),
        (
            {
                "sasl.enabled.mechanisms": "PLAIN",
                PLAIN_KEY: PLAIN_USERS,
                "sasl.server.callback.handler.class": "com.example.Directory",
            },
            "com.example.Directory",
        ),
        (
            {
                "sasl.enabled.mechanisms": "OAUTHBEARER",
                "sasl.server.callback.handler.class": UNSECURED,
                "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": (
                    "M required unsecuredValidatorAllowableClockSkewMs=x;"
                ),
            },
            "unsecuredValidatorAllowableClockSkewMs",
        ),
        ({"ssl.principal.mapping.rules": "nonsense"}, "is not a valid rule"),
    ],
)
def test_what_cannot_work_is_a_configuration_error(settings: dict[str, Any], message: str) -> None:
    """A16: a missing or unknown login module or mechanism fails at the start."""
    with pytest.raises(ConfigError) as caught:
        security(settings)

    assert message in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_listener_without_tls_and_sasl_has_neither() -> None:
    secure = security({}, SecurityProtocol.PLAINTEXT)

    assert (None, None, None) == (secure.tls, secure.sasl, secure.jwks)
    for_server = secure.for_server(respond_to_api_versions)
    assert (None, None) == (for_server.tls_context, for_server.authenticator)
    anonymous = for_server.principal_builder(Identity("PLAINTEXT", ADDRESS))
    assert "User:ANONYMOUS" == str(anonymous)


def tls_settings(folder: Path) -> dict[str, Any]:
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": write_pem(folder / "broker.pem", certificate()),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": write_trust(folder / "trust.pem"),
    }


def certificate_seen(secure: SecuredListener) -> bytes | None:
    """What a listener sees of a client that shows its certificate."""
    context = secure.for_server(respond_to_api_versions).tls_context
    assert context is not None
    near, far = tcp_pair()
    with near, far:
        transport = TlsTransport(near, context())
        leaf = certificate("alice", common_name="alice")
        shake_hands(transport, TlsClient(far, client_context(leaf=leaf)))
        return transport.peer_certificate


def test_the_certificate_of_a_client_gives_its_principal(tmp_path: Path) -> None:
    settings = {
        **tls_settings(tmp_path),
        "ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^CN=(.*?),.*$/$1/,DEFAULT",
    }
    secure = security(settings, SecurityProtocol.SSL)

    seen = certificate_seen(secure)

    assert seen is not None
    identity = Identity("SSL", ADDRESS, distinguished_name(seen), seen)
    build = secure.for_server(respond_to_api_versions).principal_builder
    assert "User:alice" == str(build(identity))


def test_a_start_warns_of_rules_whose_time_is_only_bounded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rules = r"RULE:^CN=(.*)\1$/$1/,RULE:^CN=(.*?),.*$/$1/"
    settings = {**tls_settings(tmp_path), "ssl.principal.mapping.rules": rules}

    security(settings, SecurityProtocol.SSL).log_warnings()

    warned = [text for text in caplog.messages if "ssl.principal.mapping.rules" in text]
    assert 1 == len(warned)
    assert repr(r"^CN=(.*)\1$") in warned[0]
    assert "names that take too long are rejected" in warned[0]


def test_a_builder_replaces_the_mapping(tmp_path: Path) -> None:
    def build(identity: Identity) -> Principal:
        if identity.mechanism == "PLAIN" and identity.authorization_id == "bob":
            raise AuthenticationError("not bob")
        return Principal("Robot", f"{identity.authorization_id}@{identity.peer_address}")

    secure = security(
        {"sasl.enabled.mechanisms": "PLAIN", PLAIN_KEY: PLAIN_USERS}, principal_builder=build
    )

    alice = log_in(secure, "PLAIN", plain("alice", "secret"))
    assert "Robot:alice@127.0.0.1" == str(alice.principal)
    assert not log_in(secure, "PLAIN", plain("bob", "hunter2")).is_complete


@pytest.mark.parametrize("is_own", [True, False])
def test_beside_sasl_a_certificate_is_asked_for_only_by_the_listener_itself(
    tmp_path: Path, is_own: bool
) -> None:
    """A25, T7: with SASL_SSL only the listener's own setting counts; with SSL it wins."""
    key = "ssl.client.auth"
    settings = {
        **tls_settings(tmp_path),
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        f"listener.name.x.{key}" if is_own else key: "required",
    }

    secure = security(settings, SecurityProtocol.SASL_SSL, "X")

    assert secure.tls is not None
    assert is_own == (ssl.CERT_REQUIRED is secure.tls.context.verify_mode)
    assert is_own == (certificate_seen(secure) is not None)


def test_passwords_and_versions_reach_the_context(tmp_path: Path) -> None:
    """T7: the listener's own setting wins over the general one."""
    settings = {
        **tls_settings(tmp_path),
        "ssl.enabled.protocols": "TLSv1.2",
        "listener.name.ssl.ssl.enabled.protocols": "TLSv1.3",
        "ssl.keystore.password": "x",
    }

    with pytest.raises(ConfigError, match=r"^listener SSL: ssl\.keystore\.password is not allowed"):
        security(settings, SecurityProtocol.SSL)
    del settings["ssl.keystore.password"]
    secure = security(settings, SecurityProtocol.SSL)

    assert secure.tls is not None
    assert ssl.TLSVersion.TLSv1_3 is secure.tls.context.minimum_version


def test_types_of_stores_may_be_in_any_case(tmp_path: Path) -> None:
    """Java compares them so."""
    settings = tls_settings(tmp_path) | {"ssl.keystore.type": "pem", "ssl.truststore.type": "Pem"}

    assert security(settings, SecurityProtocol.SSL).tls is not None


def test_plain_over_tls_from_settings_to_principal(tmp_path: Path) -> None:
    """A1: SASL_SSL as a whole: handshake of TLS, then the exchange through it."""
    settings = {
        **tls_settings(tmp_path),
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": PLAIN_USERS,
    }
    secure = security(settings, SecurityProtocol.SASL_SSL)
    assert secure.tls is not None
    near, far = tcp_pair()
    with near, far:
        transport, client = TlsTransport(near, secure.tls.context), TlsClient(far)
        shake_hands(transport, client)
        begun = begin(secure)
        progress = []
        for payload in (handshake("PLAIN"), token(plain("alice", "secret"))):
            client.send(payload)
            step = begun.receive(_read(near, transport), 0.0, NOW_MS)
            progress.append(step.progress)
            assert step.send is not None
            step.send.write_to(transport)
            assert client.receive(step.send.size)

    assert [Progress.GOES_ON, Progress.AUTHENTICATED] == progress
    assert "User:alice" == str(begun.principal)


def _read(near: socket.socket, transport: TlsTransport) -> bytes:
    assert select.select([near], [], [], 5)[0]
    return transport.read(4096)


class Said(logging.Handler):
    """Waits for what the broker logs."""

    def __init__(self) -> None:
        super().__init__()
        self._text = ""
        self._event = trio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if self._text in record.getMessage():
            self._event.set()

    async def wait_for(self, text: str) -> None:
        self._text, self._event = text, trio.Event()
        await self._event.wait()


@pytest.fixture
def said() -> Iterator[Said]:
    logger = logging.getLogger("trionet.broker")
    handler, level = Said(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(level)


async def test_a_certificate_that_is_taken_up_although_it_has_expired_is_reported(
    tmp_path: Path, autojump_clock: trio.testing.MockClock, said: Said
) -> None:
    secure = security(tls_settings(tmp_path), SecurityProtocol.SSL)
    expired = authority().issue_cert(
        "localhost",
        ADDRESS,
        common_name="broker",
        organization_name="trionet",
        organization_unit_name="tests",
        not_after=datetime.now(UTC),
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(secure.keep_fresh)
        write_pem(tmp_path / "broker.pem", expired)
        await said.wait_for("listener SSL: the certificate in")
        nursery.cancel_scope.cancel()


async def test_what_changes_outside_is_read_again(
    tmp_path: Path, autojump_clock: trio.testing.MockClock, said: Said
) -> None:
    """T20: a renewed certificate is taken up; a bad one is reported, and the old one stays."""
    secure = security(tls_settings(tmp_path), SecurityProtocol.SSL)
    await secure.load()
    assert secure.tls is not None
    before = secure.tls.context
    async with trio.open_nursery() as nursery:
        nursery.start_soon(secure.keep_fresh)
        write_trust(tmp_path / "trust.pem", "ca", "another")
        await said.wait_for("certificates reloaded")
        after = secure.tls.context
        write_trust(tmp_path / "broker.pem")
        await said.wait_for("could not reload certificates")
        nursery.cancel_scope.cancel()

    assert before is not after
    assert after is secure.tls.context


async def test_a_store_that_cannot_be_read_is_reported_once_and_taken_up_when_it_can(
    tmp_path: Path, mock_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    secure = security(tls_settings(tmp_path), SecurityProtocol.SSL)
    assert secure.tls is not None
    before = secure.tls.context
    (tmp_path / "broker.pem").unlink()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(secure.keep_fresh)
        for _ in range(3):
            await one_check(mock_clock)
        assert 1 == caplog.text.count("No such file or directory")
        write_pem(tmp_path / "broker.pem", certificate())
        await one_check(mock_clock)
        nursery.cancel_scope.cancel()

    assert before is not secure.tls.context


async def one_check(clock: trio.testing.MockClock) -> None:
    """Let the files be looked at, in a thread."""
    await wait_all_tasks_blocked()
    clock.jump(RELOAD_CHECK_SECONDS)
    await wait_all_tasks_blocked()
    while trio.to_thread.current_default_thread_limiter().borrowed_tokens:
        await wait_all_tasks_blocked()


OAUTH = "listener.name.sasl_plaintext.oauthbearer."
HANDLER = f"{OAUTH}sasl.server.callback.handler.class"
SIGNED = {"sasl.oauthbearer.jwks.endpoint.url": "https://issuer.example/keys"}
AUDIENCE, ISSUER = "sasl.oauthbearer.expected.audience", "sasl.oauthbearer.expected.issuer"


@pytest.mark.parametrize(
    ("mechanism", "settings", "warning"),
    [
        (
            "OAUTHBEARER",
            {HANDLER: UNSECURED},
            (
                f"{HANDLER} accepts unsigned tokens, so any client can authenticate as any user;"
                " use it only for testing"
            ),
        ),
        (
            "OAUTHBEARER",
            SIGNED,
            f"without {AUDIENCE} and {ISSUER}, tokens issued for other services are accepted",
        ),
        *(
            ("OAUTHBEARER", {**SIGNED, key: "us"}, "")
            for key in (AUDIENCE, ISSUER, OAUTH + AUDIENCE, OAUTH + ISSUER)
        ),
        ("SCRAM-SHA-256", SIGNED, ""),
    ],
)
def test_tokens_that_prove_less_than_they_seem_to_are_reported(
    mechanism: str, settings: dict[str, str], warning: str, caplog: pytest.LogCaptureFixture
) -> None:
    security({"sasl.enabled.mechanisms": mechanism, **settings}).log_warnings()

    expected = [f"listener SASL_PLAINTEXT: {warning}"] if warning else []
    assert expected == caplog.messages
