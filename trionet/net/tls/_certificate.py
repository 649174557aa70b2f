"""Certificates: the blocks of PEM, the elements of DER, and a certificate's names and validity.

The subject is written as Java writes it (X500Principal.getName, RFC 2253), because
``ssl.principal.mapping.rules`` and access rules are matched against that text. The module ``ssl``
returns the parts of a name without their encodings, which that text depends on.

One string type differs on purpose: a BMPString is decoded correctly. Java decodes its UTF-16 as
UTF-8, which can make different names equal.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, NamedTuple

_BEGIN: Final = b"-----BEGIN "
_END: Final = b"-----END "
_DASHES: Final = b"-----"

CERTIFICATE: Final = b"CERTIFICATE"


def blocks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the label and the text of each block, in order; text between the blocks is skipped.

    This takes linear time for any data, because the data may be untrusted: a regular expression
    would take hours for a few megabytes of BEGIN lines without an END line.
    """
    position = 0
    while (end := data.find(_END, position)) >= 0:
        label_at = end + len(_END)
        label_end = data.find(_DASHES, label_at)
        if label_end < 0:
            return
        label = data[label_at:label_end]
        begin = data.rfind(_BEGIN, position, end)
        if begin >= 0 and data.startswith(label + _DASHES, begin + len(_BEGIN)):
            yield label, data[begin : label_end + len(_DASHES)]
        position = label_end


def certificates(data: bytes) -> list[bytes]:
    """Return the certificates in the data, as PEM."""
    return [text for label, text in blocks(data) if label == CERTIFICATE]


def is_cut_off(data: bytes) -> bool:
    """Whether a certificate begins in the data and does not end.

    The file was cut off, or is still being written. Where one certificate has ended, nothing shows
    that another one should follow.
    """
    begin = _BEGIN + CERTIFICATE + _DASHES
    last_line = data[data.rfind(b"\n") + 1 :]
    return data.count(begin) > len(certificates(data)) or (
        len(last_line) > len(_DASHES) and begin.startswith(last_line)
    )


def private_key(data: bytes) -> bytes | None:
    """Return the first private key in the data, in any PEM format; None if there is none."""
    keys = (text for label, text in blocks(data) if label.endswith(b"PRIVATE KEY"))
    return next(keys, None)


def is_encrypted(data: bytes) -> bool:
    """Whether a key, in PKCS8 or in the older format, requires a password."""
    return b"-----BEGIN ENCRYPTED " in data or b"\nProc-Type: 4,ENCRYPTED" in data


def content(text: bytes) -> bytes:
    """Decode the content of a block without headers.

    Raises:
        ValueError: the block has headers, or is not base64.
    """
    _, body = text.removeprefix(_BEGIN).split(_DASHES, 1)
    body, _ = body.rsplit(_END, 1)
    return base64.b64decode(b"".join(body.split()), validate=True)


def encrypted_pkcs8(data: bytes) -> bytes:
    """Return the PEM block of a key that is encrypted in PKCS8."""
    label = b"ENCRYPTED PRIVATE KEY" + _DASHES
    return _BEGIN + label + b"\n" + base64.encodebytes(data) + _END + label


class Element(NamedTuple):
    """One element: its tag, its content, and its whole encoding."""

    tag: int
    content: bytes
    whole: bytes


def elements(data: bytes) -> Iterator[Element]:
    """Yield the elements of BER data, including those of indefinite length, as OpenSSL does.

    Raises:
        ValueError: the data is malformed.
    """
    position = 0
    while position < len(data):
        start, length = _header(data, position)
        end = _end_of_contents(data, start) if length is None else start + length
        if end > len(data):
            raise ValueError("truncated data")
        following = end + 2 if length is None else end
        yield Element(data[position], data[start:end], data[position:following])
        position = following


def first(data: bytes) -> Element:
    """Return the first element; like OpenSSL, ignore the data after it.

    Raises:
        ValueError: the data is empty or malformed.
    """
    for element in elements(data):
        return element
    raise ValueError("truncated data")


def _header(data: bytes, position: int) -> tuple[int, int | None]:
    """Return the position and the length of an element's content; None for an indefinite length."""
    if position + 2 > len(data):
        raise ValueError("truncated data")
    if data[position] & 0x1F == 0x1F:
        raise ValueError("multi-byte tags are not supported")
    length, start = data[position + 1], position + 2
    if not length & 0x80:
        return start, length
    size = length & 0x7F
    if not size:
        return start, None
    return start + size, int.from_bytes(data[start : start + size], "big")


