"""The principal of a peer, and the mapping from certificate names to principal names.

(Kafka: KafkaPrincipal, SslPrincipalMapper, DefaultKafkaPrincipalBuilder.)
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable

import attrs

from ..errors import AuthenticationError, ConfigError

USER = "User"


@attrs.frozen
class Principal:
    """The identity of the peer of a connection, such as ``User:alice``.

    Args:
        type: ``User`` for every principal that trionet creates.
        name: the name from the SASL mechanism or from the mapping of certificate names.
    """

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS = Principal(USER, "ANONYMOUS")
"""The principal of an unauthenticated peer, on a listener without authentication."""


@attrs.frozen
class Identity:
    """The authenticated properties of a peer, from which a principal builder creates a principal.

    Attributes:
        security_protocol: ``PLAINTEXT``, ``SSL``, ``SASL_PLAINTEXT`` or ``SASL_SSL``.
        peer_address: the peer's IP address.
        distinguished_name: the subject of the peer's certificate; None without a certificate.
        certificate: the peer's certificate in DER, or None.
        mechanism: the SASL mechanism; None without SASL.
        authorization_id: the user name authenticated by SASL; None without SASL.
    """

    security_protocol: str
    peer_address: str
    distinguished_name: str | None = None
    certificate: bytes | None = attrs.field(default=None, repr=False)
    mechanism: str | None = None
    authorization_id: str | None = None


PrincipalBuilder = Callable[[Identity], Principal]
"""Creates the principal of a peer; may raise AuthenticationError to reject the peer."""


class PrincipalMapping:
    """Kafka's default principal builder, with ``ssl.principal.mapping.rules``.

    The first rule that matches the whole distinguished name determines the principal's name.
    ``DEFAULT`` uses the name unchanged. ``RULE:pattern/replacement/[LU]`` has a regular expression
    and a replacement, in which ``$1`` is the first group; L or U converts the result to lower or
    upper case.

    Args:
        rules: the rules, separated by commas.

    Raises:
        ConfigError: a rule is malformed, or its regular expression is invalid.
    """

    def __init__(self, rules: str = "DEFAULT") -> None:
        self._text = rules
        found = [each["rule"] for each in _RULE_SPLITTER.finditer(rules.strip())]
        self._rules = [_parse(rule, rules) for rule in found if rule]

    def name(self, distinguished_name: str) -> str:
        """Return the principal's name for a distinguished name.

        Raises:
            AuthenticationError: no rule matches (Kafka: NoMatchingRule).
        """
        for rule in self._rules:
            name = rule.apply(distinguished_name)
            if name is not None:
                return name
        raise AuthenticationError(
            f"no rule in ssl.principal.mapping.rules matches {distinguished_name!r}"
        )

    def __call__(self, identity: Identity) -> Principal:
        """Return the principal of the SASL user or the mapped certificate name, or ANONYMOUS."""
        if identity.authorization_id is not None:
            return Principal(USER, identity.authorization_id)
        if identity.distinguished_name is not None:
            return Principal(USER, self.name(identity.distinguished_name))
        return ANONYMOUS

    def __repr__(self) -> str:
        return f"PrincipalMapping({self._text!r})"


# Kafka's own expressions: inside a part, a slash or a backslash is escaped with a backslash.
_PART = r"(?:\\.|[^\\/])*"
_RULE = rf"(?P<default>DEFAULT)|RULE:(?P<pattern>{_PART})/(?P<replacement>{_PART})/(?P<case>[LU]?)"
_RULE_PARSER = re.compile(_RULE)
_RULE_SPLITTER = re.compile(rf"\s*(?P<rule>{_RULE}|.*?)\s*(?:,\s*|$)", re.DOTALL)
_REFERENCE = re.compile(r"\\(?P<literal>.)|\$(?P<number>[0-9]+)", re.DOTALL)


@attrs.frozen
class _Rule:
    """A parsed rule; ``case`` is L, U or empty."""

    pattern: re.Pattern[str]
    replacement: str
    case: str

    def apply(self, name: str) -> str | None:
        match = self.pattern.fullmatch(name)
        if match is None:
            return None
        result = _REFERENCE.sub(lambda found: _expand(found, match), self.replacement)
        return {"L": result.lower(), "U": result.upper()}.get(self.case, result)


_AS_IT_IS = _Rule(re.compile(r"(.*)", re.DOTALL), "$1", "")


def _expand(found: re.Match[str], match: re.Match[str]) -> str:
    """Return the text for a reference; the reference itself if there is no such group."""
    if found["literal"] is not None:
        return found["literal"]
    # Like Java: the longest prefix of the digits that is the number of a group; the rest is text.
    digits = found["number"]
    number, used = 0, 0
    for digit in digits:
        longer = 10 * number + int(digit)
        if longer > match.re.groups:
            break
        number, used = longer, used + 1
    return (match[number] or "") + digits[used:] if used else found[0]


def _parse(rule: str, rules: str) -> _Rule:
    found = _RULE_PARSER.fullmatch(rule)
    if found is None:
        raise ConfigError(
            f"ssl.principal.mapping.rules = {rules!r}: {rule!r} is not a valid rule; expected"
            " DEFAULT or RULE:pattern/replacement/[LU], separated by commas"
        )
    if found["default"] is not None:
        return _AS_IT_IS
    try:
        with warnings.catch_warnings():
            # Warnings of nested sets, which have another meaning in Java.
            warnings.simplefilter("error", FutureWarning)
            pattern = re.compile(found["pattern"])
    except (re.error, OverflowError, RecursionError, FutureWarning) as error:
        raise ConfigError(
            f"ssl.principal.mapping.rules = {rules!r}: {found['pattern']!r} is not a valid"
            f" regular expression: {error}"
        ) from None
    return _Rule(pattern, found["replacement"], found["case"])
