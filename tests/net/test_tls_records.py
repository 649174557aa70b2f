"""Records that break the rules of TLS: the connection ends, and its log says why."""

from __future__ import annotations

import re
import select
import ssl

import pytest

from support.tls import TlsClient, client_context, server_context, shake_hands
from support.wire import tcp_pair
from trionet.net.tls._tls_transport import TlsError, TlsTransport

# An application's record of TLS 1.2 that is shorter than what encryption alone adds.
TOO_SHORT = b"\x17\x03\x03\x00\x09" + bytes(9)


def test_what_openssl_has_no_reason_for_is_reported_without_places_in_its_source() -> None:
    context = client_context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    near, far = tcp_pair()
    with near, far:
        transport, client = TlsTransport(near, server_context()), TlsClient(far, context)
        shake_hands(transport, client)
        far.sendall(TOO_SHORT)
        assert select.select([near], [], [], 5)[0]

        with pytest.raises(TlsError) as caught:
            transport.read(100)

    # "internal error" in OpenSSL 3.0.
    assert re.fullmatch("TLS: [a-z ]+", str(caught.value)), caught.value
