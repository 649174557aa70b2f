"""Which APIs a broker serves, as it tells its clients."""

from __future__ import annotations

import socket
import struct

from trionet.protocol import api_keys

_REQUEST = b"\0\x12\0\0\0\0\0\1\0\6suites"  # key 18, version 0, correlation id 1


def served_apis(port: int) -> set[str]:
    """Kafka's names of the APIs that a broker on 127.0.0.1 advertises."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as sock:
        sock.sendall(len(_REQUEST).to_bytes(4, "big") + _REQUEST)
        reply = sock.makefile("rb")
        (size,) = struct.unpack(">i", reply.read(4))
        answer = reply.read(size)
    _, error_code, count = struct.unpack_from(">ihi", answer)
    if error_code:
        raise RuntimeError(f"ApiVersions was answered with error {error_code}")
    triples = struct.iter_unpack(">hhh", answer[10 : 10 + 6 * count])
    return {api_keys.name_of(key) for key, _, _ in triples}
