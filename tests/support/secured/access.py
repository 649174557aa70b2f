"""What a client knows of a listener: where it is, whom to trust, and what to show of itself."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

import attrs

PLAIN, SCRAM_256, SCRAM_512 = "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"
OAUTHBEARER = "OAUTHBEARER"
MECHANISMS = (PLAIN, SCRAM_256, SCRAM_512, OAUTHBEARER)
USER, PASSWORD = "alice", "correct horse"


class Secret(str):
    """A password or a token; it is not shown."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<secret>"


class Failure(Enum):
    """How an attempt to connect can fail by what the two sides prove to each other."""

    WRONG_PASSWORD = "wrong password"
    BAD_TOKEN = "bad token"
    EXPIRED_SERVER = "expired certificate of the server"
    OTHER_HOST = "certificate of another host"
    EXPIRED_CLIENT = "expired certificate of the client"
    NO_CERTIFICATE = "no certificate of the client"


@attrs.frozen
class Access:
    """One way into a broker.

    Attributes:
        bootstrap: a host name and a port.
        protocol: as clients call it: `SSL`, `SASL_PLAINTEXT` or `SASL_SSL`.
        trust: whom to trust, in PEM.
        certificate: what to show of oneself, key and certificates in PEM; None for nothing.
        mechanism: of SASL; empty for none.
        user: who.
        password: the proof of it.
        token: the proof where the mechanism is OAUTHBEARER; a file with the same is `token_file`.
        token_file: see there.
        is_unsecured: the token is one that nobody signed, and the client makes it by itself.
    """

    bootstrap: str
    protocol: str
    trust: Path
    certificate: Path | None = None
    mechanism: str = ""
    user: str = USER
    password: str = attrs.field(default=PASSWORD, repr=Secret.__repr__)
    token: str = attrs.field(default="", repr=Secret.__repr__)
    token_file: Path | None = None
    is_unsecured: bool = False

    @property
    def has_tls(self) -> bool:
        return self.protocol.endswith("SSL")


@attrs.frozen
class Refusal:
    """How a client's attempt ended.

    Attributes:
        kind: the client's own name for the error: a class, or a code.
        text: what it says.
        seconds: from the attempt to that.
    """

    kind: str
    text: str
    seconds: float
