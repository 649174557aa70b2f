"""The value of `sasl.jaas.config`: a login module, or an error that quotes nothing of it."""

from __future__ import annotations

import re

from trionet.errors import ConfigError
from trionet.net.sasl._jaas import LoginModule, parse_jaas

WATCHED = ("trionet.net.sasl._jaas",)
WORDS = (
    *(b"M required;", b" required ", b"optional", b'user_alice="secret"', b"=", b";", b'"', b"'"),
    *(b"\\", b"//", b"/*", b"*/", b"\n", b"\\101", b"\\n", b"a=b", b"org.apache.kafka.X"),
    *(b"user_", "ä".encode()),
)
BYTES_MAX = 512

_ERROR = re.compile(
    r"key: (?:unexpected character at position \d+|expected the class of a login module, found"
    r" '[=;]'|no flag after the class; allowed: required, requisite, sufficient,"
    r" optional|expected an option, found '[=;]'|an option has no value|missing ; at the end);"
    r' expected: class required option="value" ... ;'
    r"|key must contain exactly one login module, but has \d+"
)


def run(data: bytes) -> None:
    try:
        module = parse_jaas(data.decode("utf-8", "replace"), "key")
    except ConfigError as error:
        _check_error(str(error))
        return
    assert len(module.users) <= len(module.options)
    assert all(f"user_{name}" in module.options for name in module.users)
    # A class may stand in quotes, but nothing else tells them apart from a word.
    assert module == parse_jaas(_written(module), "key")


def _check_error(text: str) -> None:
    assert _ERROR.fullmatch(text), "an error that may quote a password"


def _written(module: LoginModule) -> str:
    options = " ".join(f"{_quoted(key)}={_quoted(value)}" for key, value in module.options.items())
    return f"{_quoted(module.name)} required {options};"


def _quoted(text: str) -> str:
    """As Java writes what it has to escape; line ends cannot stand in a string as they are."""
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + text.replace("\r", "\\r").replace("\n", "\\n") + '"'
