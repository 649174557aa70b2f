"""Properties that the targets check, with inputs that get further than garbage does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.issuer import CLAIMS, HEADER, NOW
from fuzz.script import SEPARATOR
from fuzz.target import NAMES, load
from fuzz.targets import dialects, sasl_exchange, tls_records

payload_lists = st.lists(st.binary(max_size=80), max_size=6)
cuts = st.binary(max_size=7)
bytes_of_a_number = st.integers(0, 255)


def cut(sizes: bytes, stream: bytes) -> bytes:
    """A stream and how it is cut, as targets read it."""
    return bytes((len(sizes),)) + sizes + stream


@pytest.mark.parametrize("name", NAMES)
@given(st.data())
@settings(max_examples=30)
def test_whatever_words_an_input_is_made_of_nothing_breaks(name: str, data: st.DataObject) -> None:
    target = load(name)
    words = st.sampled_from(target.words) | st.binary(max_size=8)

    target.run(b"".join(data.draw(st.lists(words, max_size=20))))


@pytest.mark.parametrize("name", ["framing", "channel"])
@given(bytes_of_a_number, payload_lists, cuts, st.binary(max_size=6))
def test_frames_are_the_same_in_whatever_pieces_they_come(
    name: str, options: int, payloads: list[bytes], sizes: bytes, rest: bytes
) -> None:
    stream = b"".join(len(payload).to_bytes(4, "big") + payload for payload in payloads)

    load(name).run(bytes((options,)) + cut(sizes, stream + rest))


@given(bytes_of_a_number, payload_lists, cuts, st.binary(max_size=6))
def test_frames_of_other_protocols_are_so_too(
    options: int, payloads: list[bytes], sizes: bytes, rest: bytes
) -> None:
    _, write_head, tail = dialects.FORMS[options % len(dialects.FORMS)]
    stream = b"".join(write_head(len(payload)) + payload + tail for payload in payloads)

    dialects.run(bytes((options,)) + cut(sizes, stream + rest))


SCRAM_PARTS = st.sampled_from(
    ["n", "y", "n,", "n=alice", "n=nobody", "r=own", "r=", "a=bob", "x=1", "m=1", "n=a=2Cb", "p="]
) | st.text(max_size=6)
SCRAM_FINAL_PARTS = st.sampled_from(["c=biws", "c=eSws", "r=%N", "r=%C%N", "r=x", "x=1", "c=!"])


@given(
    st.integers(0, 1),
    st.lists(SCRAM_PARTS, max_size=5) | st.just(["n", "", "n=alice", "r=own"]),
    st.lists(SCRAM_FINAL_PARTS, max_size=4) | st.just(["c=biws", "r=%N"]),
    st.sampled_from(["p=%P", "p=AAAA", "p=", ""]),
)
def test_scram_lets_in_who_has_proved_to_know_the_password(
    mechanism: int, first: list[str], final: list[str], proof: str
) -> None:
    messages = [",".join(parts).encode("utf-8", "replace") for parts in (first, [*final, proof])]

    load("scram").run(bytes((mechanism,)) + SEPARATOR.join(messages))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)
times = st.integers(NOW - 100, NOW + 100) | st.floats(NOW - 100, NOW + 100)


def changes(values: dict[str, list[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Some of these members, with one of these values or any."""
    return st.fixed_dictionaries(
        {}, optional={key: st.sampled_from(those) | json_values for key, those in values.items()}
    )


@given(
    bytes_of_a_number,
    st.sampled_from([b"", b"a=alice", b"a=bob"]),
    changes({"alg": ["none", "RS256"], "kid": ["ed"], "crit": [["b64"]], "b64": [False]}),
    changes({"sub": ["alice", "\ud800"], "iss": ["i"], "aud": ["a", ["b"]], "scope": ["read"]}),
    st.fixed_dictionaries({}, optional=dict.fromkeys(("exp", "iat", "nbf"), times)),
)
def test_tokens_let_in_whom_their_issuer_names(
    options: int,
    authorization_id: bytes,
    header: dict[str, Any],
    claims: dict[str, Any],
    other_times: dict[str, float],
) -> None:
    texts = [{**json.loads(HEADER), **header}, {**json.loads(CLAIMS), **claims, **other_times}]
    parts = [authorization_id, *(json.dumps(text).encode() for text in texts)]

    load("oauthbearer").run(bytes((options,)) + SEPARATOR.join(parts))


exchange_steps = st.tuples(
    st.integers(0, len(sasl_exchange.STEPS) - 1), st.binary(max_size=3) | st.binary(max_size=40)
)


@given(st.lists(exchange_steps, max_size=20))
def test_in_whatever_order_frames_come_no_client_gets_in_without_a_secret(
    steps: list[tuple[int, bytes]],
) -> None:
    written = b"".join(bytes((kind, len(argument))) + argument for kind, argument in steps)

    sasl_exchange.run(written)


record_steps = st.tuples(
    st.integers(0, len(tls_records.STEPS) - 1),
    st.integers(0, 9) | bytes_of_a_number,
    bytes_of_a_number,
)


@given(bytes_of_a_number, st.lists(record_steps, max_size=12))
@settings(max_examples=60)
def test_whatever_happens_to_records_the_server_reads_what_was_written_or_less(
    options: int, steps: list[tuple[int, int, int]]
) -> None:
    both_shake_hands = bytes((0, 7, 0)) * 2 * (options % 3 > 0)

    tls_records.run(bytes((options,)) + both_shake_hands + b"".join(map(bytes, steps)))
