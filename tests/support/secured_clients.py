"""Our own client over the secured listeners of a broker in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import attrs
import trio
import trustme

import trionet
from support.tls import authority, certificate
from trionet.client.network._network_client import NetworkClient
from trionet.client.network._open_client import ClientSettings, open_network_client
from trionet.client.security._settings import SaslClientSettings, SecuritySettings
from trionet.net._network import SYSTEM, Network
from trionet.net.tls._tls_context import ClientTlsSettings
from trionet.net.wire._endpoint import SecurityProtocol
from trionet.protocol.messages.describe_cluster import DescribeClusterRequest


def tls_listener(leaf: trustme.LeafCert | None = None, **more: str) -> dict[str, object]:
    """The settings of a broker whose only listener speaks TLS; dots of keys are underscores."""
    chain = (leaf or certificate()).private_key_and_cert_chain_pem.bytes().decode()
    given: dict[str, object] = {
        "listeners": "SSL://127.0.0.1:0",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": chain,
        "ssl.keystore.certificate.chain": chain,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": authority().cert_pem.bytes().decode(),
    }
    return given | {key.replace("_", "."): value for key, value in more.items()}


def over_tls(ca: str = "ca", **changes: Any) -> SecuritySettings:
    """A client that trusts one authority; changes are of its TLS settings."""
    tls = ClientTlsSettings(
        truststore_type="PEM", truststore_certificates=authority(ca).cert_pem.bytes().decode()
    )
    return SecuritySettings(protocol=SecurityProtocol.SSL, tls=attrs.evolve(tls, **changes))


USER, PASSWORD = "alice", "correct, horse"


def by_password(
    user_name: str = USER, password: str = PASSWORD, mechanism: str = "PLAIN"
) -> SecuritySettings:
    """A client that says who it is by a password, in the clear."""
    return SecuritySettings(
        protocol=SecurityProtocol.SASL_PLAINTEXT,
        sasl=SaslClientSettings(mechanism=mechanism, user_name=user_name, password=password),
    )


@asynccontextmanager
async def polled_client(
    bootstrap: str, security: SecuritySettings, network: Network = SYSTEM, **more: Any
) -> AsyncIterator[NetworkClient]:
    """A client that a task polls."""
    settings = ClientSettings(security=security, **more)
    async with (
        open_network_client(bootstrap, settings, network=network) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(keep_polling, client)
        yield client
        nursery.cancel_scope.cancel()


async def keep_polling(client: NetworkClient) -> None:
    """Poll a client until cancelled; it may begin whenever it likes."""
    await client.run()


async def is_served(client: NetworkClient) -> bool:
    """Whether the first node of the cluster responses a request."""
    await client.until_updated()
    node = next(iter(client.metadata.cluster.nodes.values()))
    answer = await client.request(node, DescribeClusterRequest())
    return bool(answer.cluster_id)


async def refusal(bootstrap: str, security: SecuritySettings, network: Network = SYSTEM) -> str:
    """Why a client is not let in."""
    async with polled_client(bootstrap, security, network) as client:
        try:
            await client.until_updated()
        except trionet.AuthenticationError as error:
            return str(error)
    raise AssertionError("it was let in")
