"""TLS settings: stores in every form, and what is refused."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest
from cryptography.hazmat.primitives.asymmetric import dsa
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509 import load_pem_x509_certificate, load_pem_x509_certificates

import trionet.net.tls._tls_context as module
from support.tls import (
    TlsClient,
    authority,
    certificate,
    context_for,
    der_of,
    settings_for,
    shake_hands,
    shown_by,
    write_pem,
    write_trust,
)
from support.wire import LOOPBACK, tcp_pair
from trionet.broker.config._broker_config import BrokerConfig
from trionet.errors import AuthenticationError, ConfigError
from trionet.net.tls._key_stores import STORE_BYTES_MAX, read_trust_store
from trionet.net.tls._tls_context import TlsContexts, TlsSettings, server_context
from trionet.net.tls._tls_transport import TlsTransport

SECRET = "open sesame"


def encrypted_key() -> str:
    key = load_pem_private_key(certificate().private_key_pem.bytes(), None)
    encryption = BestAvailableEncryption(SECRET.encode())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()


def chain() -> str:
    return b"".join(pem.bytes() for pem in certificate().cert_chain_pems).decode()


def write_pkcs12(path: Path, password: str | None = SECRET) -> str:
    key = load_pem_private_key(certificate().private_key_pem.bytes(), None)
    assert isinstance(key, EllipticCurvePrivateKey)
    first, *others = load_pem_x509_certificates(chain().encode())
    how = BestAvailableEncryption(password.encode()) if password else NoEncryption()
    path.write_bytes(pkcs12.serialize_key_and_certificates(b"broker", key, first, others, how))
    return str(path)


def write_trusted_pkcs12(path: Path) -> str:
    trusted = load_pem_x509_certificate(authority().cert_pem.bytes())
    path.write_bytes(
        pkcs12.serialize_key_and_certificates(
            None, None, None, [trusted], BestAvailableEncryption(SECRET.encode())
        )
    )
    return str(path)


def forms(folder: Path) -> dict[str, TlsSettings]:
    """One key in all the forms that are allowed."""
    clear = certificate().private_key_pem.bytes().decode()
    file = folder / "encrypted.pem"
    file.write_text(encrypted_key() + chain())
    return {
        "PEM file": TlsSettings("PEM", write_pem(folder / "clear.pem", certificate())),
        "PEM file with a key password": TlsSettings("PEM", str(file), key_password=SECRET),
        "PEM text": TlsSettings("PEM", keystore_key=clear, keystore_certificate_chain=chain()),
        "PEM text with a key password": TlsSettings(
            "PEM",
            keystore_key=encrypted_key(),
            keystore_certificate_chain=chain(),
            key_password=SECRET,
        ),
        "PKCS12": TlsSettings("PKCS12", write_pkcs12(folder / "a.p12"), SECRET),
        "PKCS12 by the name of JKS": TlsSettings(
            "JKS", write_pkcs12(folder / "a.jks"), SECRET, key_password=SECRET
        ),
        "PKCS12 without a password": TlsSettings("PKCS12", write_pkcs12(folder / "b.p12", None)),
    }


@pytest.mark.parametrize("has_memfd", [True, False])
@pytest.mark.parametrize("number", range(7))
def test_a_key_is_read_from_every_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, has_memfd: bool
) -> None:
    """T8: PEM stores with or without a key password, and PKCS12."""
    settings = list(forms(tmp_path).values())[number]
    monkeypatch.setattr(module, "_HAS_MEMFD", has_memfd)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = set(os.listdir(tmp_path))

    context, material = server_context(settings)

    assert der_of(certificate()) == shown_by(context)
    assert "CN=broker,OU=tests,O=trionet" == material.subject
    assert before == set(os.listdir(tmp_path))


def test_a_key_that_must_be_written_down_is_for_its_owner_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_HAS_MEMFD", False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    with module._private_file(b"secret") as path:
        assert 0o600 == stat.S_IMODE(os.stat(path).st_mode)
        assert b"secret" == Path(path).read_bytes()

    assert [] == os.listdir(tmp_path)


def test_keys_of_other_kinds_work_or_are_refused(tmp_path: Path) -> None:
    """T8: an RSA key works as an EC key does; DSA is not spoken any more."""
    from trustme import KeyType

    leaf = authority().issue_cert(LOOPBACK, key_type=KeyType.RSA)
    context, _ = server_context(TlsSettings("PEM", write_pem(tmp_path / "rsa.pem", leaf)))
    assert der_of(leaf) == shown_by(context)

    key = dsa.generate_private_key(2048).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )
    with pytest.raises(ConfigError, match="does not match the first certificate"):
        server_context(
            TlsSettings("PEM", keystore_key=key.decode(), keystore_certificate_chain=chain())
        )


def test_a_store_above_the_limit_is_refused_in_every_form(tmp_path: Path) -> None:
    folder = tmp_path / "trust"
    folder.mkdir()
    for name in ("ca", "x"):
        write_trust(folder / f"{name}.pem", name)
    pem = write_pem(tmp_path / "broker.pem", certificate())
    trust = write_trust(tmp_path / "trust.pem", "ca", "x")
    sizes = [len(authority(name).cert_pem.bytes()) for name in ("ca", "x")]
    small = TlsSettings("PEM", pem, truststore_type="PEM", store_bytes_max=max(sizes))
    roomy = attrs.evolve(small, store_bytes_max=100_000)

    with pytest.raises(ConfigError, match=r"ssl.keystore.location: .*\(ssl.store.max.bytes\)"):
        server_context(small)
    small = attrs.evolve(small, keystore_location=None, keystore_key="x" * 100_000)
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.key has 100000 characters"):
        server_context(small)
    for location in (trust, str(folder)):
        context, _ = server_context(attrs.evolve(roomy, truststore_location=location))
        assert 2 == len(context.get_ca_certs())
        with pytest.raises(ConfigError, match=r"ssl.truststore.location: .*ssl.store.max.bytes"):
            read_trust_store(attrs.evolve(small, truststore_location=location))


@pytest.mark.parametrize("kind", ["PEM file", "PEM folder", "PEM text", "PKCS12"])
def test_a_trust_store_is_read_from_every_form(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "trust"
    folder.mkdir()
    write_trust(folder / "ca.pem", "ca")
    write_trust(folder / "x.pem", "x")
    (folder / "0123abcd.0").symlink_to("ca.pem")  # as OpenSSL's rehash makes them
    (folder / "more").mkdir()
    given = {
        "PEM file": {
            "truststore_location": write_trust(tmp_path / "trust.pem", "x", "ca"),
            "truststore_certificates": None,
        },
        "PEM folder": {"truststore_location": str(folder), "truststore_certificates": None},
        "PEM text": {},
        "PKCS12": {
            "truststore_type": "PKCS12",
            "truststore_location": write_trusted_pkcs12(tmp_path / "trust.p12"),
            "truststore_password": SECRET,
            "truststore_certificates": None,
        },
    }[kind]
    settings = attrs.evolve(settings_for(client_auth="required"), **given)  # type: ignore[arg-type]
    context, _ = server_context(settings)

    assert shown_by(context, certificate("client"))
    with pytest.raises(AuthenticationError):
        shown_by(context, certificate("client", ca="stranger"))


@pytest.mark.parametrize("is_own", [False, True])
def test_an_intermediate_and_a_clients_own_certificate_can_be_trusted(is_own: bool) -> None:
    """As by Java; certificates of the same root beside them stay out."""
    intermediate = authority("partial").create_child_ca()
    leaf = intermediate.issue_cert("client")
    trusted = leaf.cert_chain_pems[0] if is_own else intermediate.cert_pem
    context = context_for(client_auth="required", truststore_certificates=trusted.bytes().decode())

    assert der_of(certificate()) == shown_by(context, leaf)
    root = authority("partial")
    for stranger in (root.issue_cert("x"), root.create_child_ca().issue_cert("x")):
        with pytest.raises(AuthenticationError, match="issuer certificate"):
            shown_by(context, stranger)


def test_without_a_trust_store_the_systems_own_is_used() -> None:
    context, _ = server_context(settings_for(truststore_certificates=None, client_auth="required"))

    with pytest.raises(AuthenticationError):
        shown_by(context, certificate("client"))


BAD_CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"
Refused = dict[str, tuple[dict[str, Any], str]]


def refused_pem(tmp_path: Path) -> Refused:
    """What makes our settings useless, and a part of the error: keystores in PEM."""
    text = {"keystore_type": "PEM", "keystore_key": encrypted_key()}
    file = {
        "keystore_key": None,
        "keystore_certificate_chain": None,
        "keystore_location": write_pem(tmp_path / "a.pem", certificate()),
    }
    other = certificate("other").cert_chain_pems[0].bytes().decode()
    return {
        "no key": ({**file, "keystore_location": None}, "needs a certificate"),
        "wrong key password": ({**text, "key_password": "x"}, "wrong ssl.key.password"),
        "no key password": (text, "is encrypted; set ssl.key.password"),
        "a key alone": ({"keystore_certificate_chain": None}, "must be set together"),
        "text of another type": ({"keystore_type": "PKCS12"}, "must be set together"),
        "no key in the text": ({"keystore_key": "x"}, "no private key"),
        "no certificate": ({"keystore_certificate_chain": "x"}, "no certificate"),
        "a bad certificate": ({"keystore_certificate_chain": BAD_CERTIFICATE}, "cannot be read"),
        "another certificate": ({"keystore_certificate_chain": other}, "does not match the first"),
        "a store password": ({**file, "keystore_password": "x"}, "not allowed"),
        "no file": ({**file, "keystore_location": str(tmp_path / "none")}, "cannot read"),
        "an unknown type": ({"keystore_type": "BCFKS"}, "PEM, PKCS12, JKS"),
        "another type": ({**file, "keystore_type": "JKS"}, "is PEM"),
    }


def refused_pkcs12(tmp_path: Path) -> Refused:
    """Keystores that are not PEM."""
    java = tmp_path / "java.jks"
    java.write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    file = {
        "keystore_key": None,
        "keystore_certificate_chain": None,
        "keystore_type": "PKCS12",
        "keystore_location": write_pkcs12(tmp_path / "a.p12"),
        "keystore_password": SECRET,
    }
    trusted = write_trusted_pkcs12(tmp_path / "trust.p12")
    return {
        "Java's own format": ({**file, "keystore_location": str(java)}, "keytool -importkeystore"),
        "wrong password": ({**file, "keystore_password": "x"}, "wrong ssl.keystore.password"),
        "no password": ({**file, "keystore_password": None}, "no ssl.keystore.password is set"),
        "two passwords": ({**file, "key_password": "x"}, "one password"),
        "no key": ({**file, "keystore_location": trusted}, "no private key"),
    }


def refused_trust(tmp_path: Path) -> Refused:
    """Truststores."""
    java = tmp_path / "java.jks"
    java.write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "readme").write_bytes(b"nothing")
    garbage = tmp_path / "garbage"
    garbage.write_bytes(b"garbage")
    cut = tmp_path / "cut.pem"
    cut.write_bytes(Path(write_trust(cut, "ca", "x")).read_bytes()[:-40])
    file = {"truststore_certificates": None, "truststore_location": str(garbage)}
    bad = {"truststore_certificates": BAD_CERTIFICATE}
    return {
        "garbage": (file, "no certificate"),
        "a folder without any": ({**file, "truststore_location": str(folder)}, "no file in"),
        "Java's own format": ({**file, "truststore_location": str(java)}, "openssl pkcs12"),
        "garbage as PKCS12": (
            {**file, "truststore_type": "PKCS12"},
            "no ssl.truststore.password is set",
        ),
        "a file that is cut off": (
            {**file, "truststore_location": str(cut)},
            "cut.pem contains the beginning of a certificate in PEM format without its end",
        ),
        "a text that is cut off": (
            {"truststore_certificates": cut.read_text()},
            "ssl.truststore.certificates contains the beginning",
        ),
        "a password for PEM": ({**file, "truststore_password": "x"}, "not allowed"),
        "a bad certificate": (bad, "no readable certificates"),
        "two stores": ({**bad, "truststore_location": "x"}, "requires ssl.truststore.type=PEM"),
    }


def refused_protocols(_: Path) -> Refused:
    """Versions, suites and client authentication."""
    old = {"enabled_protocols": ("TLSv1.1",)}
    one_of_1_3 = {"cipher_suites": ("TLS_AES_128_GCM_SHA256",)}
    of_1_2 = {
        "cipher_suites": ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",),
        "enabled_protocols": ("TLSv1.3",),
    }
    return {
        "client auth": ({"client_auth": "maybe"}, "none, requested, required"),
        "an old version": (old, "older versions are not safe"),
        "no version": ({"enabled_protocols": ()}, "TLSv1.2, TLSv1.3"),
        "an unknown suite": ({"cipher_suites": ("TLS_NULL",)}, "not a supported cipher suite"),
        "a choice among the suites of 1.3": (one_of_1_3, "cannot select"),
        "suites of another version": (of_1_2, "at least one suite of a version"),
    }


@pytest.mark.parametrize("refused", [refused_pem, refused_pkcs12, refused_trust, refused_protocols])
def test_what_cannot_work_is_a_configuration_error(
    tmp_path: Path, refused: Callable[[Path], Refused]
) -> None:
    """T9: wrong passwords and stores are configuration errors, which tell no secret."""
    for case, (changes, message) in refused(tmp_path).items():
        with pytest.raises(ConfigError) as caught:
            server_context(settings_for(**changes))

        shown = str(caught.value)
        assert message in shown, case
        assert SECRET not in shown, case
        assert "PRIVATE" not in shown, case


@pytest.mark.parametrize(
    ("begin", "end", "doubt"),
    [
        (-90, -1, "expired on 2030-05-31 12:00 UTC; clients reject it"),
        (1, 90, "is not valid before 2030-06-02 12:00 UTC"),
        (-90, 13, "expires on 2030-06-14 12:00 UTC"),
        (-90, 15, ""),
    ],
)
def test_a_certificate_that_clients_refuse_or_soon_will_is_reported(
    begin: int, end: int, doubt: str
) -> None:
    now = datetime(2030, 6, 1, 12, tzinfo=UTC)
    leaf = authority().issue_cert(
        LOOPBACK, not_before=now + timedelta(days=begin), not_after=now + timedelta(days=end)
    )
    pem = leaf.private_key_and_cert_chain_pem.bytes().decode()

    contexts = TlsContexts(settings_for(keystore_key=pem, keystore_certificate_chain=pem))

    source = "the certificate in ssl.keystore.key "
    assert (source + doubt if doubt else "") == contexts.doubt(now)


def test_settings_and_keys_do_not_show_in_a_repr(tmp_path: Path) -> None:
    settings = forms(tmp_path)["PEM text with a key password"]
    _, material = server_context(settings)

    shown = repr(settings) + repr(material)

    assert SECRET not in shown
    assert "PRIVATE" not in shown


@pytest.mark.parametrize(
    ("suites", "expected"),
    [
        (("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",), "ECDHE-ECDSA-AES256-GCM-SHA384"),
        (module._SUITES_1_3, "TLS_AES_256_GCM_SHA384"),
    ],
)
def test_cipher_suites_are_named_as_java_names_them(suites: tuple[str, ...], expected: str) -> None:
    near, far = tcp_pair()
    with near, far:
        context, _ = server_context(settings_for(cipher_suites=suites))
        transport = TlsTransport(near, context)
        shake_hands(transport, TlsClient(far))

    assert expected == transport.cipher[0]


def test_the_limit_of_stores_is_the_brokers_setting() -> None:
    assert STORE_BYTES_MAX == BrokerConfig({}).integer("ssl.store.max.bytes")
    assert STORE_BYTES_MAX == TlsSettings().store_bytes_max
