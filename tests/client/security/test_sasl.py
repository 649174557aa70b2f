"""SASL from the client's side, against our broker.

Settings that do not fit together are told of.
"""

from __future__ import annotations

import itertools
import re
from typing import Any

import attrs
import pytest
import trio
from trio.testing import MockClock

import trionet
from support.network_clients import HEARTBEAT
from support.sasl_node import SaslNode
from support.scripted_node import Hangup, ScriptedNode, Seen, encoded
from support.secured_clients import (
    by_password,
    is_served,
    over_tls,
    polled_client,
    refusal,
)
from trionet import testing
from trionet.client.network._cluster import Node
from trionet.client.network._network_client import NetworkClient
from trionet.client.security._settings import BearerToken, SaslClientSettings, SecuritySettings
from trionet.errors import AuthenticationError, ConfigError, DisconnectedError
from trionet.net.wire._endpoint import SecurityProtocol
from trionet.protocol import api_keys
from trionet.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from trionet.protocol.messages.heartbeat import HeartbeatResponse
from trionet.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from trionet.protocol.messages.sasl_handshake import SaslHandshakeResponse
from trionet.testing import MemoryNetwork, NetworkEvent

HEARTBEATS = 75


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_a_user_gets_in_by_a_password(tls: bool, mechanism: str) -> None:
    """A1, A3: over plain connections and over TLS."""
    with testing.broker(tls=tls, sasl=mechanism) as broker:
        given = broker.security
        security = by_password(given.username or "", given.password or "", mechanism)
        if given.ca_pem is not None:
            trust = over_tls(truststore_certificates=given.ca_pem).tls
            security = attrs.evolve(security, protocol=SecurityProtocol.SASL_SSL, tls=trust)
        async with polled_client(broker.bootstrap_servers, security) as client:
            assert await is_served(client)
        wrong = attrs.evolve(
            security, sasl=by_password(given.username or "", "guess", mechanism).sasl
        )
        found = await refusal(broker.bootstrap_servers, wrong)

    assert f"SASL {mechanism}: Authentication failed" in found


@pytest.mark.parametrize(
    ("security", "expected"),
    [
        (by_password(password="guess"), "Invalid username or password"),
        (by_password("nobody"), "Invalid username or password"),
        (
            by_password(mechanism="SCRAM-SHA-256"),
            "'SCRAM-SHA-256' is not enabled on the broker; enabled: PLAIN",
        ),
    ],
)
async def test_the_broker_s_refusal_reaches_the_waiting_task(
    autojump_clock: MockClock, security: SecuritySettings, expected: str
) -> None:
    """A2, A16: KIP-152, at the user's own call, as often as he asks."""
    network = MemoryNetwork()
    node = SaslNode(network)
    async with node.listening(), polled_client(node.address, security, network) as client:
        [known] = client.metadata.cluster.nodes.values()
        for _ in range(3):
            with pytest.raises(AuthenticationError, match=expected):
                await client.request(known, DescribeClusterRequest())
        assert isinstance(client.authentication_error(known), AuthenticationError)
        with pytest.raises(AuthenticationError, match=expected):
            await client.until_updated()


async def test_a_client_with_sasl_at_a_listener_without(autojump_clock: MockClock) -> None:
    network = MemoryNetwork()
    async with trionet.open_broker(network=network) as broker:
        found = await refusal(broker.bootstrap_servers, by_password(), network)

    assert "the broker's listener does not use SASL" in found


@pytest.mark.parametrize("api_key", [api_keys.SASL_HANDSHAKE, api_keys.SASL_AUTHENTICATE])
async def test_a_broker_whose_versions_of_the_exchange_cannot_be(
    autojump_clock: MockClock, network: MemoryNetwork, api_key: int
) -> None:
    node = ScriptedNode(network)
    node.ranges[api_key] = (-5, -5)
    async with node.listening():
        found = await refusal(node.address, by_password(), network)

    assert f"supports no version of {api_keys.name_of(api_key)} up to the broker's newest" in found


