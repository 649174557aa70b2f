"""Kept inputs, once more through what they were made for; and what they would notice."""

from __future__ import annotations

import hmac
import sys
from collections.abc import Callable
from struct import Struct
from typing import Any

import pytest

from fuzz.corpus import KEPT_MAX, SEEDS, seeds_of
from fuzz.target import NAMES, load, watched
from trionet.broker.config import _properties as properties
from trionet.broker.security._sasl_exchange import SaslExchange
from trionet.cli.decode import _output as output
from trionet.net import _principal as principal
from trionet.net._channel import Channel
from trionet.net.sasl import _jaas as jaas
from trionet.net.sasl import _jwt as jwt_validation
from trionet.net.sasl._oauthbearer import Token
from trionet.net.sasl._plain import PlainServer
from trionet.net.tls import _certificate as certificate
from trionet.net.tls import _tls_transport as tls
from trionet.net.wire import _framing as framing
from trionet.net.wire import _head_decoder as head_decoder
from trionet.server.metrics._http_exchange import HttpExchange

BYTES_MAX = 2048
NAMED_MAX = 20

#: What is done wrong to see that a target notices: who has it, its name, and what is wrong instead.
FAULTS: dict[str, tuple[object, str, Callable[..., Any] | int]] = {
    "certificate": (certificate, "_dotted", lambda _: "\0"),
    "channel": (Channel, "take_staged", lambda _: None),
    "decode": (output, "quoted", str),
    "dialects": (head_decoder, "HEAD_BYTES_MAX", 4),
    "framing": (framing, "_unpack_size", Struct(">I").unpack_from),
    "http_exchange": (
        HttpExchange,
        "receive",
        lambda self, data: self._connection.receive_data(data[1:]),
    ),
    "jaas": (jaas, "_unescape", lambda found: found[0]),
    "jwks": (jwt_validation.SignedTokens, "__call__", lambda *_: None),
    "oauthbearer": (jwt_validation, "_token", lambda *_: Token("mallory", 2**50)),
    "plain": (PlainServer, "_is_valid", lambda *_: True),
    "principal_mapping": (principal, "_group", lambda _, slots, number: slots[number + 99]),
    "properties": (properties, "_unescape", lambda text, _: text),
    "sasl_exchange": (SaslExchange, "_begin_again", lambda *_: None),
    "scram": (hmac, "compare_digest", lambda *_: True),
    "tls_records": (tls, "describe", str),
}

every_target = pytest.mark.parametrize("name", NAMES)


@every_target
def test_no_kept_input_breaks_anything(name: str) -> None:
    target = load(name)

    for path in seeds_of(name):
        target.run(path.read_bytes())


@every_target
def test_what_is_done_wrong_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, attribute, wrong = FAULTS[name]
    target = load(name)
    monkeypatch.setattr(owner, attribute, wrong)

    assert any(_breaks(target.run, path.read_bytes()) for path in seeds_of(name))


def _breaks(run: Callable[[bytes], None], data: bytes) -> bool:
    try:
        run(data)
    except Exception:  # boundary: a target says so by whatever it raises
        return True
    return False


@every_target
def test_what_is_watched_is_there_and_imported(name: str) -> None:
    load(name)

    assert watched(name)
    assert {*watched(name)} <= sys.modules.keys()


@every_target
def test_kept_inputs_are_few_and_small(name: str) -> None:
    sizes = [path.stat().st_size for path in seeds_of(name)]

    assert 1 <= len(sizes) <= KEPT_MAX + NAMED_MAX
    assert max(sizes) <= BYTES_MAX


def test_every_target_has_kept_inputs_and_no_other() -> None:
    assert [*NAMES] == sorted(path.name for path in SEEDS.iterdir() if path.is_dir())
