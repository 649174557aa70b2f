r"""Translates the regular expressions of ``subscribePattern`` from Java's syntax to Python's. Pure.

The connector compiles the option with ``java.util.regex.Pattern``, so jobs contain Java's syntax.
Most of it is Python's as well. The differences are translated where the result finds the same
topics: names of topics consist of ASCII letters, digits, ``.``, ``_`` and ``-``, so Java's Unicode
classes reduce to sets of these. A construct without a counterpart is an error that names it.
"""

from __future__ import annotations

import re
import warnings
from types import MappingProxyType
from typing import Final

from ..errors import ConfigError

# Members of a character class. Of the Unicode categories, only what names of topics may contain.
_LOWER: Final = "a-z"
_UPPER: Final = "A-Z"
_ALPHA: Final = "a-zA-Z"
_PUNCTUATION: Final = r"!-/:-@\[-`{-~"
_CLASSES: Final = MappingProxyType(
    {
        "alnum": "a-zA-Z0-9",
        "alpha": _ALPHA,
        "ascii": r"\x00-\x7f",
        "blank": r" \t",
        "cntrl": r"\x00-\x1f\x7f",
        "digit": "0-9",
        "graph": "!-~",
        "lower": _LOWER,
        "print": " -~",
        "punct": _PUNCTUATION,
        "space": r" \t\n\x0b\f\r",
        "upper": _UPPER,
        "xdigit": "0-9a-fA-F",
        # Unicode: general categories, with or without Is, and binary properties.
        "l": _ALPHA,
        "ll": _LOWER,
        "lu": _UPPER,
        "n": "0-9",
        "nd": "0-9",
        "p": r"\-._",
        "pc": "_",
        "pd": r"\-",
        "po": ".",
        "isalphabetic": _ALPHA,
        "isdigit": "0-9",
        "isletter": _ALPHA,
        "islowercase": _LOWER,
        "ispunctuation": r"\-._",
        "isuppercase": _UPPER,
    }
)
_PROPERTY: Final = re.compile(r"\\[pP](?:\{(\w+)\}|(\w))")
_GROUP_NAME: Final = re.compile(r"\(\?<([a-zA-Z][a-zA-Z0-9]*)>")
_BACK_REFERENCE: Final = re.compile(r"\\k<([a-zA-Z][a-zA-Z0-9]*)>")
_CODE_POINT: Final = re.compile(r"\\x\{([0-9a-fA-F]+)\}")
_FLAGS: Final = re.compile(r"\(\?([a-zA-Z]*)(-[a-zA-Z]+)?[:)]")
_COUNT: Final = r"\{\d+(?:,\d*)?\}"
#: A quantifier, and the counts after it. In Java they count the nothing between the two.
_REPEATED: Final = re.compile(rf"((?:[*+?]|{_COUNT})[?+]?)(?:{_COUNT}[?+]?)+")

_ESCAPES: Final = MappingProxyType({r"\z": r"\Z", r"\e": r"\x1b", r"\R": r"[\r\n\x0b\f]"})
_VERTICAL: Final = r"\n\x0b\f\r"
_WHITESPACE: Final = MappingProxyType(
    {r"\h": r" \t", r"\H": r" \t", r"\v": _VERTICAL, r"\V": _VERTICAL}
)
#: Escapes of Java that cannot be translated; Python would reject some, and read others otherwise.
_UNSUPPORTED_ESCAPES: Final = (r"\G", r"\X", r"\N", r"\c", r"\0")


def translate(pattern: str) -> str:
    """Return a pattern for Python's ``re.search`` that finds the same topics as Java's ``find``.

    Args:
        pattern: a regular expression in Java's syntax.

    Raises:
        ConfigError: the pattern is invalid, or has a construct that cannot be translated.
    """
    translated = _Translation(pattern).run()
    try:
        with warnings.catch_warnings():
            # `--` and `~~` in a character class may become set operations in Python.
            warnings.simplefilter("ignore", FutureWarning)
            re.compile(translated)
    except (re.error, RecursionError, OverflowError) as error:
        raise ConfigError(
            f"subscribePattern = {pattern!r} is not a regular expression, or has something of"
            f" Java's that cannot be translated: {error}; it may match anywhere in the name of a"
            " topic"
        ) from None
    return translated


