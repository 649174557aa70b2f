"""The principal of a peer, and the mapping from certificate names to principal names.

(Kafka: KafkaPrincipal, SslPrincipalMapper, DefaultKafkaPrincipalBuilder.)

The engine for regular expressions is imported for a mapping with rules: clients have none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import attrs

from ..errors import AuthenticationError, ConfigError

if TYPE_CHECKING:
    from .._util.patterns._java_pattern import JavaPattern
    from .._util.patterns._program import Slots, Steps

USER = "User"

STEPS_MAX: Final = 30_000
"""How many steps a mapping may take, which bounds how long it holds the loop: about 30 ms."""
STEPS_PER_RULE: Final = 3_000
"""How many more it may take for each rule beyond the first. An ordinary name takes fewer to find
that a rule does not match, also if no transition of the rule's automaton is known yet."""


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
    in Java's syntax and a replacement, in which ``$1`` is the first group; L or U converts the
    result to lower or upper case. As in Kafka, every match inside the name is replaced, the empty
    one after the end too: ``RULE:.*/x/`` maps all names to ``xx``, and ``RULE:^.*$/x/`` to ``x``.

    A peer chooses its name, so that the time of a mapping is bounded: it is linear in the length of
    the name, except for the patterns in ``bounded``, and a name that needs more than ``steps_max``
    steps is rejected.

    Args:
        rules: the rules, separated by commas.

    Attributes:
        bounded: the patterns with constructs whose time is not linear in the length of a name.
        steps_max: how many steps a mapping may take.

    Raises:
        ConfigError: a rule is malformed, or its regular expression or replacement is invalid.
    """

    def __init__(self, rules: str = "DEFAULT") -> None:
        self._text = rules
        found = [each["rule"] for each in _RULE_SPLITTER.finditer(rules.strip())]
        self._rules = [_parse(rule, rules) for rule in found if rule]
        patterns = [rule.pattern for rule in self._rules if rule is not None]
        self.bounded = tuple(each.text for each in patterns if not each.is_linear)
        self.steps_max = STEPS_MAX + STEPS_PER_RULE * max(len(patterns) - 1, 0)

    def name(self, distinguished_name: str) -> str:
        """Return the principal's name for a distinguished name.

        Raises:
            AuthenticationError: no rule matches (Kafka: NoMatchingRule), or the rules need too many
                steps for the name.
        """
        from .._util.patterns._program import Steps, TooManyStepsError

        steps = Steps(self.steps_max)
        try:
            for rule in self._rules:
                name = distinguished_name if rule is None else rule.apply(distinguished_name, steps)
                if name is not None:
                    return name
        except TooManyStepsError:
            raise AuthenticationError(
                f"the rules in ssl.principal.mapping.rules need more than {self.steps_max} steps"
                f" for a name of {len(distinguished_name)} characters that begins with"
                f" {distinguished_name[:100]!r}"
            ) from None
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
_REFERENCE = re.compile(
    r"\\(?P<literal>.)|\$\{(?P<name>[a-zA-Z][a-zA-Z0-9]*)\}|\$(?P<number>[0-9]+)|(?P<wrong>\$)",
    re.DOTALL,
)

_Replacement = tuple[str | int, ...]
"""Literal text, and the numbers of groups."""


@attrs.frozen
class _Rule:
    """A parsed rule; ``case`` is L, U or empty."""

    pattern: JavaPattern
    replacement: _Replacement
    case: str

    def apply(self, name: str, steps: Steps) -> str | None:
        if not self.pattern.matches(name, steps):
            return None
        result = "".join(self._replaced(name, steps))
        return {"L": result.lower(), "U": result.upper()}.get(self.case, result)

    def _replaced(self, name: str, steps: Steps) -> Iterator[str]:
        at = 0
        for slots in self.pattern.find_all(name, steps):
            start, end = slots[:2]
            yield name[at:start]
            for part in self.replacement:
                yield part if isinstance(part, str) else _group(name, slots, part)
            at = end or 0
        yield name[at:]


def _group(name: str, slots: Slots, number: int) -> str:
    start, end = slots[2 * number : 2 * number + 2]
    return "" if start is None else name[start:end]


def _parse(rule: str, rules: str) -> _Rule | None:
    """Parse a rule; None stands for DEFAULT."""
    found = _RULE_PARSER.fullmatch(rule)
    if found is None:
        raise ConfigError(
            f"ssl.principal.mapping.rules = {rules!r}: {rule!r} is not a valid rule; expected"
            " DEFAULT or RULE:pattern/replacement/[LU], separated by commas"
        )
    if found["default"] is not None:
        return None
    from .._util.patterns._java_pattern import JavaPattern

    try:
        pattern = JavaPattern(found["pattern"])
    except ValueError as error:
        raise ConfigError(
            f"ssl.principal.mapping.rules = {rules!r}: {found['pattern']!r} is not a valid"
            f" regular expression: {error}"
        ) from None
    try:
        replacement = tuple(_parse_replacement(found["replacement"], pattern))
    except ValueError as error:
        raise ConfigError(
            f"ssl.principal.mapping.rules = {rules!r}: {found['replacement']!r} is not a valid"
            f" replacement: {error}"
        ) from None
    return _Rule(pattern, replacement, found["case"])


def _parse_replacement(text: str, pattern: JavaPattern) -> Iterator[str | int]:
    at = 0
    for found in _REFERENCE.finditer(text):
        yield text[at : found.start()]
        at = found.end()
        if found["literal"] is not None:
            yield found["literal"]
        elif found["name"] is not None:
            if found["name"] not in pattern.groups_by_name:
                raise ValueError(f"the pattern has no group {found['name']!r}")
            yield pattern.groups_by_name[found["name"]]
        elif found["number"] is not None:
            yield from _numbered(found["number"], pattern.group_count)
        else:
            raise ValueError("a $ is not followed by the number of a group; a literal one is \\$")
    yield text[at:]


def _numbered(digits: str, group_count: int) -> Iterator[str | int]:
    """Yield the group of a reference; the reference itself if there is no such group."""
    # Like Java: the longest prefix of the digits that is the number of a group; the rest is text.
    number, used = 0, 0
    for digit in digits:
        longer = 10 * number + int(digit)
        if longer > group_count:
            break
        number, used = longer, used + 1
    if used:
        yield number
        yield digits[used:]
    elif group_count:
        yield f"${digits}"
    else:
        raise ValueError(f"there is no group for ${digits}; the pattern has none")
