"""Blocks of PEM in whatever the data are."""

from __future__ import annotations

import pytest

from support.tls import authority, certificate
from trionet.net.tls import _certificate as pem


def block(label: str, text: str = "AAAA") -> bytes:
    return f"-----BEGIN {label}-----\n{text}\n-----END {label}-----".encode()


def test_certificates_and_the_first_key_are_found_among_other_text() -> None:
    one, two = (authority(name).cert_pem.bytes().strip() for name in ("ca", "other"))
    key = certificate().private_key_pem.bytes().strip()
    data = b"Bag Attributes\n" + one + b"\n-----\n" + key + b"# comment\n" + two + block("EC KEY")

    assert [one, two] == pem.certificates(data)
    assert key == pem.private_key(data)
    assert pem.private_key(one) is None


def test_a_block_ends_with_the_label_it_began_with() -> None:
    assert [] == list(pem.blocks(b"-----BEGIN A-----\nAAAA\n-----END B-----"))
    assert [] == list(pem.blocks(b"-----END A-----\n-----BEGIN A-----"))
    # An end without a beginning does not hide what comes after it.
    data = b"-----END -----BEGIN x" + block("A") + b"-----BEGIN A-----" + block("B")
    assert [(b"A", block("A")), (b"B", block("B"))] == list(pem.blocks(data))


def test_a_certificate_that_is_cut_off_anywhere_is_noticed() -> None:
    one, two = (authority(name).cert_pem.bytes().strip() for name in ("ca", "other"))
    data = one + b"\n" + two

    cut = {size for size in range(len(one), len(data)) if pem.is_cut_off(data[:size])}

    # Where one has ended, no file of PEM can tell that another followed.
    assert cut == set(range(len(one) + len("\n-----B"), len(data)))
    assert not pem.is_cut_off(data)
    assert not pem.is_cut_off(data + b"\n")
    assert pem.is_cut_off(one[:-5] + b"\n" + two)
    assert not pem.is_cut_off(b"-- comment\n" + block("EC KEY") + one + b"\n--")


def test_a_block_without_headers_is_read_and_written() -> None:
    data = bytes(range(100))
    text = pem.encrypted_pkcs8(data)

    assert data == pem.content(text)
    assert text.startswith(b"-----BEGIN ENCRYPTED PRIVATE KEY-----\n")
    assert text == pem.private_key(text)
    for bad in ("Proc-Type: 4,ENCRYPTED\n\nAAAA", "AAAA\n-x", "A"):
        with pytest.raises(ValueError, match="base64"):
            pem.content(block("ENCRYPTED PRIVATE KEY", bad))


@pytest.mark.slow
def test_megabytes_of_beginnings_and_ends_are_looked_through_once() -> None:
    """With a search from each of them to the end this test would take hours."""
    for text in (
        b"-----BEGIN CERTIFICATE-----\n",
        b"-----BEGIN RSA PRIVATE KEY-----",
        b"-----BEGIN ",
        b"-----END ",
        b"-----END CERTIFICATE-----",
        b"-",
    ):
        data = text * (4 * 1024 * 1024 // len(text))
        assert [] == pem.certificates(data)
        assert pem.private_key(data) is None


def test_a_key_is_encrypted_in_either_form() -> None:
    old = block("RSA PRIVATE KEY", "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA")

    assert pem.is_encrypted(old)
    assert pem.is_encrypted(block("ENCRYPTED PRIVATE KEY"))
    assert not pem.is_encrypted(block("PRIVATE KEY"))
