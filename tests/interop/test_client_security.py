"""Our client over the secured listeners of a real Kafka."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import attrs
import pytest
import trio

import trionet
from support.cache import Unavailable
from support.kafka_node import kafka_node
from support.ports import free_ports
from support.secured_clients import (
    PASSWORD,
    USER,
    by_password,
    is_served,
    over_tls,
    polled_client,
    refusal,
)
from support.tls import authority, certificate, write_pem, write_trust
from support.tokens import unsecured
from trionet.client.admin import ScramMechanism, ScramUpsertion
from trionet.client.security._settings import SaslClientSettings, SecuritySettings
from trionet.net.sasl._scram import HASHES
from trionet.net.wire._endpoint import SecurityProtocol
from trionet.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from trionet.protocol.messages.describe_cluster import DescribeClusterRequest
from trionet.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]

SECURITY = "org.apache.kafka.common.security"
SESSION_SECONDS = 2.0


class Kafka(NamedTuple):
    """Where its listeners are."""

    clear: str
    mutual: str
    sasl: str
    sasl_tls: str


def _settings(folder: Path, ports: list[int]) -> dict[str, str]:
    clear, controller, mutual, sasl, sasl_tls = ports
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{clear},CONTROLLER://127.0.0.1:{controller},"
        f"MUTUAL://127.0.0.1:{mutual},SASLP://127.0.0.1:{sasl},SASLS://127.0.0.1:{sasl_tls}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,MUTUAL:SSL,"
        "SASLP:SASL_PLAINTEXT,SASLS:SASL_SSL",
        "inter.broker.listener.name": "PLAINTEXT",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": _pkcs8(folder / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": write_trust(folder / "trust.pem"),
        "listener.name.mutual.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": ",".join(("PLAIN", *HASHES, "OAUTHBEARER")),
        "delegation.token.secret.key": "secret",
        "connections.max.reauth.ms": str(int(SESSION_SECONDS * 1000)),
    }
    modules = {
        "plain": f'plain.PlainLoginModule required user_{USER}="{PASSWORD}"',
        "scram-sha-256": "scram.ScramLoginModule required",
        "scram-sha-512": "scram.ScramLoginModule required",
        "oauthbearer": "oauthbearer.OAuthBearerLoginModule required"
        ' unsecuredLoginStringClaim_sub="broker"',
    }
    for listener in ("saslp", "sasls"):
        for mechanism, module in modules.items():
            key = f"listener.name.{listener}.{mechanism}.sasl.jaas.config"
            settings[key] = f"{SECURITY}.{module};"
    return settings


def _pkcs8(path: Path) -> str:
    """A certificate of the loopback, with its key in the form that Java reads."""
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        load_pem_private_key,
    )

    leaf = certificate()
    key = load_pem_private_key(leaf.private_key_pem.bytes(), None)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(pem + b"".join(each.bytes() for each in leaf.cert_chain_pems))
    return str(path)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    ports = free_ports(5)
    settings = _settings(tmp_path_factory.mktemp("kafka"), ports)
    try:
        with kafka_node(settings, ports=ports[:2]):
            found = [f"127.0.0.1:{port}" for port in (ports[0], *ports[2:])]
            trio.run(_add_user, found[0])
            yield Kafka(*found)
    except Unavailable as reason:
        pytest.skip(str(reason))


async def _add_user(bootstrap: str) -> None:
    async with trionet.open_admin(bootstrap) as admin:
        # Of one user only one is taken at a time.
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            upsertion = ScramUpsertion(USER, mechanism, PASSWORD)
            (await admin.alter_user_scram_credentials([upsertion])).checked()


def _by_token(subject: str, expires: int) -> SecuritySettings:
    def provide() -> str:
        return unsecured({"sub": subject, "iat": 0, "exp": expires})

    sasl = SaslClientSettings(mechanism="OAUTHBEARER", token_provider=provide)
    return SecuritySettings(protocol=SecurityProtocol.SASL_PLAINTEXT, sasl=sasl)


def _over_tls_too(security: SecuritySettings) -> SecuritySettings:
    return attrs.evolve(security, protocol=SecurityProtocol.SASL_SSL, tls=over_tls().tls)


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
async def test_a_certificate_lets_in(kafka: Kafka, version: str, tmp_path: Path) -> None:
    """T4: and without one the broker's reason is reported."""
    file = write_pem(tmp_path / "client.pem", certificate("client.example.org"))
    shown = over_tls(keystore_type="PEM", keystore_location=file, enabled_protocols=(version,))
    async with polled_client(kafka.mutual, shown) as client:
        assert await is_served(client)
    found = await refusal(kafka.mutual, over_tls(enabled_protocols=(version,)))

    assert "TLS handshake failed" in found