async def test_a_broker_that_leaves_in_the_exchange_may_be_an_old_one_that_says_no(
    autojump_clock: MockClock, network: MemoryNetwork, caplog: pytest.LogCaptureFixture
) -> None:
    """KIP-152: before it, a broker had no words for a refusal. It is tried again."""
    node = ScriptedNode(network)
    node.replies["SaslHandshake"] = lambda _: Hangup()
    async with node.listening(), polled_client(node.address, by_password(), network) as client:
        with pytest.raises(DisconnectedError, match="during SASL authentication"):
            await client.until_ready(Node(-2, node.host, 9092))

    assert "or a broker older than Kafka 1.0 that rejects the credentials" in caplog.text


async def test_an_exchange_without_a_response_ends_with_the_connect(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    """N32: in the time for connecting."""
    node = ScriptedNode(network)
    node.replies["ApiVersions"] = lambda _: None
    async with node.listening(), polled_client(node.address, by_password(), network) as client:
        with trio.fail_after(12.1), pytest.raises(DisconnectedError):
            await client.until_ready(Node(-2, node.host, 9092))
        assert ["ApiVersions"] == node.names()


async def test_an_exchange_with_delayed_and_torn_bytes(autojump_clock: MockClock) -> None:
    network = MemoryNetwork(faults=testing.NetworkFaults(delay_seconds=(0.0, 0.1), short_share=0.7))
    node = SaslNode(network)
    async with node.listening(), polled_client(node.address, by_password(), network) as client:
        assert await is_served(client)


async def _ask(client: NetworkClient, node: Node, count: int) -> None:
    for _ in range(count):
        answer = await client.request(node, DescribeClusterRequest())
        assert answer.cluster_id
        await trio.sleep(1.3)


async def test_sessions_are_renewed_while_requests_go_on(autojump_clock: MockClock) -> None:
    """A1, A23: KIP-368; on the same connection, and no request is lost."""
    seen: list[NetworkEvent] = []
    network = MemoryNetwork(
        trace=seen.append, faults=testing.NetworkFaults(delay_seconds=(0.0, 0.05))
    )
    scripted = SaslNode(network, session_ms=10_000)
    async with (
        scripted.listening(),
        polled_client(scripted.address, by_password(), network) as client,
    ):
        await client.until_updated()
        [node] = client.metadata.cluster.nodes.values()
        async with trio.open_nursery() as nursery:
            for _ in range(7):  # more than there may be in flight
                nursery.start_soon(_ask, client, node, HEARTBEATS)

    assert 10 <= scripted.renewals <= 14, "about every nine of some hundred seconds"
    assert 1 == len([each for each in seen if each.what == "connect"])


async def test_an_idle_connection_is_renewed_by_its_next_request_only(
    autojump_clock: MockClock,
) -> None:
    """Kafka: KafkaChannel.maybeBeginClientReauthentication. Else no idle one would ever end."""
    network = MemoryNetwork()
    scripted = SaslNode(network, session_ms=10_000)
    async with (
        scripted.listening(),
        polled_client(scripted.address, by_password(), network) as client,
    ):
        await client.until_updated()
        [node] = client.metadata.cluster.nodes.values()
        await client.request(node, DescribeClusterRequest())
        await trio.sleep(100)
        assert 0 == scripted.renewals

        await client.request(node, DescribeClusterRequest())
        assert 1 == scripted.renewals


def lets_in(node: ScriptedNode, session_ms: int) -> None:
    """Have a node take any credentials."""
    node.replies["SaslHandshake"] = lambda _: SaslHandshakeResponse()
    authenticated = SaslAuthenticateResponse(session_lifetime_ms=session_ms)
    node.replies["SaslAuthenticate"] = lambda _: authenticated
    node.replies["Heartbeat"] = lambda _: HeartbeatResponse()


async def test_a_renewal_that_is_refused_ends_what_waits_for_it(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    """A21: the password was changed meanwhile, say."""
    node = ScriptedNode(network)
    refuse = False

    def authenticate(_: object) -> SaslAuthenticateResponse:
        if refuse:
            return SaslAuthenticateResponse(error_code=58, error_message="not any more")
        return SaslAuthenticateResponse(session_lifetime_ms=10_000)

    lets_in(node, 10_000)
    node.replies["SaslAuthenticate"] = authenticate
    node.replies["DescribeCluster"] = lambda _: DescribeClusterResponse(cluster_id="c")
    async with node.listening(), polled_client(node.address, by_password(), network) as client:
        await client.until_updated()
        known = client.metadata.cluster.nodes[1]
        await client.request(known, DescribeClusterRequest())
        await trio.sleep(10)
        refuse = True

        with pytest.raises(AuthenticationError, match="SASL PLAIN: not any more"):
            await client.request(known, DescribeClusterRequest())


async def test_a_large_response_from_before_a_renewal_is_taken_in_its_midst(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    """KAFKA-9854: it is larger than anything of the exchange may be."""
    node = ScriptedNode(network)
    held: list[Seen] = []

    def hold(seen: Seen) -> None:
        held.append(seen)

    def release(_: object) -> bytes:
        """The handshake gets a response, after the response to what was asked before."""
        late, now = held[-1], node.seen[-1]
        brokers = [DescribeClusterBroker(broker_id=id, host="h" * 30_000) for id in range(20)]
        large = DescribeClusterResponse(brokers=brokers)
        answers = (
            encoded(late.name, late.version, late.correlation_id, large),
            encoded(now.name, now.version, now.correlation_id, SaslHandshakeResponse()),
        )
        return b"".join(answers)

    lets_in(node, 10_000)
    node.replies["DescribeCluster"] = hold
    found: list[int] = []
    async with node.listening(), polled_client(node.address, by_password(), network) as client:
        await client.until_updated()
        known = client.metadata.cluster.nodes[1]

        async def ask() -> None:
            answer = await client.request(known, DescribeClusterRequest())
            found.append(len(answer.brokers))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await trio.sleep(10)
            node.replies["SaslHandshake"] = release
            await client.request(known, HEARTBEAT)

    assert [20] == found
    assert 1 == len([each for each in node.seen if each.name == "Heartbeat"])


async def test_a_client_by_tokens_takes_the_newest_for_each_renewal(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    node = ScriptedNode(network)
    numbers = itertools.count(1)

    async def provide() -> BearerToken:
        await trio.lowlevel.checkpoint()
        return BearerToken(f"token{next(numbers)}", network.now_ms() + 100_000)

    sasl = SaslClientSettings(mechanism="OAUTHBEARER", token_provider=provide)
    security = SecuritySettings(protocol=SecurityProtocol.SASL_PLAINTEXT, sasl=sasl)
    lets_in(node, 100_000)
    async with node.listening(), polled_client(node.address, security, network) as client:
        await client.until_updated()
        known = client.metadata.cluster.nodes[1]
        for _ in range(3):
            await client.request(known, HEARTBEAT)
            await trio.sleep(99)
    shown = [bytes(each.body.auth_bytes) for each in node.seen if each.name == "SaslAuthenticate"]

    assert [b"token1", b"token2", b"token3"] == [
        found for each in shown for found in re.findall(rb"token[0-9]", each)
    ]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {"mechanism": "GSSAPI"},
            "unsupported sasl.mechanism = 'GSSAPI'; allowed: PLAIN, SCRAM-SHA-256",
        ),
        ({"mechanism": "PLAIN", "user_name": "alice"}, "requires a user name and a password"),
        ({"mechanism": "SCRAM-SHA-512", "password": "x"}, "requires a user name and a password"),
        ({"mechanism": "OAUTHBEARER"}, "requires either a function that returns tokens"),
        (
            {
                "mechanism": "PLAIN",
                "user_name": "alice",
                "password": "x",
                "is_delegation_token": True,
            },
            "a delegation token cannot be used with sasl.mechanism = 'PLAIN'",
        ),
    ],
)
def test_sasl_needs_what_its_mechanism_proves_us_by(given: dict[str, Any], expected: str) -> None:
    """A16."""
    with pytest.raises(ConfigError, match=expected):
        SaslClientSettings(**given)


@pytest.mark.parametrize("protocol", [SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL])
def test_a_protocol_with_sasl_needs_its_settings(protocol: SecurityProtocol) -> None:
    with pytest.raises(ConfigError, match=r"requires sasl\.mechanism"):
        SecuritySettings(protocol=protocol)


def test_secrets_are_not_shown() -> None:
    """A6."""
    sasl = SaslClientSettings(mechanism="PLAIN", user_name="alice", password="hush")

    assert "hush" not in repr(SecuritySettings(sasl=sasl))
