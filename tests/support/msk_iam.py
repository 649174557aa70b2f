"""The side of Amazon MSK: tokens checked by AWS's published algorithm, Signature Version 4."""

from __future__ import annotations

import base64
import calendar
import hashlib
import hmac
import time
from typing import Final
from urllib.parse import parse_qs, quote, urlsplit

from trionet.net.sasl._oauthbearer import Token, TokenError

KEY_ID: Final = "AKIDEXAMPLE"
SECRET: Final = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"  # of AWS's own examples
_SECONDS: Final = 900


class SignedUrls:
    """Checks tokens, which are URLs signed with the secret of a key.

    Attributes:
        seen: the parameters of the last URL.
    """

    def __init__(self) -> None:
        self.seen: dict[str, str] = {}

    def __call__(self, token: str, _now_ms: int) -> Token:
        padding = "=" * (-len(token) % 4)
        url = urlsplit(base64.urlsafe_b64decode(token + padding).decode())
        self.seen = {name: values[0] for name, values in parse_qs(url.query).items()}
        if self.seen["X-Amz-Signature"] != _signature(url.netloc, self.seen):
            raise TokenError("the signature is another one")
        signed_at = calendar.timegm(time.strptime(self.seen["X-Amz-Date"], "%Y%m%dT%H%M%SZ"))
        key_id = self.seen["X-Amz-Credential"].partition("/")[0]
        return Token(key_id, 1000 * (signed_at + _SECONDS))


def _signature(host: str, given: dict[str, str]) -> str:
    """The signature that the parameters of a URL must have; the user agent is not signed."""
    signed = {name: given[name] for name in given if name not in {"X-Amz-Signature", "User-Agent"}}
    query = "&".join(f"{name}={quote(signed[name], safe='-_.~')}" for name in sorted(signed))
    request = f"GET\n/\n{query}\nhost:{host}\n\nhost\n{hashlib.sha256(b'').hexdigest()}"
    _, day, region, service, end = given["X-Amz-Credential"].split("/")
    scope = f"{day}/{region}/{service}/{end}"
    digest = hashlib.sha256(request.encode()).hexdigest()
    key = f"AWS4{SECRET}".encode()
    for part in (day, region, service, end):
        key = hmac.digest(key, part.encode(), "sha256")
    text = f"AWS4-HMAC-SHA256\n{given['X-Amz-Date']}\n{scope}\n{digest}"
    return hmac.digest(key, text.encode(), "sha256").hex()
