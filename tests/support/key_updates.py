"""Records of TLS 1.3 that no library sends on purpose: key updates, as many as one likes.

They are encrypted with the secret that a client logs (RFC 8446, 4.6.3 and 7.2), so that they are
good ones; the client's own engine cannot send anything after them.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA384
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from support.tls import TlsClient, client_context

APPLICATION_DATA, HANDSHAKE = b"\x17", b"\x16"
# A message of the handshake: its kind, its length, and whether a response is asked for.
KEY_UPDATE = b"\x18\x00\x00\x01"


def logging_context(path: Path) -> ssl.SSLContext:
    """A client's side of TLS 1.3 that writes its secrets down."""
    context = client_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.keylog_filename = str(path)
    return context


class RecordWriter:
    """Writes what a client would send, in place of its engine, which has sent nothing yet.

    Args:
        client: after its handshake with :func:`logging_context`.
        path: where it wrote its secrets down.
    """

    def __init__(self, client: TlsClient, path: Path) -> None:
        suite = client.tls.cipher()
        assert suite is not None
        assert "TLS_AES_256_GCM_SHA384" == suite[0]
        [line] = [
            line for line in path.read_text().splitlines() if line.startswith("CLIENT_TRAFFIC_")
        ]
        self._take_secret(bytes.fromhex(line.split()[2]))

    def data(self, data: bytes) -> bytes:
        """A record with some data, which may be none."""
        return self._record(APPLICATION_DATA, data)

    def key_updates(self, count: int, *, are_answered: bool = False) -> bytes:
        """So many records, each with a key update."""
        return b"".join(self._key_update(are_answered) for _ in range(count))

    def _key_update(self, is_answered: bool) -> bytes:
        record = self._record(HANDSHAKE, KEY_UPDATE + bytes([is_answered]))
        self._take_secret(_expand(self._secret, b"traffic upd", SHA384.digest_size))
        return record

    def _take_secret(self, secret: bytes) -> None:
        self._secret = secret
        self._key = AESGCM(_expand(secret, b"key", 32))
        self._iv = int.from_bytes(_expand(secret, b"iv", 12), "big")
        self._number = 0

    def _record(self, kind: bytes, content: bytes) -> bytes:
        head = APPLICATION_DATA + b"\x03\x03" + (len(content) + 17).to_bytes(2, "big")
        nonce = (self._iv ^ self._number).to_bytes(12, "big")
        self._number += 1
        return head + self._key.encrypt(nonce, content + kind, head)


def _expand(secret: bytes, label: bytes, size: int) -> bytes:
    label = b"tls13 " + label
    info = size.to_bytes(2, "big") + bytes([len(label)]) + label + b"\x00"
    return HKDFExpand(SHA384(), size, info).derive(secret)
