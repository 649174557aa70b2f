"""What the log of a broker says of peers that are not let in, and at which settings it wonders."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.sasl import api_versions, handshake, plain, request, token
from support.tls import certificate, write_pem
from support.wire import Peer
from trionet import open_broker
from trionet.broker.run._node import log_failed_authentication
from trionet.net.wire._close_reason import CloseReason
from trionet.protocol import api_keys
from trionet.protocol.messages.metadata import MetadataRequest
from trionet.server._closed_connections import ClosedConnection

PLAIN_USERS = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";'
)
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": PLAIN_USERS,
    "connection.failed.authentication.delay.ms": 0,
}


def closed(reason: CloseReason, detail: str = "") -> ClosedConnection:
    return ClosedConnection(
        id="1",
        reason=reason,
        detail=detail,
        peer="192.0.2.1:4711",
        listener="SASL_SSL",
        processor=0,
        opened_at=0.0,
        closed_at=1.0,
        requests=0,
        bytes_received=0,
        bytes_sent=0,
    )


async def test_who_was_not_let_in_is_logged_with_the_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "trionet.broker")
    metadata = request(api_keys.METADATA, 1, MetadataRequest())
    ports = []
    async with open_broker(SETTINGS) as broker:
        for frames in (
            [handshake("PLAIN"), token(plain("alice", "wrong"))],
            [metadata],
            [handshake("PLAIN"), token(plain("alice", "secret"))],
            [api_versions()],
        ):
            with await Peer.connect(broker.endpoints[0].port) as peer:
                ports.append(peer.port)
                for payload in frames:
                    await peer.send_frames(payload)
                    if payload is not metadata:
                        await peer.receive_frame()
                peer.finish()
                await peer.receive_to_end()

    begin = "listener SASL_PLAINTEXT: authentication of 127.0.0.1:"
    wrong_password = "Authentication failed: Invalid username or password"
    too_early = "unexpected Metadata, expected SaslHandshake or ApiVersions"
    assert [
        f"{begin}{ports[0]} failed: {wrong_password}",
        f"{begin}{ports[1]} failed: {too_early}",
    ] == [text for text in caplog.messages if text.startswith(begin)]


def test_what_a_peer_has_written_is_no_line_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "trionet.broker")

    log_failed_authentication(
        closed(CloseReason.AUTHENTICATION_FAILED, "a\nINFO listener X: é\x1b[2J")
    )
    log_failed_authentication(closed(CloseReason.AUTHENTICATION_TIMEOUT))
    log_failed_authentication(closed(CloseReason.PEER_CLOSED, "not of interest"))

    begin = "listener SASL_SSL: authentication of 192.0.2.1:4711 failed: "
    assert [
        begin + r"a\nINFO listener X: é\x1b[2J",
        begin + "the peer did not finish its TLS handshake or SASL exchange in time",
    ] == caplog.messages


@pytest.mark.parametrize(
    ("settings", "warning"),
    [
        ({"sasl.enabled.mechanisms": "SCRAM-SHA-512"}, "there are no SCRAM users"),
        (
            {"listener.name.other.ssl.client.auth": "required"},
            "settings for listeners that do not exist",
        ),
        ({}, ""),
    ],
)
async def test_a_broker_warns_of_settings_that_are_hardly_meant(
    settings: dict[str, str], warning: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_broker({**SETTINGS, **settings}):
        pass

    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert bool(warning) == len(warnings)
    assert all(warning in text for text in warnings)


async def test_a_broker_warns_of_client_certificates_that_are_not_looked_at_as_it_seems(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A25: beside SASL the setting for all listeners does not count, as in Kafka."""
    settings = {
        **SETTINGS,
        "listeners": "SASL_SSL://127.0.0.1:0,SSL://127.0.0.1:0",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": PLAIN_USERS,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": write_pem(tmp_path / "broker.pem", certificate()),
        "ssl.client.auth": "required",
    }
    del settings["listener.name.sasl_plaintext.plain.sasl.jaas.config"]

    async with open_broker(settings):
        pass

    assert [
        (
            "listener SASL_SSL: the broker-wide ssl.client.auth does not apply to SASL listeners;"
            " set listener.name.sasl_ssl.ssl.client.auth"
        ),
        (
            "listener SSL: ssl.client.auth is set without a truststore, so certificates from every"
            " authority that this system trusts are accepted"
        ),
    ] == [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
