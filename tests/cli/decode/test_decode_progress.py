"""What is shown of a frame that is cut short or malformed."""

from __future__ import annotations

import pytest

from support.calls import fetch_request
from support.decoding import decoded, framed, only, request
from trionet.cli.decode._sources import Kind
from trionet.protocol.api_keys import FETCH

ASKED = request(fetch_request({"orders": {0: 5, 1: 6}}), FETCH, 12)


def test_a_cut_frame_is_shown_as_far_as_it_goes() -> None:
    cut = framed(ASKED)[: -(len(ASKED) - ASKED.index(b"orders") - 6 - 1 - 33 - 4)]
    found = only(decoded(cut))

    [topic] = found["body"]["topics"]
    assert "orders" == topic["topic"]
    assert [{"partition": 0, "fetch_offset": 5}] == [
        {name: each[name] for name in ("partition", "fetch_offset")}
        for each in topic["partitions"]
        if each
    ]
    missing = len(framed(ASKED)) - len(cut)
    assert found["problem"]["text"].startswith(
        f"truncated: {missing} of {len(ASKED)} bytes are missing; FetchRequest: "
    )
    assert "after topics[0].partitions[" in found["problem"]["text"]


def test_a_malformed_field_is_named_with_its_offset() -> None:
    at = ASKED.index(b"orders") + 6
    bad = bytearray(ASKED)
    bad[at] = 0  # a null array
    found = only(decoded(framed(bytes(bad))))

    assert "FetchTopic.partitions: null or negative length" in found["problem"]["text"]
    assert 4 + at + 1 == found["problem"]["offset"]
    assert [{"topic": "orders"}] == found["body"]["topics"]
    assert 500 == found["body"]["max_wait_ms"] or "max_wait_ms" in found["body"]


def test_the_next_frame_is_read() -> None:
    [bad, good] = decoded(framed(ASKED[:-5]) + framed(ASKED))

    assert bad["problem"] is not None
    assert None is good["problem"]


@pytest.mark.parametrize("end", range(len(ASKED) + 4))
def test_every_cut_is_a_problem(end: int) -> None:
    for found in decoded(framed(ASKED)[:end], kind=Kind.FRAMES):
        assert found["problem"] is not None
        assert found["problem"]["offset"] <= end