class _Translation:
    """Translates one pattern, from left to right."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._in_class = False
        self._members_start = 0  # of the open class, in what is translated
        self._translated: list[str] = []

    def run(self) -> str:
        """Return the translated pattern."""
        while self._at < len(self._pattern):
            if self._pattern[self._at] == "\\":
                self._escape()
            elif self._in_class:
                self._member()
            elif self._pattern[self._at] == "[":
                self._open_class()
            elif self._pattern.startswith("(?", self._at):
                self._group()
            elif found := self._match(_REPEATED):
                self._put(found[1], len(found[0]))
            else:
                self._copy(1)
        return "".join(self._translated)

    def _copy(self, length: int) -> None:
        self._put(self._pattern[self._at : self._at + length], length)

    def _put(self, text: str, length: int) -> None:
        """Append the translation of the next ``length`` characters."""
        self._translated.append(text)
        self._at += length

    def _match(self, expression: re.Pattern[str]) -> re.Match[str] | None:
        return expression.match(self._pattern, self._at)

    def _untranslatable(self, construct: str, advice: str) -> ConfigError:
        return ConfigError(
            f"subscribePattern = {self._pattern!r}: {construct} cannot be translated from Java's"
            f" regular expressions; {advice}"
        )

    def _set(self, members: str, *, is_negated: bool, length: int) -> None:
        """Append a set of characters, as a class of its own or as members of the open class."""
        if not self._in_class:
            self._put(f"[{'^' if is_negated else ''}{members}]", length)
        elif not is_negated:
            self._put(members, length)
        else:
            negated = self._pattern[self._at : self._at + length]
            raise self._untranslatable(f"{negated} inside [...]", "write out the characters")

    def _escape(self) -> None:
        pair = self._pattern[self._at : self._at + 2]
        if pair == r"\Q":
            end = self._pattern.find(r"\E", self._at + 2)
            literal = self._pattern[self._at + 2 : end if end >= 0 else None]
            self._put(re.escape(literal), len(literal) + (4 if end >= 0 else 2))
        elif pair == r"\E":  # without \Q
            self._put("", 2)
        elif found := self._match(_PROPERTY):
            self._property(found)
        elif found := self._match(_BACK_REFERENCE):
            self._put(f"(?P={found[1]})", len(found[0]))
        elif found := self._match(_CODE_POINT):
            self._put(rf"\U{int(found[1], 16):08x}", len(found[0]))
        elif pair in _WHITESPACE:
            self._set(_WHITESPACE[pair], is_negated=pair[1].isupper(), length=2)
        elif pair in _UNSUPPORTED_ESCAPES or self._pattern.startswith(r"\b{", self._at):
            raise self._untranslatable(pair, "leave it out")
        else:
            self._put(_ESCAPES.get(pair, pair), 2)

    def _property(self, found: re.Match[str]) -> None:
        name = (found[1] or found[2]).lower()
        members = _CLASSES.get(name) or _CLASSES.get(name.removeprefix("is"))
        if members is None:
            raise self._untranslatable(
                found[0], r"use POSIX classes such as \p{Alpha} or \p{Digit}, or [a-z]"
            )
        self._set(members, is_negated=found[0][1] == "P", length=len(found[0]))

    def _open_class(self) -> None:
        self._in_class = True
        start = self._pattern[self._at : self._at + 2]
        self._copy(2 if start == "[^" else 1)
        self._members_start = len(self._translated)

    def _member(self) -> None:
        """Translate one member of a character class."""
        if self._pattern.startswith("&&", self._at):
            raise self._untranslatable("&& inside [...]", "use a look-ahead, such as (?![b])[a-z]")
        if self._pattern[self._at] == "[":
            raise self._untranslatable("[...] inside [...]", "list all characters in one class")
        has_members = any(self._translated[self._members_start :])  # \Q\E is none
        self._in_class = self._pattern[self._at] != "]" or not has_members
        self._copy(1)

    def _group(self) -> None:
        if found := self._match(_GROUP_NAME):
            self._put(f"(?P<{found[1]}>", len(found[0]))
        elif found := self._match(_FLAGS):
            self._flags(found)
        else:
            self._copy(2)

    def _flags(self, found: re.Match[str]) -> None:
        """Translate ``(?i)`` and ``(?i:``; only i, m and s matter, and x differs from Python's."""
        on, off = found[1], found[2] or ""
        if "x" in on:
            raise self._untranslatable(
                found[0], "leave the flag x out, and the spaces in the pattern"
            )
        on = "".join(flag for flag in on if flag in "ims")
        off = "".join(flag for flag in off if flag in "ims")
        if found[0].endswith(":"):
            flags = on + (f"-{off}" if off else "")
            self._put(f"(?{flags}:", len(found[0]))
        elif off or (on and any(self._translated)):
            raise self._untranslatable(found[0], "put flags first, or in a group such as (?i:...)")
        else:
            self._put(f"(?{on})" if on else "", len(found[0]))