def _end_of_contents(data: bytes, position: int) -> int:
    """Return the position of the two zero bytes that end an element of indefinite length."""
    depth = 0
    while True:
        start, length = _header(data, position)
        if length is None:
            depth += 1
        elif data[position] == 0 and not length:
            if not depth:
                return position
            depth -= 1
        position = start + (length or 0)


_VERSION = 0xA0
_EXTENSIONS = 0xA3
_UTC_TIME = 0x17

_SUBJECT_ALTERNATIVE_NAME = "2.5.29.17"
_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
# UTF8String, PrintableString, TeletexString, IA5String, GeneralString; BMPString.
_ENCODINGS = dict.fromkeys((0x0C, 0x13, 0x14, 0x16, 0x1B), "utf-8") | {0x1E: "utf-16-be"}
# Identifiers in use have a dozen. Reading a number of a million digits takes hours.
_IDENTIFIER_BYTES_MAX = 128
_ESCAPES = str.maketrans({"\0": "\\00"} | {each: f"\\{each}" for each in ',=+<>#;"\\'})
# Escaped only at the start and end of a value.
_OUTER = " \r"
_OUTER_ESCAPES = str.maketrans({each: f"\\{each}" for each in _OUTER})


def distinguished_name(certificate: bytes) -> str:
    """Return the subject as Java writes it, such as ``CN=alice,OU=tests,O=trionet``.

    Args:
        certificate: the certificate in DER.

    Raises:
        ValueError: the certificate is malformed.
    """
    subject = _fields(certificate)[4]
    relative_names = [
        "+".join(_attribute(pair.content) for pair in elements(names.content))
        for names in elements(subject.content)
    ]
    return ",".join(reversed(relative_names))


def validity(certificate: bytes) -> tuple[datetime, datetime]:
    """Return the start and the end of a certificate's validity.

    Args:
        certificate: the certificate in DER.

    Raises:
        ValueError: the certificate is malformed.
    """
    period = _fields(certificate)[3]
    begin, end, *_ = map(_time, elements(period.content))
    return begin, end


def alternative_names(certificate: bytes) -> frozenset[bytes]:
    """Return the encoded subject alternative names (DNS, IP, ...), for comparison.

    Args:
        certificate: the certificate in DER.

    Raises:
        ValueError: the certificate is malformed.
    """
    for field in _fields(certificate):
        if field.tag == _EXTENSIONS:
            for extension in elements(first(field.content).content):
                name, *_, value = elements(extension.content)
                if _dotted(name.content) == _SUBJECT_ALTERNATIVE_NAME:
                    names = first(value.content)
                    return frozenset(element.whole for element in elements(names.content))
    return frozenset()


def _fields(certificate: bytes) -> list[Element]:
    """Return a certificate's fields: serial number, algorithm, issuer, validity, subject, ..."""
    signed, *_ = elements(first(certificate).content)
    fields = [each for each in elements(signed.content) if each.tag != _VERSION]
    if len(fields) < 5:
        raise ValueError("the certificate has no subject")
    return fields


def _time(element: Element) -> datetime:
    """Decode a time; through 2049, the year has two digits (RFC 5280, 4.1.2.5)."""
    text = element.content.decode("ascii")
    if element.tag == _UTC_TIME:
        text = ("19" if text >= "5" else "20") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)


def _attribute(pair: bytes) -> str:
    name, value = elements(pair)
    dotted = _dotted(name.content)
    keyword = _KEYWORDS.get(dotted)
    encoding = _ENCODINGS.get(value.tag)
    if keyword is None or encoding is None:
        # RFC 2253, 2.4: a value without a keyword, or that is not text, is shown encoded.
        return f"{keyword or dotted}=#{value.whole.hex()}"
    return f"{keyword}={_escape(value.content.decode(encoding, 'replace'))}"


def _escape(text: str) -> str:
    inner = text.strip(_OUTER)
    before, _, after = text.partition(inner) if inner else (text, "", "")
    outer = [part.translate(_OUTER_ESCAPES) for part in (before, after)]
    return inner.translate(_ESCAPES).join(outer)


# A subject has few kinds of attributes; that of a hostile certificate has thousands of attributes.
@lru_cache(maxsize=64)
def _dotted(encoded: bytes) -> str:
    """Return an object identifier in dotted form."""
    if not encoded or encoded[-1] & 0x80:
        raise ValueError("truncated object identifier")
    if len(encoded) > _IDENTIFIER_BYTES_MAX:
        raise ValueError(f"object identifier too long ({len(encoded)} bytes)")
    numbers = []
    number = 0
    for byte in encoded:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    root = min(numbers[0] // 40, 2)
    return ".".join(map(str, (root, numbers[0] - 40 * root, *numbers[1:])))
