"""Names in certificates, written as Java writes them."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from support.tls import certificate, der_of
from trionet.net.tls._certificate import alternative_names, distinguished_name, validity

# What Java 17 prints for the name in hexadecimal DER: X500Principal.getName(RFC2253).
JAVA = [
    (
        (
            "304c310b3009060355040613025553310a30080603550408130179310a3008060355040713017831143008"
            "060355040a1301623008060355040b130161310f300d060355040313066b61666b6131"
        ),
        "CN=kafka1,O=b+OU=a,L=x,ST=y,C=US",
    ),
    ("30183116301406035504030c0d612c20623d633b3c783e23225c", r"CN=a\, b\=c\;\<x\>\#\"\\"),
    ("300d310b300906035504030c022378", r"CN=\#x"),
    (
        "3022310a300806035504031301783114301206092a864886f70d01090116056140622e63",
        "1.2.840.113549.1.9.1=#16056140622e63,CN=x",
    ),
    (
        (
            "305a310e300c06035504030c05c3a920c3bc310e300c060355040c13057469746c65310c300a0603550409"
            "13037320743111300f060a0992268993f22c64010113017531173015060a0992268993f22c640119160765"
            "78616d706c65"
        ),
        "DC=example,UID=u,STREET=s t,2.5.4.12=#13057469746c65,CN=é ü",
    ),
    ("30173115301306035504030c0c612f623a633f2864292a405f", "CN=a/b:c?(d)*@_"),
    ("3000", ""),
    (  # a UniversalString
        "301b3119301706035504031c10000000750000006e0000006900000076",
        "CN=#1c10000000750000006e0000006900000076",
    ),
]


def tlv(tag: int, *contents: bytes) -> bytes:
    content = b"".join(contents)
    size = len(content)
    length = bytes((size,)) if size < 128 else b"\x84" + size.to_bytes(4, "big")
    return bytes((tag,)) + length + content


def with_subject(name: bytes, *, version: bool = True) -> bytes:
    """As much of a certificate as a reader of its subject looks at."""
    fields = [tlv(2, b"\1"), tlv(0x30), tlv(0x30), tlv(0x30), name]
    return tlv(0x30, tlv(0x30, *([tlv(0xA0, b"")] if version else []), *fields))


@pytest.mark.parametrize(
    ("tag", "text", "expected"),
    [
        (0x17, b"491231235959Z", datetime(2049, 12, 31, 23, 59, 59, tzinfo=UTC)),
        (0x17, b"500101000000Z", datetime(1950, 1, 1, tzinfo=UTC)),
        (0x18, b"20500101000000Z", datetime(2050, 1, 1, tzinfo=UTC)),
        (0x18, b"99991231235959Z", datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
    ],
)
def test_the_end_of_validity_is_read_from_both_forms(
    tag: int, text: bytes, expected: datetime
) -> None:
    """RFC 5280, 4.1.2.5."""
    period = tlv(0x30, tlv(0x17, b"200229013002Z"), tlv(tag, text))
    fields = tlv(0x30, tlv(2, b"\1"), tlv(0x30), tlv(0x30), period, tlv(0x30))

    actual = validity(tlv(0x30, fields))

    assert (datetime(2020, 2, 29, 1, 30, 2, tzinfo=UTC), expected) == actual


@pytest.mark.parametrize(("name", "expected"), JAVA)
@pytest.mark.parametrize("version", [True, False])
def test_a_name_is_written_as_java_writes_it(name: str, expected: str, version: bool) -> None:
    actual = distinguished_name(with_subject(bytes.fromhex(name), version=version))

    assert expected == actual


@pytest.mark.parametrize("text", ["bob", "é", "è", "a,b"])
def test_a_name_in_utf_16_is_written_as_what_it_says(text: str) -> None:
    """Java writes CN=\\00b\\00o\\00b, and of é and è the same."""
    pair = tlv(0x30, tlv(6, b"\x55\x04\x03"), tlv(0x1E, text.encode("utf-16-be")))

    actual = distinguished_name(with_subject(tlv(0x30, tlv(0x31, pair))))

    assert f"CN={text}".replace(",", "\\,") == actual


@pytest.mark.parametrize(("text", "expected"), [(" a ", r"\ a\ "), ("  ", r"\ \ "), ("\0", r"\00")])
def test_blanks_at_the_ends_are_escaped(text: str, expected: str) -> None:
    pair = tlv(0x30, tlv(6, b"\x55\x04\x03"), tlv(0x0C, text.encode()))

    actual = distinguished_name(with_subject(tlv(0x30, tlv(0x31, pair))))

    assert f"CN={expected}" == actual


def test_the_subject_of_a_real_certificate() -> None:
    leaf = certificate(common_name="alice", unit="a,b")

    assert r"CN=alice,OU=a\,b,O=trionet" == distinguished_name(der_of(leaf))


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1))
def test_a_name_made_by_another_library_can_be_read_back(text: str) -> None:
    pair = tlv(0x30, tlv(6, b"\x55\x04\x03"), tlv(0x0C, text.encode()))

    written = distinguished_name(with_subject(tlv(0x30, tlv(0x31, pair))))

    assert written.startswith("CN=")
    assert text.replace("\0", "") == _unescape(written[3:])


def _unescape(text: str) -> str:
    """RFC 2253, with NUL left out."""
    result, characters = "", iter(text.replace("\\00", ""))
    for character in characters:
        result += next(characters) if character == "\\" else character
    return result


def test_alternative_names_are_distinguished() -> None:
    one = alternative_names(der_of(certificate("a.example", "b.example", "127.0.0.1")))
    fewer = alternative_names(der_of(certificate("a.example")))

    assert 3 == len(one)
    assert fewer < one


def test_a_certificate_without_extensions_has_no_alternative_names() -> None:
    assert frozenset() == alternative_names(with_subject(tlv(0x30)))


@given(st.data())
def test_a_damaged_certificate_is_read_or_is_a_value_error(data: st.DataObject) -> None:
    der = bytearray(_der())
    for _ in range(data.draw(st.integers(1, 5))):
        der[data.draw(st.integers(0, len(der) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(der[: data.draw(st.integers(0, len(der)))])

    for read in (distinguished_name, alternative_names, validity):
        try:
            read(cut)
        except ValueError:
            pass


def _der() -> bytes:
    return ssl.PEM_cert_to_DER_cert(certificate().cert_chain_pems[0].bytes().decode())


def test_parts_with_several_attributes_come_in_their_encoded_order() -> None:
    attributes = [
        x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, "o"),
        x509.NameAttribute(x509.NameOID.COMMON_NAME, "c"),
    ]
    subject = x509.Name([x509.RelativeDistinguishedName(attributes)])
    request = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(subject)
        .sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    )

    written = distinguished_name(with_subject(request.subject.public_bytes()))

    assert "CN=c+O=o" == written


def test_an_endless_object_identifier_is_no_certificate() -> None:
    """Its number would have a million digits, and to read them would take hours."""
    endless = tlv(6, b"\x83" * 4_000_000 + b"\x01")
    name = tlv(0x30, tlv(0x31, tlv(0x30, endless, tlv(0x0C))))

    with pytest.raises(ValueError, match=r"object identifier too long \(4000001 bytes\)"):
        distinguished_name(with_subject(name))
