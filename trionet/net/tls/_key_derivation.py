"""How many key derivation iterations it takes to decrypt a store, as the store itself declares.

``cryptography`` derives keys while it holds the GIL, and OpenSSL cannot be interrupted: a store of
one kilobyte that requires two billion iterations would block the process for many minutes. So the
iterations, called rounds in the names here, are counted before any key is derived.

Encrypted parts are not inspected: such a part of a PKCS12 store can contain a key that is encrypted
again, whose iterations are not counted.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from ...errors import ConfigError
from ._ber import Element, elements, first

#: The limit for all keys of a store together. Java has the same limit per key; keytool uses 10,000.
KEY_ROUNDS_MAX: Final = 5_000_000

_RSADSI = bytes.fromhex("2a864886f70d")  # 1.2.840.113549
_PKCS5 = _RSADSI + b"\x01\x05"
_PBKDF2 = _PKCS5 + b"\x0c"
_PBES2 = _PKCS5 + b"\x0d"
_PBMAC1 = _PKCS5 + b"\x0e"
_PBES1 = tuple(_PKCS5 + bytes([number]) for number in (1, 3, 4, 6, 10, 11))
_SCRYPT = bytes.fromhex("2b06010401da47040b")  # 1.3.6.1.4.1.11591.4.11
_PKCS12_PBE = _RSADSI + b"\x01\x0c\x01"
_DATA = _RSADSI + b"\x01\x07\x01"
_ENCRYPTED_DATA = _RSADSI + b"\x01\x07\x06"
_SHROUDED_KEY_BAG = _RSADSI + b"\x01\x0c\x0a\x01\x02"
_SAFE_CONTENTS_BAG = _RSADSI + b"\x01\x0c\x0a\x01\x06"

_CONSTRUCTED = 0x20
_OCTET_STRING = 0x04
# For nested bags and nested strings; OpenSSL reads five levels of the latter.
_DEPTH_MAX = 8


def too_many_rounds(source: str) -> ConfigError:
    """Return the error for a store above the limit, without the count, which may be very long."""
    return ConfigError(
        f"{source} requires too many iterations of key derivation; at most"
        f" {KEY_ROUNDS_MAX} in total are allowed; encrypt it again with fewer"
    )


def rounds_of_key(data: bytes) -> int:
    """Return the number of iterations for an encrypted PKCS8 key (RFC 5958, 3).

    Raises:
        ValueError: the data is malformed, or not an encrypted key.
    """
    (algorithm,) = _fields(first(data).content, 1)
    return _rounds_of(algorithm.content)


def rounds_of_pkcs12(data: bytes) -> int:
    """Return the number of iterations for a PKCS12 store, including its MAC (RFC 7292, 4).

    Raises:
        ValueError: the data is malformed, or not a PKCS12 store.
    """
    _, safes, *mac = _fields(first(data).content, 3)
    _, wrapped = _fields(safes.content, 2)
    contents = elements(first(_joined(first(wrapped.content))).content)
    return sum(_rounds_of_content(each.content) for each in contents) + (
        _rounds_of_mac(mac[0].content) if mac else 0
    )


def _rounds_of_content(content: bytes) -> int:
    kind, *wrapped = _fields(content, 2)
    if kind.content == _DATA and wrapped:
        return _rounds_of_bags(first(_joined(first(wrapped[0].content))).content)
    if kind.content == _ENCRYPTED_DATA and wrapped:
        _, encrypted = _fields(first(wrapped[0].content).content, 2)
        _, algorithm = _fields(encrypted.content, 2)
        return _rounds_of(algorithm.content)
    return 0


def _rounds_of_bags(bags: bytes, depth: int = 0) -> int:
    if depth > _DEPTH_MAX:
        raise ValueError("bags are nested too deeply")
    rounds = 0
    for bag in elements(bags):
        kind, value = _fields(bag.content, 2)
        if kind.content == _SHROUDED_KEY_BAG:
            rounds += rounds_of_key(value.content)
        elif kind.content == _SAFE_CONTENTS_BAG:
            rounds += _rounds_of_bags(first(value.content).content, depth + 1)
    return rounds


def _rounds_of_mac(content: bytes) -> int:
    digest, _, *iterations = _fields(content, 3)
    (algorithm,) = _fields(digest.content, 1)
    (kind,) = _fields(algorithm.content, 1)
    if kind.content == _PBMAC1:
        return _rounds_of(algorithm.content)
    return _number(iterations[0]) if iterations else 1


def _rounds_of(algorithm: bytes) -> int:
    """Return the iteration count of the key derivation for encryption or a MAC (RFC 8018)."""
    kind, parameters = _fields(algorithm, 2)
    if kind.content in (_PBES2, _PBMAC1):
        (derivation,) = _fields(parameters.content, 1)
        kind, parameters = _fields(derivation.content, 2)
    if kind.content == _SCRYPT:
        # Each step takes about as long as an iteration of PBKDF2.
        _, cost, block_size, parallelization = _fields(parameters.content, 4)
        return _number(cost) * _number(block_size) * _number(parallelization)
    if kind.content in (_PBKDF2, *_PBES1) or kind.content.startswith(_PKCS12_PBE):
        _, iterations = _fields(parameters.content, 2)
        return _number(iterations)
    raise ValueError("unknown key derivation")


def _number(element: Element) -> int:
    """Return the absolute value of a count, so that a negative one cannot offset another."""
    return abs(int.from_bytes(element.content, "big", signed=True))


def _joined(element: Element, depth: int = 0) -> bytes:
    """Return the content of an OCTET STRING, joining its segments if it is constructed."""
    if element.tag == _OCTET_STRING:
        return element.content
    if element.tag != _OCTET_STRING | _CONSTRUCTED or depth > _DEPTH_MAX:
        raise ValueError("not an OCTET STRING")
    return b"".join(_joined(piece, depth + 1) for piece in elements(element.content))


def _fields(data: bytes, count: int) -> list[Element]:
    """Return at most ``count`` elements, since untrusted data can contain a million of them."""
    return list(islice(elements(data), count))
