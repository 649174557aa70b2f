"""TLS from the client's side, against our broker over real connections."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

import trionet
from support.secured_clients import is_served, over_tls, polled_client, refusal, tls_listener
from support.tls import authority, certificate, server_context, write_pem
from support.wire import LOOPBACK
from trionet.client.network._open_client import ClientSettings, open_network_client
from trionet.client.security._settings import SecuritySettings
from trionet.errors import ConfigError, DisconnectedError
from trionet.net.wire._endpoint import SecurityProtocol
from trionet.testing import MemoryNetwork


async def test_the_broker_is_known_by_a_name_or_an_address_of_its_certificate() -> None:
    """T1: both are compared with the alternative names, and nothing is looked up backwards."""
    async with trionet.open_broker(tls_listener()) as broker:
        port = broker.bootstrap_servers.rpartition(":")[2]
        for host in (LOOPBACK, "localhost"):
            async with polled_client(f"{host}:{port}", over_tls()) as client:
                assert await is_served(client)


async def test_the_broker_is_known_by_its_common_name_where_there_is_no_other() -> None:
    """T1: an old certificate has one name only."""
    leaf = authority().issue_cert(common_name="localhost")
    async with trionet.open_broker(tls_listener(leaf)) as broker:
        port = broker.bootstrap_servers.rpartition(":")[2]
        # The cluster calls itself by its address, which the certificate does not name.
        async with polled_client(f"localhost:{port}", over_tls()) as client:
            await client.until_updated()

            assert 1 == client.metadata.updates


async def test_another_name_than_the_certificate_s_is_refused_unless_names_are_not_compared() -> (
    None
):
    """T2: with the check, which is the default, and without."""
    async with trionet.open_broker(tls_listener(certificate("example.org"))) as broker:
        found = await refusal(broker.bootstrap_servers, over_tls())
        unchecked = over_tls(endpoint_identification_algorithm="")
        async with polled_client(broker.bootstrap_servers, unchecked) as client:
            assert await is_served(client)

    assert "TLS handshake failed: the peer's certificate was rejected:" in found
    assert "not valid for '127.0.0.1'" in found


async def test_a_broker_whose_authority_is_not_trusted_is_refused() -> None:
    async with trionet.open_broker(tls_listener()) as broker:
        found = await refusal(broker.bootstrap_servers, over_tls("other"))

    assert "self-signed certificate in certificate chain" in found


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize("ca", [None, "other"])
async def test_a_client_that_cannot_show_who_it_is_learns_why(version: str, ca: str | None) -> None:
    """T4: also with TLS 1.3, where the refusal comes after the end of its handshake."""
    shown = {} if ca is None else _certificate_of(ca)
    given = tls_listener(ssl_client_auth="required", ssl_enabled_protocols=version)
    async with trionet.open_broker(given) as broker:
        found = await refusal(broker.bootstrap_servers, over_tls(**shown))

    assert "TLS handshake failed" in found
    expected = "unknown ca" if ca else "handshake failure" if version == "TLSv1.2" else "required"
    assert expected in found


@pytest.mark.parametrize("asked", ["required", "requested"])
async def test_a_client_shows_its_certificate(asked: str, tmp_path: Path) -> None:
    """T4, T6: from a file or from the settings themselves."""
    file = write_pem(tmp_path / "client.pem", certificate("client.example.org"))
    in_file = {"keystore_type": "PEM", "keystore_location": file}
    async with trionet.open_broker(tls_listener(ssl_client_auth=asked)) as broker:
        for shown in (in_file, _certificate_of("ca")):
            async with polled_client(broker.bootstrap_servers, over_tls(**shown)) as client:
                assert await is_served(client)


def _certificate_of(ca: str) -> dict[str, str]:
    chain = certificate("client.example.org", ca=ca).private_key_and_cert_chain_pem.bytes().decode()
    return {
        "keystore_type": "PEM",
        "keystore_key": chain,
        "keystore_certificate_chain": chain,
    }


async def test_sides_without_a_common_version_say_so() -> None:
    """T10."""
    async with trionet.open_broker(tls_listener(ssl_enabled_protocols="TLSv1.3")) as broker:
        security = over_tls(enabled_protocols=("TLSv1.2",))
        found = await refusal(broker.bootstrap_servers, security)

    assert "TLS handshake failed: tlsv1 alert protocol version" in found


async def test_a_listener_without_tls_is_refused_by_the_client() -> None:
    """Its bytes are no TLS, and to try again would not help."""
    async with trio.open_nursery() as nursery:
        listener = (await trio.open_tcp_listeners(0, host=LOOPBACK))[0]

        async def answer_nonsense(stream: trio.SocketStream) -> None:
            async with stream:
                await stream.receive_some()
                await stream.send_all(b"\0\0\0\1x")

        nursery.start_soon(trio.serve_listeners, answer_nonsense, [listener])
        port = listener.socket.getsockname()[1]
        found = await refusal(f"{LOOPBACK}:{port}", over_tls())
        nursery.cancel_scope.cancel()

    assert "TLS handshake failed" in found


async def test_a_broker_that_leaves_during_the_handshake_is_no_failed_authentication() -> None:
    """T16: it restarts, perhaps, and is tried again."""
    async with trio.open_nursery() as nursery:
        listener = (await trio.open_tcp_listeners(0, host=LOOPBACK))[0]

        async def leave(stream: trio.SocketStream) -> None:
            async with stream:
                await stream.receive_some()

        nursery.start_soon(trio.serve_listeners, leave, [listener])
        port = listener.socket.getsockname()[1]
        async with polled_client(f"{LOOPBACK}:{port}", over_tls()) as client:
            [node] = client.metadata.cluster.nodes.values()
            with pytest.raises(DisconnectedError, match="does not speak TLS"):
                await client.until_ready(node)
        nursery.cancel_scope.cancel()


async def test_the_name_is_sent_to_the_broker() -> None:
    """Proxies that stand before several brokers choose by it (SNI)."""
    names: list[str | None] = []
    context = server_context()
    context.sni_callback = lambda _, name, __: names.append(name)
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_ssl_over_tcp_listeners(0, context, host=LOOPBACK)

        async def shake_hands(stream: trio.SSLStream[trio.SocketStream]) -> None:
            async with stream:
                await stream.do_handshake()

        nursery.start_soon(trio.serve_listeners, shake_hands, listeners)
        listener = listeners[0].transport_listener
        assert isinstance(listener, trio.SocketListener)
        port = listener.socket.getsockname()[1]
        async with polled_client(f"localhost:{port}", over_tls()) as client:
            [node] = client.metadata.cluster.nodes.values()
            with pytest.raises(DisconnectedError):
                await client.until_ready(node)
        nursery.cancel_scope.cancel()

    assert "localhost" in names


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"endpoint_identification_algorithm": "ldaps"}, "ssl.endpoint.identification.algorithm"),
        ({"truststore_certificates": None, "truststore_location": "/none"}, "cannot read /none"),
        ({"keystore_type": "PEM", "keystore_location": "/none"}, "cannot read /none"),
        ({"keystore_type": "PEM", "keystore_key": "x"}, "must be set together"),
        ({"enabled_protocols": ("TLSv1",)}, "older versions are not safe"),
    ],
)
async def test_settings_that_cannot_be_used_are_reported_at_once(
    changes: dict[str, Any], expected: str
) -> None:
    """T9."""
    settings = ClientSettings(security=over_tls(**changes))
    with pytest.raises(ConfigError, match=expected):
        async with open_network_client("127.0.0.1:1", settings):
            raise AssertionError("it was opened")


async def test_there_is_no_tls_in_memory() -> None:
    settings = ClientSettings(security=SecuritySettings(protocol=SecurityProtocol.SSL))
    with pytest.raises(ConfigError, match="an in-memory network does not support TLS"):
        async with open_network_client("10.0.0.1:1", settings, network=MemoryNetwork()):
            raise AssertionError("it was opened")
