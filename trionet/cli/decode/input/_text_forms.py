"""Parses bytes written as text: hex in many notations, escapes, and base64."""

from __future__ import annotations

import ast
import base64
import binascii
import re
from typing import Final

from ._hex_dumps import TextFormError, read_dump
from ._source import BASE64, HEX

#: Text that may separate or surround hex digits: white space, 0x, \x, and the punctuation of lists.
_DECORATION: Final = re.compile(r"0[xX]|\\x|[\s:,;.\-_{}\[\]()<>\"']+")
_HEX: Final = re.compile(r"[0-9a-fA-F]*")
#: A C array, as printed by ``xxd -i`` and Wireshark.
_ARRAY: Final = re.compile(r"\{([^{}]*\b0[xX][^{}]*)\}")
_COMMENT: Final = re.compile(r"/\*.*?\*/", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\x[0-9a-fA-F]{2}")
_QUOTED: Final = re.compile(r"b?(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')", re.DOTALL)
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")


def read_text(text: str, form: str | None = None) -> tuple[bytes, str]:
    """Parse a text, and return the bytes and the name of the detected notation.

    Args:
        text: hex, a hex dump, escapes, or base64.
        form: ``HEX`` or ``BASE64``; None to detect the notation.

    Raises:
        TextFormError: the text is none of these.
    """
    if form == BASE64:
        return _read_base64(text), "base64"
    for name, read in (("hex dump", read_dump), ("hex", _read_hex), ("escapes", _read_escapes)):
        data = read(text)
        if data is not None:
            return data, name
    # Base64 of more than a few bytes has other letters: this is hex with an odd number of digits.
    if form == HEX or _HEX.fullmatch(_DECORATION.sub("", text)):
        raise TextFormError(_hex_error(text))
    try:
        return _read_base64(text), "base64"
    except TextFormError:
        raise TextFormError(
            f"neither hex nor base64: {_hex_error(text)}; use --format raw for raw bytes"
        ) from None


def _read_hex(text: str) -> bytes | None:
    arrays = _ARRAY.findall(_COMMENT.sub("", text))
    digits = _DECORATION.sub("", "".join(arrays) or text)
    if len(digits) % 2 or not _HEX.fullmatch(digits):
        return None
    return bytes.fromhex(digits)


def _read_escapes(text: str) -> bytes | None:
    r"""Parse escapes such as ``\x00\x1akafka``, as in Python, C and shells."""
    if not _ESCAPED.search(text) or not text.isascii():
        return None
    quoted = _QUOTED.findall(text)
    literals = quoted or [f'"{line.strip()}"' for line in text.splitlines()]
    try:
        return b"".join(ast.literal_eval(f"b{literal}") for literal in literals)
    except (ValueError, SyntaxError):  # also raised for text that is not a literal
        return None


def _read_base64(text: str) -> bytes:
    words = text.split()
    if not words or not all(map(_BASE64.fullmatch, words)):
        raise TextFormError(
            "base64 consists of letters, digits, + and / (or - and _), with = at the end"
        )
    # Padding before the end means that several values were encoded separately, as lines of a log.
    several = any(word.endswith("=") for word in words[:-1])
    if not several and len(set(map(len, words[:-1]))) > 1:
        raise TextFormError("all lines of base64 except the last must have the same length")
    try:
        return b"".join(map(_decode_word, words if several else ["".join(words)]))
    except binascii.Error as error:
        raise TextFormError(f"invalid base64: {error}") from None


def _decode_word(word: str) -> bytes:
    bare = word.rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)


def _hex_error(text: str) -> str:
    digits = _DECORATION.sub("", text)
    wrong = re.search(r"[^0-9a-fA-F]", digits)
    if wrong:
        return f"{wrong[0]!a} is not a hex digit"
    return f"odd number of hex digits ({len(digits)})" if digits else "the input is empty"
