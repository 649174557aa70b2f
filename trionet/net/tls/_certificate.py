"""The subject, names and validity of a certificate, read from its DER encoding.

The subject is written as Java writes it (X500Principal.getName, RFC 2253), because
``ssl.principal.mapping.rules`` and access rules are matched against that text. The module ``ssl``
returns the parts of a name without their encodings, which that text depends on.

One string type differs on purpose: a BMPString is decoded correctly. Java decodes its UTF-16 as
UTF-8, which can make different names equal.
"""

from __future__ import annotations

from datetime import UTC, datetime

from ._ber import Element, elements, first

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
