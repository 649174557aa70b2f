"""TLS errors and their descriptions."""

from __future__ import annotations

import re
import ssl

from ..wire._close_reason import CloseReason

# What Python puts around the text of an error: "[SSL] internal error (_ssl.c:2580)".
_PLACE = re.compile(r"^\[[^\]]*\] | \(_ssl\.c:\d+\)$")


class TlsError(OSError):
    """Raised when the peer violates TLS after the handshake; the connection is unusable.

    Attributes:
        close_reason: the reason to close its channel with.
    """

    close_reason = CloseReason.TLS_FAILED


def describe(error: ssl.SSLError) -> str:
    """Return the reason of an error, without Python's file names and line numbers."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the peer's certificate is not accepted: {error.verify_message}"
    text = error.reason or _PLACE.sub("", str(error))
    return text.replace("_", " ").lower()
