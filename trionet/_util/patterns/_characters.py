"""Predicates of characters, and of positions, as Java's regular expressions have them. Pure."""

from __future__ import annotations

import unicodedata
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
_LETTERS_AND_DIGITS: Final = ("L", "Nd")
_IDENTIFIER_START: Final = ("L", "Nl", "Sc", "Pc")
_IGNORABLE: Final = frozenset(map(chr, [*range(9), *range(0x0E, 0x1C), *range(0x7F, 0xA0)]))
_NO_BREAK_SPACES: Final = frozenset("\xa0\u2007\u202f")
_WHITESPACE: Final = frozenset("\t\n\x0b\f\r\x1c\x1d\x1e\x1f")
_JOINERS: Final = frozenset("\u200c\u200d")
_WIDE_HEX: Final = frozenset(map(chr, [*range(0xFF21, 0xFF27), *range(0xFF41, 0xFF47)]))


def _of(*categories: str) -> Accepts:
    """Return the predicate of general categories, given by their first letters."""
    return lambda each: unicodedata.category(each).startswith(categories)


def _is_printable(character: str) -> bool:
    return not unicodedata.category(character).startswith(("Zl", "Zp", "C")) or (
        unicodedata.category(character) in {"Cf", "Co"}
    )


#: Binary properties, in capital letters; the case of their names does not count.
_UNICODE: Final[dict[str, Accepts]] = {
    "ALNUM": lambda each: each.isalpha() or unicodedata.category(each) == "Nd",
    "ALPHABETIC": str.isalpha,
    "ASSIGNED": lambda each: unicodedata.category(each) != "Cn",
    "BLANK": lambda each: each == "\t" or unicodedata.category(each) == "Zs",
    "CONTROL": _of("Cc"),
    "DIGIT": _of("Nd"),
    "GRAPH": lambda each: _is_printable(each) and unicodedata.category(each) != "Zs",
    "HEX_DIGIT": lambda each: (
        each in _POSIX["XDigit"] or each in _WIDE_HEX or unicodedata.category(each) == "Nd"
    ),
    "JOIN_CONTROL": _JOINERS.__contains__,
    "LETTER": str.isalpha,
    "LOWERCASE": str.islower,
    "PRINT": _is_printable,
    "PUNCTUATION": _of("P"),
    "TITLECASE": _of("Lt"),
    "UPPERCASE": str.isupper,
    "WHITE_SPACE": lambda each: each in "\t\n\x0b\f\r\x85" or unicodedata.category(each)[0] == "Z",
    "WORD": lambda each: (
        each.isalpha()
        or each in _JOINERS
        or unicodedata.category(each) in {"Mn", "Me", "Mc", "Nd", "Pc"}
    ),
}
_UNICODE_ALIASES: Final = {
    "HEXDIGIT": "HEX_DIGIT",
    "JOINCONTROL": "JOIN_CONTROL",
    "WHITESPACE": "WHITE_SPACE",
}
#: Methods of ``java.lang.Character``: ``javaLowerCase`` is ``isLowerCase``.
_METHODS: Final[dict[str, Accepts]] = {
    "javaAlphabetic": str.isalpha,
    "javaDefined": lambda each: unicodedata.category(each) != "Cn",
    "javaDigit": _of("Nd"),
    "javaISOControl": _of("Cc"),
    "javaIdentifierIgnorable": lambda each: (
        each in _IGNORABLE or unicodedata.category(each) == "Cf"
    ),
    "javaJavaIdentifierPart": lambda each: (
        each in _IGNORABLE
        or unicodedata.category(each).startswith((*_IDENTIFIER_START, "Nd", "Mc", "Mn", "Cf"))
    ),
    "javaJavaIdentifierStart": _of(*_IDENTIFIER_START),
    "javaLetter": _of("L"),
    "javaLetterOrDigit": _of(*_LETTERS_AND_DIGITS),
    "javaLowerCase": str.islower,
    "javaMirrored": lambda each: unicodedata.mirrored(each) == 1,
    "javaSpaceChar": _of("Z"),
    "javaTitleCase": _of("Lt"),
    "javaUpperCase": str.isupper,
    "javaWhitespace": lambda each: (
        each in _WHITESPACE
        or (unicodedata.category(each)[0] == "Z" and each not in _NO_BREAK_SPACES)
    ),
}
_CATEGORIES: Final = frozenset("LMNPSZC") | {
    f"{kind}{detail}"
    for kind, details in [
        *(("L", "ulmot"), ("M", "nce"), ("N", "dlo"), ("P", "cdseifo")),
        *(("S", "mcko"), ("Z", "slp"), ("C", "cfosn")),
    ]
    for detail in details
}
#: What has no category of its own.
_OTHERS: Final[dict[str, Accepts]] = {
    "L1": lambda each: each <= "\xff",
    "LC": _of("Lu", "Ll", "Lt"),
    "LD": _of(*_LETTERS_AND_DIGITS),
    "all": lambda _: True,
}
#: Scripts and blocks with characters of ASCII, in capital letters. No other has any.
_ASCII_SCRIPTS: Final[dict[str, frozenset[str]]] = {
    **dict.fromkeys(("LATIN", "LATN"), _ALPHA),
    **dict.fromkeys(("COMMON", "ZYYY"), _POSIX["ASCII"] - _ALPHA),
}
_ASCII_BLOCKS: Final = frozenset(("BASIC LATIN", "BASICLATIN", "BASIC_LATIN"))


def has_property(name: str, *, is_ascii: bool) -> Accepts:
    r"""Return the predicate of ``\p{name}``, where the name may be one with a value, as gc=Lu.

    Args:
        name: the name.
        is_ascii: whether it is only called for characters of ASCII, which allows scripts and
            blocks.

    Raises:
        ValueError: the property is not supported.
    """
    key, has_value, value = name.partition("=")
    kind = key.lower() if has_value else key[:2]
    value = value if has_value else key[2:]
    found: Accepts | None = None
    if kind in ("gc", "general_category"):
        found = _find_property(value)
    elif kind in ("sc", "script"):
        found = _find_script(value, is_ascii=is_ascii)
    elif kind in ("In", "blk", "block"):
        found = _POSIX["ASCII"].__contains__ if is_ascii and _is_ascii_block(value) else None
    elif kind == "Is" and not has_value:
        capitals = value.upper()
        found = _UNICODE.get(_UNICODE_ALIASES.get(capitals, capitals)) or _find_property(value)
        found = found or _find_script(value, is_ascii=is_ascii)
    elif not has_value:
        found = _find_property(name)
    if found is None:
        raise ValueError(rf"the property \p{{{name}}} is not supported")
    return found


def _find_property(name: str) -> Accepts | None:
    if name in _POSIX:
        return _POSIX[name].__contains__
    return _of(name) if name in _CATEGORIES else _METHODS.get(name) or _OTHERS.get(name)


def _find_script(name: str, *, is_ascii: bool) -> Accepts | None:
    found = _ASCII_SCRIPTS.get(name.upper())
    return found.__contains__ if is_ascii and found is not None else None


def _is_ascii_block(name: str) -> bool:
    return name.upper() in _ASCII_BLOCKS


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
