"""Predicates of characters, and of positions, as Java's regular expressions have them. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Final

from ._program import Accepts, Check

_LINE_ENDS: Final = frozenset("\n\r\x85\u2028\u2029")
_DIGITS: Final = frozenset("0123456789")
_LOWER: Final = frozenset("abcdefghijklmnopqrstuvwxyz")
_UPPER: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_ALPHA: Final = _LOWER | _UPPER
_WORD: Final = _ALPHA | _DIGITS | {"_"}
_PUNCTUATION: Final = frozenset(map(chr, range(33, 127))) - _ALPHA - _DIGITS
_BLANKS: Final = frozenset(" \t\xa0\u1680\u180e\u202f\u205f\u3000") | set(
    map(chr, range(0x2000, 0x200B))
)

ESCAPED_CLASSES: Final[dict[str, frozenset[str]]] = {
    "d": _DIGITS,
    "w": _WORD,
    "s": frozenset(" \t\n\x0b\f\r"),
    "h": _BLANKS,
    "v": frozenset("\n\x0b\f\r\x85\u2028\u2029"),
}
ESCAPED_CHARACTERS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}

_POSIX: Final[dict[str, frozenset[str]]] = {
    "Lower": _LOWER,
    "Upper": _UPPER,
    "ASCII": frozenset(map(chr, range(128))),
    "Alpha": _ALPHA,
    "Digit": _DIGITS,
    "Alnum": _ALPHA | _DIGITS,
    "Punct": _PUNCTUATION,
    "Graph": _ALPHA | _DIGITS | _PUNCTUATION,
    "Print": _ALPHA | _DIGITS | _PUNCTUATION | {" "},
    "Blank": frozenset(" \t"),
    "Cntrl": frozenset(map(chr, [*range(32), 127])),
    "XDigit": _DIGITS | frozenset("abcdefABCDEF"),
    "Space": frozenset(" \t\n\x0b\f\r"),
}
_UNICODE: Final[dict[str, Callable[[str], bool]]] = {
    "IsAlphabetic": str.isalpha,
    "IsLetter": str.isalpha,
    "IsDigit": lambda each: unicodedata.category(each) == "Nd",
    "IsLowercase": str.islower,
    "IsUppercase": str.isupper,
    "IsPunctuation": lambda each: unicodedata.category(each).startswith("P"),
}
_CATEGORIES: Final = frozenset("LMNPSZC") | {
    f"{kind}{detail}"
    for kind, details in [
        *(("L", "ulmot"), ("M", "nce"), ("N", "dlo"), ("P", "cdseifo")),
        *(("S", "mcko"), ("Z", "slp"), ("C", "cfosn")),
    ]
    for detail in details
}


def has_property(name: str) -> Accepts:
    r"""Return the predicate of ``\p{name}``.

    Raises:
        ValueError: the property is not supported.
    """
    if name in _POSIX:
        return _POSIX[name].__contains__
    if name in _UNICODE:
        return _UNICODE[name]
    category = name.removeprefix("Is")
    if category in _CATEGORIES:
        return lambda each: unicodedata.category(each).startswith(category)
    raise ValueError(rf"the property \p{{{name}}} is not supported")


def is_not_a_line_end(character: str) -> bool:
    """Return whether ``.`` accepts a character without ``(?s)``."""
    return character not in _LINE_ENDS


def _is_before_last_line_end(text: str, position: int) -> bool:
    rest = text[position : position + 3]
    if rest == "\n":
        return text[position - 1 : position] != "\r"
    return rest == "\r\n" or rest in _LINE_ENDS or not rest


def _is_line_start(text: str, position: int) -> bool:
    if position == 0 or position == len(text):
        return position == 0
    before = text[position - 1]
    return before in _LINE_ENDS and not (before == "\r" and text[position] == "\n")


def _is_line_end(text: str, position: int) -> bool:
    if position == len(text):
        return True
    return text[position] in _LINE_ENDS and text[position - 1 : position + 1] != "\r\n"


def _is_word_boundary(text: str, position: int) -> bool:
    before, following = text[position - 1 : position], text[position : position + 1]
    return (before in _WORD) != (following in _WORD)


START: Final = Check(lambda _, position: position == 0, is_at_edges=True)
END: Final = Check(lambda text, position: position == len(text), is_at_edges=True)
LAST_LINE_END: Final = Check(_is_before_last_line_end, is_at_edges=True)
LINE_START: Final = Check(_is_line_start, is_at_edges=False)
LINE_END: Final = Check(_is_line_end, is_at_edges=False)
WORD_BOUNDARY: Final = Check(_is_word_boundary, is_at_edges=False)
NO_WORD_BOUNDARY: Final = Check(
    lambda text, position: not _is_word_boundary(text, position), is_at_edges=False
)
