"""A parser for PEM, which finds the blocks between ``-----BEGIN`` and ``-----END`` lines."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Final

_BEGIN: Final = b"-----BEGIN "
_END: Final = b"-----END "
_DASHES: Final = b"-----"

CERTIFICATE: Final = b"CERTIFICATE"


def blocks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the label and the text of each block, in order; text between the blocks is skipped.

    This takes linear time for any data, because the data may be untrusted: a regular expression
    would take hours for a few megabytes of BEGIN lines without an END line.
    """
    position = 0
    while (end := data.find(_END, position)) >= 0:
        label_at = end + len(_END)
        label_end = data.find(_DASHES, label_at)
        if label_end < 0:
            return
        label = data[label_at:label_end]
        begin = data.rfind(_BEGIN, position, end)
        if begin >= 0 and data.startswith(label + _DASHES, begin + len(_BEGIN)):
            yield label, data[begin : label_end + len(_DASHES)]
        position = label_end


def certificates(data: bytes) -> list[bytes]:
    """Return the certificates in the data, as PEM."""
    return [text for label, text in blocks(data) if label == CERTIFICATE]


def private_key(data: bytes) -> bytes | None:
    """Return the first private key in the data, in any PEM format; None if there is none."""
    keys = (text for label, text in blocks(data) if label.endswith(b"PRIVATE KEY"))
    return next(keys, None)


def is_encrypted(data: bytes) -> bool:
    """Whether a key, in PKCS8 or in the older format, requires a password."""
    return b"-----BEGIN ENCRYPTED " in data or b"\nProc-Type: 4,ENCRYPTED" in data


def content(text: bytes) -> bytes:
    """Decode the content of a block without headers.

    Raises:
        ValueError: the block has headers, or is not base64.
    """
    _, body = text.removeprefix(_BEGIN).split(_DASHES, 1)
    body, _ = body.rsplit(_END, 1)
    return base64.b64decode(b"".join(body.split()), validate=True)


def encrypted_pkcs8(data: bytes) -> bytes:
    """Return the PEM block of a key that is encrypted in PKCS8."""
    label = b"ENCRYPTED PRIVATE KEY" + _DASHES
    return _BEGIN + label + b"\n" + base64.encodebytes(data) + _END + label
