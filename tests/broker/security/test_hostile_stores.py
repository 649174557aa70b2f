"""Clients that alter a keystore's path to what is no file: a broker in a process of its own."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from subprocess import Popen

import pytest
from asn1crypto.keys import EncryptedPrivateKeyInfo  # type: ignore[import-untyped]
from asn1crypto.pem import armor  # type: ignore[import-untyped]
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from support.client import Client, connect
from support.config_calls import BROKER, SET, alter, alter_all, sets
from support.processes import SAME_TRIONET, first_line, memory_bytes, running
from support.tls import certificate, write_pem
from trionet.net.tls._key_stores import STORE_BYTES_MAX, STORE_THREADS_MAX
from trionet.protocol.error_codes import INVALID_REQUEST

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's devices")

MEGABYTE = 1024 * 1024
# What a broker may have of data, so that one that reads /dev/zero does not take the machine's.
DATA_BYTES_MAX = 1024 * MEGABYTE
LIMITED = (
    f"import os, resource, sys; resource.setrlimit(resource.RLIMIT_DATA, ({DATA_BYTES_MAX},) * 2);"
    " os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)
KEY_STORE = "listener.name.secure.ssl.keystore"
TRUST_STORE = "listener.name.secure.ssl.truststore"


@pytest.fixture(scope="module")
def broker_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Popen[bytes]]]:
    """A broker with an open listener and one with TLS: the address of the open one, the process.

    It serves all tests in turn, and stops at their end.
    """
    folder = tmp_path_factory.mktemp("broker")
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SECURE://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECURE:SSL",
        f"{KEY_STORE}.type": "PEM",
        f"{KEY_STORE}.location": write_pem(folder / "first.pem", certificate()),
        f"{TRUST_STORE}.type": "PEM",
    }
    command = [sys.executable, "-c", LIMITED, "-m", "trionet", "broker", "--memory"]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    with running(command, env=SAME_TRIONET) as process:
        addresses = first_line(process).removeprefix("trionet broker ready: ").split(",")
        yield addresses[0].removeprefix("PLAINTEXT://"), process
        process.send_signal(signal.SIGTERM)
        assert 0 == process.wait()


@pytest.fixture
async def client(broker_process: tuple[str, Popen[bytes]]) -> AsyncIterator[Client]:
    """Of a broker that still serves after the test, although its settings were attacked."""
    async with connect(broker_process[0]) as client:
        yield client
        assert (0, "") == await alter(client, BROKER, "1", *sets(message_max_bytes=5))


def hostile(kind: str, folder: Path) -> str:
    """A path that no broker should read."""
    path = folder / "hostile"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(str(path))
    elif kind == "a link":
        path.symlink_to("/dev/zero")
    elif kind == "sparse":
        with path.open("wb") as file:
            file.truncate(100 * 1024 * MEGABYTE)
    elif kind == "folder of pipes":
        path.mkdir()
        os.mkfifo(path / "a.pem")
        (path / "b.pem").symlink_to("/dev/zero")
    else:
        return kind
    return str(path)


KINDS = [
    "/dev/zero",
    "/dev/ptmx",
    "/dev/random",
    "/proc/kmsg",
    "pipe",
    "socket",
    "a link",
    "sparse",
    "folder of pipes",
    "zero\0byte",
    "x" * 20_000,
]


@pytest.mark.parametrize("store", [KEY_STORE, TRUST_STORE])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind[:20].replace("\0", "0"))
async def test_a_path_to_what_is_no_store_is_refused_at_once_and_the_broker_goes_on(
    client: Client, broker_process: tuple[str, Popen[bytes]], tmp_path: Path, kind: str, store: str
) -> None:
    _, process = broker_process
    before = memory_bytes(process.pid)
    path = hostile(kind, tmp_path)

    for validate_only in (True, False):
        code, message = await alter(
            client, BROKER, "1", (f"{store}.location", SET, path), validate_only=validate_only
        )
        assert INVALID_REQUEST == code
        assert "listener SECURE: " in message
        code, _ = await alter_all(
            client, BROKER, "1", {f"{store}.location": path}, validate_only=validate_only
        )
        assert INVALID_REQUEST == code

    assert memory_bytes(process.pid) - before < 32 * MEGABYTE


def endless_key() -> str:
    """A key in PKCS8 that asks for two thousand million rounds of a hash to be decrypted."""
    key = load_pem_private_key(certificate().private_key_pem.bytes(), None)
    encrypted = key.private_bytes(
        Encoding.DER, PrivateFormat.PKCS8, BestAvailableEncryption(b"password")
    )
    info = EncryptedPrivateKeyInfo.load(encrypted)
    derivation = info["encryption_algorithm"]["parameters"]["key_derivation_func"]
    derivation["parameters"]["iteration_count"] = 2**31 - 1
    pem: bytes = armor("ENCRYPTED PRIVATE KEY", info.dump(force=True))
    return pem.decode()


async def test_a_key_that_takes_hours_to_decrypt_is_refused_at_once(client: Client) -> None:
    """As often as there are threads for stores, and once more: none of them is lost to it."""
    settings = {
        f"{KEY_STORE}.key": endless_key(),
        f"{KEY_STORE}.certificate.chain": certificate().cert_chain_pems[0].bytes().decode(),
    }
    operations = [(key, SET, text) for key, text in settings.items()]
    operations += [
        (f"{KEY_STORE}.location", SET, ""),
        ("listener.name.secure.ssl.key.password", SET, "password"),
    ]

    for _ in range(STORE_THREADS_MAX + 1):
        code, message = await alter(client, BROKER, "1", *operations)
        assert INVALID_REQUEST == code
        assert "too many iterations of key derivation" in message


async def test_an_alteration_of_many_megabytes_of_beginnings_is_refused_at_once(
    client: Client, tmp_path: Path
) -> None:
    """A regular expression would look from each of them to the end."""
    for text in (b"-----BEGIN CERTIFICATE-----\n", b"-----BEGIN PRIVATE KEY-----\n"):
        path = tmp_path / "many.pem"
        path.write_bytes(text * (STORE_BYTES_MAX // len(text)))
        for store in (KEY_STORE, TRUST_STORE):
            code, message = await alter(client, BROKER, "1", (f"{store}.location", SET, str(path)))
            assert (INVALID_REQUEST, True) == (code, "in PEM format" in message)
