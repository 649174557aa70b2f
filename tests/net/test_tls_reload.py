"""Certificates that are replaced while connections live: new files, and other settings."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

import trionet.net.tls._tls_context as module
from support.tls import (
    TlsClient,
    authority,
    certificate,
    der_of,
    settings_for,
    shake_hands,
    shown_by,
    write_pem,
    write_trust,
)
from support.wire import LOOPBACK, tcp_pair
from trionet.errors import AuthenticationError, ConfigError
from trionet.net.tls._tls_context import TlsContexts, TlsSettings, server_context
from trionet.net.tls._tls_transport import TlsTransport


def replace(path: Path, content: bytes) -> None:
    """Put a new file in the place of the old one, as tools that renew certificates do."""
    new = path.with_suffix(".new")
    new.write_bytes(content)
    new.replace(path)


def pem(*names: str, common_name: str = "broker") -> bytes:
    leaf = authority().issue_cert(
        *(names or (LOOPBACK, "localhost")),
        common_name=common_name,
        organization_name="trionet",
        organization_unit_name="tests",
    )
    return leaf.private_key_and_cert_chain_pem.bytes()


def test_a_new_key_store_is_for_new_connections_and_old_ones_live_on(tmp_path: Path) -> None:
    """T20: new connections see the new certificate, old ones go on."""
    path = tmp_path / "broker.pem"
    write_pem(path, certificate())
    contexts = TlsContexts(TlsSettings("PEM", str(path)))
    near, far = tcp_pair()
    with near, far:
        transport, client = TlsTransport(near, contexts.context), TlsClient(far)
        shake_hands(transport, client)
        assert not contexts.reload_if_changed()

        replace(path, pem())

        assert contexts.reload_if_changed()
        assert der_of(certificate()) != shown_by(contexts.context)
        client.send(b"still here")
        assert b"still here" == transport.read(100)
    assert not contexts.reload_if_changed()


@pytest.mark.parametrize(
    ("names", "common_name", "setting"),
    [
        ((), "other", "allow_dn_changes"),
        (("localhost",), "broker", "allow_san_changes"),
    ],
)
def test_other_names_in_a_new_certificate_are_refused_unless_allowed(
    tmp_path: Path, names: tuple[str, ...], common_name: str, setting: str
) -> None:
    """T20: a changed name is refused, and the old certificate stays, unless changes are allowed."""
    path = tmp_path / "broker.pem"
    write_pem(path, certificate())
    settings = TlsSettings("PEM", str(path))
    contexts = TlsContexts(settings)
    lenient = TlsContexts(attrs.evolve(settings, **{setting: True}))  # type: ignore[arg-type]
    replace(path, pem(*names, common_name=common_name))

    with pytest.raises(ConfigError, match=r"ssl\.allow\."):
        contexts.reload_if_changed()
    assert not contexts.reload_if_changed()
    assert der_of(certificate()) == shown_by(contexts.context)
    assert lenient.reload_if_changed()


def test_more_names_in_a_new_certificate_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "broker.pem"
    write_pem(path, certificate())
    contexts = TlsContexts(TlsSettings("PEM", str(path)))

    replace(path, pem(LOOPBACK, "localhost", "more.example"))

    assert contexts.reload_if_changed()


def test_a_new_trust_store_changes_who_is_accepted_and_a_bad_one_does_not(tmp_path: Path) -> None:
    """T21: a new truststore decides about new clients; a bad one is refused, and the old stays."""
    path = tmp_path / "trust.pem"
    write_trust(path, "ca")
    contexts = TlsContexts(
        settings_for(
            truststore_certificates=None, truststore_location=str(path), client_auth="required"
        )
    )
    shown_by(contexts.context, certificate("client"))

    replace(path, b"garbage")
    with pytest.raises(ConfigError, match="no certificate"):
        contexts.reload_if_changed()
    shown_by(contexts.context, certificate("client"))

    write_trust(path, "stranger")
    assert contexts.reload_if_changed()
    shown_by(contexts.context, certificate("client", ca="stranger"))
    with pytest.raises(AuthenticationError):
        shown_by(contexts.context, certificate("client"))


def test_a_file_that_is_gone_for_a_moment_is_an_error_and_then_read(tmp_path: Path) -> None:
    path = tmp_path / "broker.pem"
    write_pem(path, certificate())
    contexts = TlsContexts(TlsSettings("PEM", str(path)))
    path.unlink()
    with pytest.raises(ConfigError, match="cannot read"):
        contexts.reload_if_changed()

    path.write_bytes(pem())

    assert contexts.reload_if_changed()


# Other settings.


def test_other_settings_are_prepared_first_and_count_when_they_are_used(tmp_path: Path) -> None:
    first, second = tmp_path / "first.pem", tmp_path / "second.pem"
    write_pem(first, certificate())
    contexts = TlsContexts(TlsSettings("PEM", str(first)))
    second.write_bytes(pem())

    new = contexts.prepare(TlsSettings("PEM", str(second)))
    assert der_of(certificate()) == shown_by(contexts.context)

    contexts.use(new)
    assert der_of(certificate()) != shown_by(contexts.context)
    assert (str(second),) == contexts.settings.files
    assert not contexts.reload_if_changed()
    replace(second, pem())
    assert contexts.reload_if_changed()


def test_other_settings_with_another_subject_are_refused(tmp_path: Path) -> None:
    first, second = tmp_path / "first.pem", tmp_path / "second.pem"
    write_pem(first, certificate())
    contexts = TlsContexts(TlsSettings("PEM", str(first)))
    second.write_bytes(pem(common_name="somebody else"))

    with pytest.raises(ConfigError, match=r"ssl\.allow\.dn\.changes"):
        contexts.prepare(TlsSettings("PEM", str(second)))

    assert der_of(certificate()) == shown_by(contexts.context)


def test_a_reload_that_other_settings_overtake_does_not_undo_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reload reads files in a thread; meanwhile the loop takes over other settings."""
    first, second = tmp_path / "first.pem", tmp_path / "second.pem"
    write_pem(first, certificate())
    contexts = TlsContexts(TlsSettings("PEM", str(first)))
    second.write_bytes(pem())
    new = contexts.prepare(TlsSettings("PEM", str(second)))
    replace(first, pem())

    def read_and_be_overtaken(settings: TlsSettings) -> object:
        made = server_context(settings)
        contexts.use(new)
        return made

    monkeypatch.setattr(module, "server_context", read_and_be_overtaken)

    assert not contexts.reload_if_changed()
    assert new.context is contexts.context
