"""What the TLS benchmark's servers and its load say to each other, and under which cipher.

A request is a size-prefixed frame that holds the size of the answer, a 32-bit number; the answer is
a size-prefixed frame of that many bytes.
"""

from __future__ import annotations

from functools import cache

# What OpenSSL agrees on with itself for a certificate on an elliptic curve.
CIPHERS = {"TLSv1.3": "TLS_AES_256_GCM_SHA384", "TLSv1.2": "ECDHE-ECDSA-AES256-GCM-SHA384"}
# A prime number of bytes, so that pieces of a response in another order make another response.
_PATTERN = bytes(range(251))


def request_for(size: int) -> bytes:
    """The frame that asks for a response of ``size`` bytes."""
    return (4).to_bytes(4, "big") + size.to_bytes(4, "big")


@cache
def answer_to(payload: bytes) -> bytes:
    """The frame that responds to a request's payload; made once for each size."""
    size = int.from_bytes(payload, "big")
    return payload + (_PATTERN * (size // len(_PATTERN) + 1))[:size]
