"""`ssl.principal.mapping.rules`: rules or one clear error, and for each name a name or a refusal.

An input is rules, a line feed, and a name.
"""

from __future__ import annotations

from trionet.errors import AuthenticationError, ConfigError
from trionet.net._principal import Identity, PrincipalMapping

WATCHED = ("trionet.net._principal", "trionet._util.patterns")
WORDS = (
    *(b"DEFAULT", b"RULE:", b"RULE:^CN=(.*?),.*$/$1/L", b"/U", b",", b"\\/", b"\\", b"$1", b"$0"),
    *(b"$9", b"(", b")", b"[", b"]", b"*", b"+?", b"{2}", b"{1,99999999999}", b"(?i)", b"(?P<a>"),
    *(b"\\1", b"|", b"\nCN=a,O=b", b"\n", b"^", b"(?<=a)", b"\\d", b"0" * 40, "ß".encode()),
    *("İ".encode(), b"[[a]&&b]"),
)
BYTES_MAX = 256


def run(data: bytes) -> None:
    rules, _, name = data.decode("utf-8", "replace").partition("\n")
    try:
        mapping = PrincipalMapping(rules)
    except ConfigError as error:
        _check_error(str(error), "ssl.principal.mapping.rules = ")
        return
    try:
        mapped = mapping.name(name)
    except AuthenticationError as error:
        _check_error(str(error), "ssl.principal.mapping.rules")
        return
    mapped.encode()
    assert mapped == mapping(Identity("SSL", "::1", name)).name
    if not rules.strip() or rules.strip() == "DEFAULT":
        assert name == mapped


def _check_error(text: str, named: str) -> None:
    assert named in text
