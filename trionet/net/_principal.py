"""Who a peer is: the principal, and how its name is made from a certificate.

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
    """Who is at the other end of a connection.

    Args:
        type: ``User`` for all that trionet makes itself.
        name: as the mechanism, or the mapping of certificates, gives it.
    """

    type: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Principal:
        """Read what ``str`` gives: ``User:alice``.

        Raises:
            ConfigError: the text has no type or no name.
        """
        kind, _, name = text.partition(":")
        if not kind or not name:
            raise ConfigError(f"{text!r} is not a principal; allowed: type:name, as in User:alice")
        return cls(kind, name)

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS = Principal(USER, "ANONYMOUS")
"""Who a peer is that did not say, and was not asked to."""


@attrs.frozen
class Identity:
    """What a peer has proved about itself, for a principal builder.

    Attributes:
        security_protocol: ``PLAINTEXT``, ``SSL``, ``SASL_PLAINTEXT`` or ``SASL_SSL``.
        peer_address: the peer's IP address.
        distinguished_name: the subject of its certificate, None without one.
        certificate: its certificate in DER, None without one.
        mechanism: the SASL mechanism, None without SASL.
        authorization_id: the user name that SASL has proved, None without SASL.
    """

    security_protocol: str
    peer_address: str
    distinguished_name: str | None = None
    certificate: bytes | None = attrs.field(default=None, repr=False)
    mechanism: str | None = None
    authorization_id: str | None = None


PrincipalBuilder = Callable[[Identity], Principal]
"""Makes a principal of what was proved; an AuthenticationError from it refuses the peer."""


class PrincipalMapping:
    """The names of principals from the names in certificates (``ssl.principal.mapping.rules``).

    The first rule that matches the whole name gives the result. ``DEFAULT`` gives the name as it
    is; ``RULE:pattern/replacement/[LU]`` matches a regular expression and puts ``$1`` and so on
    into the replacement, in lower or upper case if it says so.

    Args:
        rules: separated by commas.

    Raises:
        ConfigError: a rule has another form, or its expression is not valid.
    """

    def __init__(self, rules: str = "DEFAULT") -> None:
        self._text = rules
        found = [each["rule"] for each in _RULE_SPLITTER.finditer(rules.strip())]
        self._rules = [_parse(rule, rules) for rule in found if rule]

    def name(self, distinguished_name: str) -> str:
        """The name of the principal.

        Raises:
            AuthenticationError: no rule matches (Kafka: NoMatchingRule).
        """
        for rule in self._rules:
            name = rule.apply(distinguished_name)
            if name is not None:
                return name
        raise AuthenticationError(
            f"no rule of ssl.principal.mapping.rules matches {distinguished_name!r}"
        )

    def __call__(self, identity: Identity) -> Principal:
        """Kafka's builder: the user of SASL, else the mapped certificate, else anonymous."""
        if identity.authorization_id is not None:
            return Principal(USER, identity.authorization_id)
        if identity.distinguished_name is not None:
            return Principal(USER, self.name(identity.distinguished_name))
        return ANONYMOUS

    def __repr__(self) -> str:
        return f"PrincipalMapping({self._text!r})"


# Kafka's own expressions: a slash or a backslash inside a part stands behind a backslash.
_PART = r"(?:\\.|[^\\/])*"
_RULE = rf"(?P<default>DEFAULT)|RULE:(?P<pattern>{_PART})/(?P<replacement>{_PART})/(?P<case>[LU]?)"
_RULE_PARSER = re.compile(_RULE)
_RULE_SPLITTER = re.compile(rf"\s*(?P<rule>{_RULE}|.*?)\s*(?:,\s*|$)", re.DOTALL)
_REFERENCE = re.compile(r"\\(?P<literal>.)|\$(?P<number>[0-9]+)", re.DOTALL)


@attrs.frozen
class _Rule:
    """One ``RULE:``."""

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
    """One reference of a replacement; one to a group that does not exist stands for itself."""
    if found["literal"] is not None:
        return found["literal"]
    # As Java: as many digits as still name a group, the others are text.
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
            f"ssl.principal.mapping.rules = {rules!r}: {rule!r} is not a rule; allowed: DEFAULT, or"
            " RULE:pattern/replacement/ with L or U at its end, separated by commas"
        )
    if found["default"] is not None:
        return _AS_IT_IS
    try:
        with warnings.catch_warnings():
            # Of sets inside of sets, which mean something in Java and something else here.
            warnings.simplefilter("error", FutureWarning)
            pattern = re.compile(found["pattern"])
    except (re.error, OverflowError, RecursionError, FutureWarning) as error:
        raise ConfigError(
            f"ssl.principal.mapping.rules = {rules!r}: {found['pattern']!r} is not a regular"
            f" expression: {error}"
        ) from None
    return _Rule(pattern, found["replacement"], found["case"])
