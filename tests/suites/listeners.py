"""A `trionet broker` with a listener of each security protocol, on ports known beforehand."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from support.ports import free_ports
from support.processes import SAME_TRIONET, first_line, running
from support.tls import certificate, write_pem, write_trust

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
#: Of the client's private key, in ``client.key``.
KEY_PASSWORD = "abcdefgh"  # what aiokafka's tests know
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def _properties(
    folder: Path, ports: Mapping[str, int], users: Mapping[str, str], more: Mapping[str, str]
) -> str:
    listeners = ",".join(f"{protocol}://127.0.0.1:{port}" for protocol, port in ports.items())
    known = " ".join(f'user_{user}="{password}"' for user, password in users.items())
    lines = {
        "listeners": listeners,
        "advertised.listeners": listeners,
        "log.dirs": str(folder / "data"),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.crt"),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{_PLAIN} {known};",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f"{_PLAIN} {known};",
        **more,
    }
    return "".join(f"{key}={value}\n" for key, value in lines.items())


def _write_client(folder: Path) -> None:
    leaf = certificate("client.example", common_name="client")
    key = load_pem_private_key(leaf.private_key_pem.bytes(), None)
    encryption = BestAvailableEncryption(KEY_PASSWORD.encode())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
    (folder / "client.key").write_bytes(pem)
    chain = b"".join(each.bytes() for each in leaf.cert_chain_pems)
    (folder / "client.crt").write_bytes(chain)


@contextlib.contextmanager
def broker_with_listeners(
    folder: Path, users: Mapping[str, str], more: Mapping[str, str]
) -> Iterator[dict[str, int]]:
    """The port of each protocol.

    The folder gets ``ca.crt``, the authority of all certificates, and ``client.crt`` with
    ``client.key``, which a client may show.

    Args:
        folder: for its files.
        users: who may log in by PLAIN and SCRAM, and their passwords.
        more: settings.
    """
    ports = dict(zip(PROTOCOLS, free_ports(len(PROTOCOLS)), strict=True))
    write_trust(folder / "ca.crt")
    write_pem(folder / "broker.pem", certificate())
    _write_client(folder)
    properties = folder / "server.properties"
    properties.write_text(_properties(folder, ports, users, more))
    command: list[str | Path] = [sys.executable, "-m", "trionet", "broker", "--config", properties]
    for user, password in users.items():
        subprocess.run(
            [*command, "--add-scram", user],
            input=password.encode() + b"\n",
            check=True,
            capture_output=True,
            env=SAME_TRIONET,
        )
    with running(command, env=SAME_TRIONET, stderr=folder / "log") as process:
        first_line(process)
        yield ports
