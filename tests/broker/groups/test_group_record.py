"""The members of a group as bytes."""

from __future__ import annotations

import attrs
from hypothesis import given
from hypothesis import strategies as st

from trionet.broker.groups._group_record import (
    CHUNK_BYTES,
    decode_members,
    encode_members,
    record_bytes,
)
from trionet.broker.groups._stored_group import StoredGroup, StoredMember

texts = st.text(max_size=20)
MEMBERS = st.builds(
    StoredMember,
    id=texts,
    instance_id=st.none() | texts,
    client_id=texts,
    client_host=texts,
    session_seconds=st.floats(0, 1e6),
    rebalance_seconds=st.floats(0, 1e6),
    metadata=st.binary(max_size=100) | st.just(bytes(100_000)),
    assignment=st.binary(max_size=100) | st.just(b"\n" * CHUNK_BYTES),
)


@given(st.lists(MEMBERS, max_size=5).map(tuple))
def test_members_come_out_of_pieces_as_they_were(members: tuple[StoredMember, ...]) -> None:
    written = list(encode_members(members))

    assert members == decode_members(b"".join(written))
    assert all(len(piece) == CHUNK_BYTES for piece in written[:-1])
    assert all(0 < len(piece) <= CHUNK_BYTES for piece in written)


def test_a_group_has_the_size_of_kafkas_record() -> None:
    empty = StoredGroup("g", 1, None, None, None, 0, ())
    member = StoredMember("id", None, "c", "/h", 1, 1, bytes(1000), bytes(2000))

    assert record_bytes(empty) < 150
    one = record_bytes(attrs.evolve(empty, members=(member,)))
    assert 3000 < one - record_bytes(empty) < 3050
    assert 2 * (one - record_bytes(empty)) == (
        record_bytes(attrs.evolve(empty, members=(member, member))) - record_bytes(empty)
    )
