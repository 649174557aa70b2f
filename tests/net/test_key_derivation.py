"""Rounds of key derivation: counted before they are gone through, and refused above a limit."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest
from asn1crypto.core import Integer, ObjectIdentifier  # type: ignore[import-untyped]
from asn1crypto.keys import EncryptedPrivateKeyInfo  # type: ignore[import-untyped]
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509 import load_pem_x509_certificate

from support.tls import certificate, der_of, shown_by
from trionet.errors import ConfigError
from trionet.net.tls import _certificate as pem
from trionet.net.tls._key_stores import (
    KEY_ROUNDS_MAX,
    STORE_BYTES_MAX,
    read_trust_store,
    rounds_of_key,
    rounds_of_pkcs12,
)
from trionet.net.tls._tls_context import TlsSettings, server_context

SECRET = "open sesame"
ENDLESS = 2**31 - 1  # a quarter of an hour
UNREADABLE = "truncated|unknown|nested too deeply|multi-byte tags|OCTET STRING|to unpack"

OCTETS, SEQUENCE, WRAPPED = 0x04, 0x30, 0xA0
RSADSI = "1.2.840.113549.1"
DATA, ENCRYPTED_DATA = f"{RSADSI}.7.1", f"{RSADSI}.7.6"
SHROUDED_KEY, BAGS = f"{RSADSI}.12.10.1.2", f"{RSADSI}.12.10.1.6"


def element(tag: int, *contents: bytes) -> bytes:
    content = b"".join(contents)
    size = len(content)
    return bytes([tag, 0x84]) + size.to_bytes(4, "big") + content


def indefinite(tag: int, *contents: bytes) -> bytes:
    return bytes([tag, 0x80]) + b"".join(contents) + b"\0\0"


def oid(name: str) -> bytes:
    encoded: bytes = ObjectIdentifier(name).dump()
    return encoded


def number(value: int) -> bytes:
    encoded: bytes = Integer(value).dump()
    return encoded


def algorithm(name: str, *parameters: bytes) -> bytes:
    return element(SEQUENCE, oid(name), element(SEQUENCE, *parameters))


SALT = element(OCTETS, b"salt")


def pbkdf2(rounds: int) -> bytes:
    return algorithm(f"{RSADSI}.5.12", SALT, number(rounds))


def pbes2(derivation: bytes) -> bytes:
    return algorithm(f"{RSADSI}.5.13", derivation, algorithm("2.16.840.1.101.3.4.1.42", SALT))


def scrypt(cost: int, size: int, lanes: int) -> bytes:
    return algorithm("1.3.6.1.4.1.11591.4.11", SALT, number(cost), number(size), number(lanes))


def shrouded(cipher: bytes) -> bytes:
    return element(SEQUENCE, cipher, element(OCTETS, bytes(16)))


def bag(kind: str, value: bytes) -> bytes:
    return element(SEQUENCE, oid(kind), element(WRAPPED, value))


def bags(*contents: bytes) -> bytes:
    octets = element(OCTETS, element(SEQUENCE, *contents))
    return element(SEQUENCE, oid(DATA), element(WRAPPED, octets))


def encrypted(cipher: bytes) -> bytes:
    info = element(SEQUENCE, oid(DATA), cipher, element(0x80, bytes(16)))
    wrapped = element(WRAPPED, element(SEQUENCE, number(0), info))
    return element(SEQUENCE, oid(ENCRYPTED_DATA), wrapped)


def mac(*iterations: bytes, digest: bytes = b"") -> bytes:
    digest = digest or element(SEQUENCE, oid("1.3.14.3.2.26"))
    return element(
        SEQUENCE, element(SEQUENCE, digest, element(OCTETS, bytes(20))), SALT, *iterations
    )


def store(*safes: bytes, mac: bytes = b"") -> bytes:
    octets = element(OCTETS, element(SEQUENCE, *safes))
    content = element(SEQUENCE, oid(DATA), element(WRAPPED, octets))
    return element(SEQUENCE, number(3), content, mac)


def nested(depth: int) -> bytes:
    content = bag(SHROUDED_KEY, shrouded(pbes2(pbkdf2(7))))
    for _ in range(depth):
        content = bag(BAGS, element(SEQUENCE, content))
    return store(bags(content))


PBE_OF_PKCS12, PBE_OF_PKCS5 = f"{RSADSI}.12.1.3", f"{RSADSI}.5.10"
CIPHERS: list[Callable[[int], bytes]] = [
    lambda rounds: pbes2(pbkdf2(rounds)),
    lambda rounds: pbes2(scrypt(rounds, 1, 1)),
    lambda rounds: pbes2(scrypt(2, 1, (rounds + 1) // 2)),
    lambda rounds: algorithm(PBE_OF_PKCS12, SALT, number(rounds)),
    lambda rounds: algorithm(PBE_OF_PKCS5, SALT, number(rounds)),
]
PLACES: list[Callable[[bytes], bytes]] = [
    lambda cipher: store(bags(bag(SHROUDED_KEY, shrouded(cipher)))),
    lambda cipher: store(bags(bag(BAGS, element(SEQUENCE, bag(SHROUDED_KEY, shrouded(cipher)))))),
    lambda cipher: store(bags(), encrypted(cipher), mac=mac()),
]


def key() -> pkcs12.PKCS12PrivateKeyTypes:
    loaded = load_pem_private_key(certificate().private_key_pem.bytes(), None)
    assert not isinstance(loaded, tuple)
    return loaded  # type: ignore[return-value]


def chain() -> bytes:
    return certificate().cert_chain_pems[0].bytes()


def real_store(rounds: int) -> bytes:
    how = (
        PrivateFormat.PKCS12.encryption_builder()
        .kdf_rounds(rounds)
        .key_cert_algorithm(pkcs12.PBES.PBESv2SHA256AndAES256CBC)
        .build(SECRET.encode())
    )
    first = load_pem_x509_certificate(chain())
    return pkcs12.serialize_key_and_certificates(b"broker", key(), first, None, how)


def real_key(rounds: int | None = None) -> bytes:
    """A key in PKCS8, in DER; one with other rounds than it was encrypted with is of no use."""
    how = BestAvailableEncryption(SECRET.encode())
    info = EncryptedPrivateKeyInfo.load(key().private_bytes(Encoding.DER, PrivateFormat.PKCS8, how))
    if rounds is not None:
        derivation = info["encryption_algorithm"]["parameters"]["key_derivation_func"]
        derivation["parameters"]["iteration_count"] = rounds
    data: bytes = info.dump(force=True)
    return data


def settings(data: bytes, folder: Path) -> TlsSettings:
    path = folder / "broker.p12"
    path.write_bytes(data)
    return TlsSettings("PKCS12", str(path), SECRET)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("cipher", CIPHERS)
def test_rounds_are_counted_wherever_they_stand(
    place: Callable[[bytes], bytes], cipher: Callable[[int], bytes]
) -> None:
    for rounds in (2048, KEY_ROUNDS_MAX, 2**31, 2**9999):
        assert rounds <= rounds_of_pkcs12(place(cipher(rounds))) <= rounds + 1
        assert rounds == rounds_of_key(shrouded(cipher(rounds)))


def test_rounds_of_all_parts_are_added_up() -> None:
    cipher = pbes2(pbkdf2(1000))
    two_keys = bags(*[bag(SHROUDED_KEY, shrouded(cipher))] * 2)

    assert 3500 == rounds_of_pkcs12(store(two_keys, encrypted(cipher), mac=mac(number(500))))
    # A negative number, which OpenSSL may take for a large one, makes up for nothing.
    less = encrypted(pbes2(pbkdf2(-1000)))
    assert 2000 == rounds_of_pkcs12(store(encrypted(cipher), less))


def test_a_mac_has_rounds_of_its_own_or_those_of_pbmac1() -> None:
    pbmac1 = algorithm(f"{RSADSI}.5.14", pbkdf2(ENDLESS), element(SEQUENCE))

    assert 1 == rounds_of_pkcs12(store(mac=mac()))
    assert ENDLESS == rounds_of_pkcs12(store(mac=mac(number(ENDLESS))))
    assert ENDLESS == rounds_of_pkcs12(store(mac=mac(number(1), digest=pbmac1)))


def test_a_real_store_has_the_rounds_it_was_made_with(tmp_path: Path) -> None:
    data = real_store(1234)

    # Of the key and of the certificate; the MAC's do not depend on it.
    assert 2000 == rounds_of_pkcs12(real_store(2234)) - rounds_of_pkcs12(data)
    context, _ = server_context(settings(data, tmp_path))
    assert der_of(certificate()) == shown_by(context)


def test_a_store_of_indefinite_lengths_and_strings_in_pieces_is_read(tmp_path: Path) -> None:
    """As some programs write them, and OpenSSL reads them."""
    octets = element(OCTETS, element(SEQUENCE, encrypted(pbes2(pbkdf2(ENDLESS)))))
    half = len(octets) // 2
    pieces = [element(OCTETS, octets[6:half]), indefinite(0x24, element(OCTETS, octets[half:]))]
    content = indefinite(SEQUENCE, oid(DATA), indefinite(WRAPPED, indefinite(0x24, *pieces)))
    data = indefinite(SEQUENCE, number(3), content, indefinite(SEQUENCE, mac(number(7))[6:]))

    assert ENDLESS + 7 == rounds_of_pkcs12(data)
    with pytest.raises(ConfigError, match="too many iterations"):
        server_context(settings(data, tmp_path))


def test_a_pkcs12_store_of_too_many_rounds_is_refused_before_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "endless.p12"
    for data in (
        store(mac=mac(number(ENDLESS))),
        store(encrypted(pbes2(pbkdf2(KEY_ROUNDS_MAX // 2))), mac=mac(number(ENDLESS))),
        store(encrypted(pbes2(pbkdf2(2**99_999)))),
    ):
        path.write_bytes(data)
        with pytest.raises(
            ConfigError, match=r"ssl\.keystore\.location: .*at most 5000000 in total"
        ):
            server_context(TlsSettings("PKCS12", str(path), SECRET))
        with pytest.raises(ConfigError, match=r"ssl\.truststore\.location: .*endless.p12 requires"):
            read_trust_store(
                TlsSettings(
                    truststore_location=str(path),
                    truststore_type="PKCS12",
                    truststore_password=SECRET,
                )
            )


def test_a_pem_key_of_too_many_rounds_is_refused_before_it_is_decrypted(tmp_path: Path) -> None:
    text = pem.encrypted_pkcs8(real_key(ENDLESS)).decode()
    path = tmp_path / "endless.pem"
    path.write_bytes(text.encode() + b"\n" + chain())

    with pytest.raises(ConfigError, match=r"the key of .*endless.pem requires too many iterations"):
        server_context(TlsSettings("PEM", str(path), key_password=SECRET))
    in_settings = TlsSettings(
        "PEM",
        keystore_key=text,
        keystore_certificate_chain=chain().decode(),
        key_password=SECRET,
    )
    with pytest.raises(ConfigError, match=r"the key of ssl\.keystore\.key requires"):
        server_context(in_settings)


@pytest.mark.parametrize(
    "text", ["Proc-Type: 4,ENCRYPTED\nDEK-Info: x\n\nAAAA", "AAAA\n-x", "MAA="]
)
def test_an_encrypted_pem_key_that_cannot_be_looked_at_is_refused(text: str) -> None:
    key = f"-----BEGIN ENCRYPTED PRIVATE KEY-----\n{text}\n-----END ENCRYPTED PRIVATE KEY-----"
    with pytest.raises(
        ConfigError, match=r"the encrypted key of ssl\.keystore\.key cannot be read"
    ):
        server_context(
            TlsSettings("PEM", keystore_key=key, keystore_certificate_chain=chain().decode())
        )


def test_what_is_no_store_is_an_error_however_it_is_cut_or_nested() -> None:
    whole = store(bags(bag(SHROUDED_KEY, shrouded(CIPHERS[0](1)))), mac=mac(number(1)))
    for end in range(len(whole)):
        with pytest.raises(ValueError, match=UNREADABLE):
            rounds_of_pkcs12(whole[:end])
    assert 7 == rounds_of_pkcs12(nested(8))
    for data in (
        nested(9),
        store(encrypted(algorithm("1.2.3", SALT, number(1)))),
        store(encrypted(pbes2(algorithm("1.2.3", SALT, number(1))))),
        b"\x3f\x81\x01\0",
        indefinite(SEQUENCE)[:-1],
    ):
        with pytest.raises(ValueError, match=UNREADABLE):
            rounds_of_pkcs12(data)


@pytest.mark.parametrize("piece", [b"\x30\x80", b"\x24\x80", b"\x05\x00", b"\x30\x00", b"\0\0"])
def test_megabytes_of_beginnings_are_looked_through_a_few_times(piece: bytes) -> None:
    """With a search from each of them to the end this test would take hours."""
    many = piece * (STORE_BYTES_MAX // 4 // len(piece))
    for data in (many, element(SEQUENCE, many), store(many), store(bags(many))):
        with contextlib.suppress(ValueError):
            assert 0 == rounds_of_pkcs12(data)
