"""No bytes break it, and none reach a terminal as they are (`decoded` looks at every line)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.calls import batch
from support.decoding import decoded, framed
from trionet.cli.decode._conversation import Expected
from trionet.cli.decode._output import truncate
from trionet.cli.decode._sources import Kind
from trionet.protocol.messages.registry import APIS

FRAMES = [
    framed_bytes
    for name in ("confluent-kafka", "kafka-python")
    for data in [(Path(__file__).parent / f"frames/{name}.bin").read_bytes()]
    for found in decoded(data)
    for framed_bytes in [data[found["offset"] : found["offset"] + found["size"]]]
]
BATCHES = [batch(b"one", b"two", codec=codec) for codec in range(5)]


@st.composite
def bent(draw: st.DrawFn, samples: list[bytes]) -> bytes:
    """A sample with some bytes changed, added or cut off."""
    data = bytearray(draw(st.sampled_from(samples)))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data) - 1))
        data[at] = draw(st.sampled_from([0, 1, 2, 127, 128, 255]) | st.integers(0, 255))
    end = draw(st.none() | st.integers(1, len(data)))
    return bytes(data[:end]) + draw(st.binary(max_size=5))


@pytest.mark.slow
@given(data=st.binary(max_size=300), kind=st.none() | st.sampled_from(Kind))
def test_any_bytes_are_shown(data: bytes, kind: Kind | None) -> None:
    decoded(data, kind=kind)


@pytest.mark.slow
@given(data=bent(FRAMES))
def test_bent_frames_are_shown(data: bytes) -> None:
    decoded(data, kind=Kind.FRAMES)


@pytest.mark.slow
@given(data=bent(BATCHES))
def test_bent_batches_are_shown(data: bytes) -> None:
    decoded(data, kind=Kind.BATCHES)


@pytest.mark.slow
@given(data=st.binary(max_size=60) | bent(FRAMES), key=st.sampled_from(sorted(APIS)))
@settings(max_examples=40)
def test_any_bytes_are_shown_as_any_response(data: bytes, key: int) -> None:
    decoded(framed(data), expected=Expected(key, None), kind=Kind.FRAMES)


@given(st.text(min_size=1), st.integers(1, 20))
def test_what_is_cut_does_not_end_inside_a_character(text: str, limit: int) -> None:
    data = text.encode(errors="ignore")
    limit = max(limit, 4)

    shown = truncate(data, limit)

    assert len(shown) <= limit
    assert data.startswith(shown)
    shown.decode()