async def test_an_authority_that_is_not_trusted(kafka: Kafka) -> None:
    authority("other")

    assert "certificate was rejected" in await refusal(kafka.mutual, over_tls("other"))


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("mechanism", ["PLAIN", *HASHES])
async def test_a_password_lets_in(kafka: Kafka, mechanism: str, tls: bool) -> None:
    """A1, A2, A3."""
    bootstrap = kafka.sasl_tls if tls else kafka.sasl
    right, wrong = by_password(mechanism=mechanism), by_password("alice", "guess", mechanism)
    if tls:
        right, wrong = _over_tls_too(right), _over_tls_too(wrong)
    async with polled_client(bootstrap, right) as client:
        assert await is_served(client)
    found = await refusal(bootstrap, wrong)

    assert f"SASL {mechanism}: Authentication failed" in found


async def test_a_token_lets_in(kafka: Kafka) -> None:
    """A20."""
    async with polled_client(kafka.sasl, _by_token("alice", 4_000_000_000)) as client:
        assert await is_served(client)


async def test_a_mechanism_that_is_not_enabled_and_a_listener_without_sasl(kafka: Kafka) -> None:
    found = await refusal(kafka.clear, by_password())

    assert "the broker's listener does not use SASL" in found


@pytest.mark.parametrize(
    ("ours", "theirs", "cause"),
    [
        ("PLAINTEXT", "mutual", "speaks TLS; set security.protocol=SSL"),
        ("PLAINTEXT", "sasl_tls", "speaks TLS; set security.protocol=SSL"),
        ("PLAINTEXT", "sasl", "requires SASL; set security.protocol=SASL_PLAINTEXT"),
        ("SSL", "clear", "does not speak TLS; set security.protocol=PLAINTEXT"),
        ("SSL", "sasl", "does not speak TLS; set security.protocol=PLAINTEXT"),
        ("SSL", "sasl_tls", "requires SASL; set security.protocol=SASL_SSL"),
        ("SASL_PLAINTEXT", "clear", "does not use SASL; set security.protocol=PLAINTEXT"),
        ("SASL_PLAINTEXT", "sasl_tls", "speaks TLS; set security.protocol=SASL_SSL"),
    ],
)
async def test_a_listener_with_another_protocol_is_named(
    kafka: Kafka, ours: str, theirs: str, cause: str
) -> None:
    """What to set is said, as far as the broker's behaviour tells."""
    security = {
        "PLAINTEXT": SecuritySettings(),
        "SSL": over_tls(),
        "SASL_PLAINTEXT": by_password(),
    }[ours]
    address = getattr(kafka, theirs)
    async with polled_client(address, security) as client:
        with trio.fail_after(30):
            while not client.connection_problem():
                await client.until_polled()

        assert f"no bootstrap broker could be reached ({address}: " in client.connection_problem()
        assert cause in client.connection_problem()


async def test_sessions_are_renewed(kafka: Kafka) -> None:
    """A23: the broker would close the connection else."""
    async with polled_client(kafka.sasl, by_password()) as client:
        await client.until_updated()
        node = client.metadata.cluster.nodes[1]
        end = trio.current_time() + 3 * SESSION_SECONDS
        while trio.current_time() < end:
            assert (await client.request(node, DescribeClusterRequest())).cluster_id
            await trio.sleep(0.1)

        assert client._client._selector.counters.reauthenticated in (3, 4)
        # That to the bootstrap server is kept.
        assert 1 == client._client._selector.counters.connected


async def test_a_delegation_token_lets_in(kafka: Kafka) -> None:
    """KIP-48: its id and HMAC are name and password of SCRAM."""
    async with polled_client(kafka.sasl, by_password()) as client:
        await client.until_updated()
        node = client.metadata.cluster.nodes[1]
        body = CreateDelegationTokenRequest(max_lifetime_ms=-1)
        made = await client.request(node, body)
        assert 0 == made.error_code
        # The controller has made it; the broker hears of it a moment later.
        known = DescribeDelegationTokenRequest(owners=None)
        with trio.fail_after(20):
            while not (await client.request(node, known)).tokens:  # noqa: ASYNC110
                await trio.sleep(0.1)
    sasl = SaslClientSettings(
        mechanism="SCRAM-SHA-256",
        user_name=made.token_id,
        password=base64.b64encode(bytes(made.hmac)).decode(),
        is_delegation_token=True,
    )
    security = SecuritySettings(protocol=SecurityProtocol.SASL_PLAINTEXT, sasl=sasl)
    async with polled_client(kafka.sasl, security) as client:
        assert await is_served(client)
    wrong = attrs.evolve(security, sasl=attrs.evolve(sasl, is_delegation_token=False))

    assert "Authentication failed" in await refusal(kafka.sasl, wrong)
