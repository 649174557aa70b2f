"""Bytes that somebody has written as text: hex in all its dresses, escapes, and base64."""

from __future__ import annotations

import ast
import base64
import binascii
import re
from typing import Final

from ._forms import BASE64, HEX
from ._hex_dumps import TextFormError, read_dump

#: What people put between or around hex digits: white space, 0x, \x, and the signs of lists.
_DRESS: Final = re.compile(r"0[xX]|\\x|[\s:,;.\-_{}\[\]()<>\"']+")
_HEX: Final = re.compile(r"[0-9a-fA-F]*")
#: What a program of C has around the digits, as ``xxd -i`` and Wireshark print it.
_ARRAY: Final = re.compile(r"\{([^{}]*\b0[xX][^{}]*)\}")
_COMMENT: Final = re.compile(r"/\*.*?\*/", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\x[0-9a-fA-F]{2}")
_QUOTED: Final = re.compile(r"b?(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')", re.DOTALL)
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")


def read_text(text: str, form: str | None = None) -> tuple[bytes, str]:
    """The bytes that a text stands for, and the name of its form.

    Args:
        text: hex, a hex dump, escapes, or base64.
        form: ``HEX`` or ``BASE64`` if it is known.

    Raises:
        TextFormError: it is none of these; says what was met.
    """
    if form == BASE64:
        return _read_base64(text), "base64"
    for name, read in (("hex dump", read_dump), ("hex", _read_hex), ("escapes", _read_escapes)):
        data = read(text)
        if data is not None:
            return data, name
    # Base64 of more than a few bytes has other letters: half a byte is missing, or there is one too
    # many.
    if form == HEX or _HEX.fullmatch(_DRESS.sub("", text)):
        raise TextFormError(_what_is_no_hex(text))
    try:
        return _read_base64(text), "base64"
    except TextFormError:
        raise TextFormError(
            f"neither hex nor base64: {_what_is_no_hex(text)}; --format raw takes bytes as they are"
        ) from None


def _read_hex(text: str) -> bytes | None:
    arrays = _ARRAY.findall(_COMMENT.sub("", text))
    digits = _DRESS.sub("", "".join(arrays) or text)
    if len(digits) % 2 or not _HEX.fullmatch(digits):
        return None
    return bytes.fromhex(digits)


def _read_escapes(text: str) -> bytes | None:
    r"""What ``\x00\x1akafka`` stands for, as Python, C and shells write it."""
    if not _ESCAPED.search(text) or not text.isascii():
        return None
    quoted = _QUOTED.findall(text)
    pieces = quoted or [f'"{line.strip()}"' for line in text.splitlines()]
    try:
        return b"".join(ast.literal_eval(f"b{piece}") for piece in pieces)
    except (ValueError, SyntaxError):  # also for what would not be a literal
        return None


def _read_base64(text: str) -> bytes:
    words = text.split()
    if not words or not all(map(_BASE64.fullmatch, words)):
        raise TextFormError("base64 has letters, digits, + and / (or - and _), and = at its end")
    # Padding before the end means that several were encoded one by one, as lines of a log.
    several = any(word.endswith("=") for word in words[:-1])
    if not several and len(set(map(len, words[:-1]))) > 1:
        raise TextFormError("base64 has the same length in all its lines but the last")
    try:
        return b"".join(map(_decode_word, words if several else ["".join(words)]))
    except binascii.Error as error:
        raise TextFormError(f"not base64: {error}") from None


def _decode_word(word: str) -> bytes:
    bare = word.rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)


def _what_is_no_hex(text: str) -> str:
    digits = _DRESS.sub("", text)
    wrong = re.search(r"[^0-9a-fA-F]", digits)
    if wrong:
        return f"{wrong[0]!a} is no hex digit"
    return f"{len(digits)} hex digits are not whole bytes" if digits else "there is nothing"
