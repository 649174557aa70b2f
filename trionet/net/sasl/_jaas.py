r"""A parser for the login module in ``sasl.jaas.config`` (Kafka: JaasConfig, JaasContext).

``org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="her password";``: a
class, a flag, options, and a semicolon. The value of an option is quoted, with Java's backslash
escapes, or is a single bare word. Errors never quote the text, since it contains passwords.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

from ...errors import ConfigError

_FLAGS = ("required", "requisite", "sufficient", "optional")
_TOKEN = re.compile(
    r"""\s+ | //[^\r\n]* | /\*.*?\*/
    | (?P<quoted>"(?:[^"\\\r\n]|\\[^\r\n])*" | '(?:[^'\\\r\n]|\\[^\r\n])*')
    | (?P<word>[\w.$-]+)
    | (?P<mark>[=;])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:(?P<octal>[0-3][0-7]{0,2}|[0-7]{1,2})|(?P<letter>.))", re.DOTALL)
_LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_USER = "user_"


@attrs.frozen
class LoginModule:
    """One login module and its options.

    Attributes:
        name: the name of the class in Kafka.
        options: the options by key; if a key is repeated, the last value is used.
    """

    name: str
    options: dict[str, str] = attrs.field(repr=False)

    @property
    def users(self) -> dict[str, str]:
        """The passwords in the options ``user_NAME``, keyed by user name."""
        return {
            key.removeprefix(_USER): value
            for key, value in self.options.items()
            if key.startswith(_USER)
        }


def parse_jaas(text: str, key: str = "sasl.jaas.config") -> LoginModule:
    """Parse the value of a property, which contains one login module.

    Args:
        text: the value.
        key: the name of the property, for error messages.

    Raises:
        ConfigError: the text is malformed, or does not contain exactly one module.
    """
    modules = list(_modules(_tokens(text, key), key))
    if len(modules) != 1:
        raise ConfigError(f"{key} must contain exactly one login module, but has {len(modules)}")
    return modules[0]


def _modules(tokens: Iterator[tuple[str, str]], key: str) -> Iterator[LoginModule]:
    for kind, name in tokens:
        if kind == "mark":
            raise _malformed(key, f"expected the class of a login module, found {name!r}")
        _, flag = next(tokens, ("", ""))
        if flag.lower() not in _FLAGS:
            raise _malformed(key, f"no flag after the class; allowed: {', '.join(_FLAGS)}")
        yield LoginModule(name, dict(_options(tokens, key)))


def _options(tokens: Iterator[tuple[str, str]], key: str) -> Iterator[tuple[str, str]]:
    for kind, option in tokens:
        if (kind, option) == ("mark", ";"):
            return
        if kind == "mark":
            raise _malformed(key, f"expected an option, found {option!r}")
        equals, (kind, value) = next(tokens, None), next(tokens, ("mark", ""))
        if equals != ("mark", "=") or kind == "mark":
            raise _malformed(key, "an option has no value")
        yield option, value
    raise _malformed(key, "missing ; at the end")


def _tokens(text: str, key: str) -> Iterator[tuple[str, str]]:
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise _malformed(key, f"unexpected character at position {position + 1}")
        position = found.end()
        if found.lastgroup == "quoted":
            yield "quoted", _ESCAPE.sub(_unescape, found["quoted"][1:-1])
        elif found.lastgroup is not None:
            yield found.lastgroup, found[0]


def _unescape(found: re.Match[str]) -> str:
    if found["octal"] is not None:
        return chr(int(found["octal"], 8))
    letter = found["letter"]
    return _LETTERS.get(letter, letter)


def _malformed(key: str, what: str) -> ConfigError:
    return ConfigError(f'{key}: {what}; expected: class required option="value" ... ;')
