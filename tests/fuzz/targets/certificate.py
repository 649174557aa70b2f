"""Names in certificates: texts as Java writes them, or no certificate.

An input that begins with a zero is the DER of a certificate, another one that of its subject.
"""

from __future__ import annotations

from trionet.net._principal import PrincipalMapping
from trionet.net.tls._certificate import alternative_names, distinguished_name

WATCHED = ("trionet.net.tls._certificate", "trionet.net._principal")
WORDS = (
    *(b"0\x00", b"0\x0b1\x09", b"\x06\x03U\x04\x03", b"\x0c\x01a", b"\x13\x01,", b"\x1e\x02\0a"),
    *(b"0\x80", b"\x1c\x04\0\0\0a", b"\xa0\x03\x02\x01\x02", b"\xa3\x04", b"\x06\x03U\x1d\x11"),
    *(b"\x04\x02", b"0\x82", b"\x02\x01\x01", b"\xff\xff\xff\x7f", b"\x84\xff\xff\xff\xff"),
    *(b"\x16\x01 ", b'\x0c\x02\\"', b"\0"),
)
BYTES_MAX = 1024


def run(data: bytes) -> None:
    certificate = data[1:] if data[:1] == b"\0" else _with_subject(data[1:])
    try:
        name = distinguished_name(certificate)
    except ValueError:
        pass
    else:
        name.encode()
        assert "\0" not in name
        # Each name is a rule's business, whatever is in it.
        assert name == PrincipalMapping().name(name)
    try:
        names = alternative_names(certificate)
    except ValueError:
        return
    assert all(name in certificate for name in names)


def _with_subject(name: bytes) -> bytes:
    before = b"\x02\x01\x01" + 3 * b"0\x00"  # serial number, algorithm, issuer, validity
    return _sequence(_sequence(before + name))


def _sequence(content: bytes) -> bytes:
    return b"0\x83" + len(content).to_bytes(3, "big") + content
