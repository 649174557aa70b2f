"""Columns of Arrow to records: the same bytes as those of a record loop."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.encoded_records import rows_of
from trionet.errors import LocalProtocolError
from trionet.protocol.records import _implementation as implementation
from trionet.protocol.records._batch import HEADER_SIZE
from trionet.protocol.records._types import Headers

pytest.importorskip("pyarrow", reason="pyarrow is of the extra `spark`")

import numpy as np
import pyarrow as pa

from trionet.protocol.records.columnar._arrow_columns import HEADERS
from trionet.protocol.records.columnar._arrow_encoder import (
    ArrowColumns,
    encode_arrow,
    encode_groups,
)

pytestmark = pytest.mark.usefixtures("each_implementation")

NOW = 1_700_000_000_000
Row = tuple[bytes | None, bytes | None, Headers]

fields = st.none() | st.binary(max_size=200)
headers = st.lists(st.tuples(st.text(max_size=70), fields), max_size=3)
rows = st.lists(st.tuples(fields, fields, headers), max_size=150)


def columns_of(rows: Sequence[Row], *, with_keys: bool, with_headers: bool) -> ArrowColumns:
    pairs = [[{"key": key, "value": value} for key, value in each] for _, _, each in rows]
    return ArrowColumns(
        pa.array([value for _, value, _ in rows], pa.binary()),
        pa.array([key for key, _, _ in rows], pa.binary()) if with_keys else None,
        pa.array([each or None for each in pairs], HEADERS) if with_headers else None,
    )


@given(rows, st.booleans(), st.booleans(), st.sampled_from([100, 2_000, 10**6]))
def test_batches_are_those_of_a_record_loop(
    rows: list[Row], with_keys: bool, with_headers: bool, size_max: int
) -> None:
    columns = columns_of(rows, with_keys=with_keys, with_headers=with_headers)

    batches = [*encode_arrow(columns, size_max)]

    assert len(rows) == sum(each.record_count for each in batches)
    rest = iter(rows)
    for each in batches:
        builder = implementation.writer.BatchBuilder()
        for _, (key, value, pairs) in zip(range(each.record_count), rest, strict=False):
            pairs = pairs if with_headers else ()
            assert builder.append(NOW, key if with_keys else None, value, pairs)
        assert b"".join(builder.chunks()) == each.body
        assert each.record_count == 1 or builder.size <= size_max


@given(
    st.lists(rows, max_size=4),
    st.randoms(use_true_random=False),
    st.booleans(),
    st.booleans(),
    st.sampled_from([100, 10**6]),
)
def test_groups_are_encoded_as_if_each_were_alone(
    groups: list[list[Row]], rng: random.Random, with_keys: bool, with_headers: bool, size_max: int
) -> None:
    """Wherever in the columns their records are."""
    places = [(group, number) for group, each in enumerate(groups) for number in range(len(each))]
    at = [*range(len(places) + 3)]  # more records than are asked for
    rng.shuffle(at)
    scattered: list[Row] = [(b"not", b"asked", ())] * len(at)
    for (group, number), place in zip(places, at, strict=False):
        scattered[place] = groups[group][number]
    columns = columns_of(scattered, with_keys=with_keys, with_headers=with_headers)
    order = np.array(at[: len(places)], np.int64)

    found = [*encode_groups(columns, order, [len(each) for each in groups], size_max)]

    for group, each in enumerate(groups):
        alone = columns_of(each, with_keys=with_keys, with_headers=with_headers)
        assert [*encode_arrow(alone, size_max)] == [batch for at, batch in found if at == group]


@pytest.mark.parametrize("size", [0, 1, 63, 64, 8_191, 8_192, 1_100_000])
def test_lengths_of_every_width(size: int) -> None:
    row: Row = (b"k" * size, b"v" * size, [("h" * size, b"w" * size)])
    columns = columns_of([row, row], with_keys=True, with_headers=True)

    found = [each[2:] for each in rows_of(encode_arrow(columns, 2**30))]

    assert [row, row] == [(key, value, [*pairs]) for key, value, pairs in found]


def test_batches_are_full_and_not_larger_than_allowed() -> None:
    columns = ArrowColumns(pa.array([b"x" * 100] * 10_000, pa.binary()))

    *full, last = encode_arrow(columns, 16_384)

    sizes = [HEADER_SIZE + len(each.body) for each in full]
    assert min(sizes) > 16_384 - 2 * 110
    assert max(sizes) <= 16_384
    assert 10_000 == sum(each.record_count for each in [*full, last])


@pytest.mark.parametrize(
    ("text", "binary"), [(pa.string(), pa.binary()), (pa.large_string(), pa.large_binary())]
)
def test_parts_of_columns_of_other_types(text: Any, binary: Any) -> None:
    kind = pa.list_(pa.struct([("key", text), ("value", binary)]))
    pairs = [None, [{"key": "é", "value": b"1"}], [], [{"key": "a", "value": None}] * 2]
    columns = ArrowColumns(
        pa.array(["0", "1", "ü", None], text).slice(1),
        pa.array([b"0", b"k", None, b""], binary).slice(1),
        pa.array(pairs, kind).slice(1),
    )

    found = [each[2:] for each in rows_of(encode_arrow(columns, 1000))]

    assert [
        (b"k", b"1", [("é", b"1")]),
        (None, "ü".encode(), ()),
        (b"", None, [("a", None), ("a", None)]),
    ] == found


def test_a_batch_can_grow_after_its_encoded_records() -> None:
    columns = ArrowColumns(pa.array([b"x"] * 100, pa.binary()))
    [encoded] = encode_arrow(columns, 16_384)
    builder = implementation.writer.BatchBuilder()
    builder.begin_with(encoded.body, encoded.record_count, NOW)
    alone = implementation.writer.BatchBuilder()
    for _ in range(100):
        alone.append(NOW, None, b"x")

    for each in (builder, alone):
        each.append(NOW + 5, b"k", b"y")

    assert b"".join(alone.chunks()) == b"".join(builder.chunks())
    for name in ("count", "size", "last_offset_delta", "base_timestamp", "max_timestamp"):
        assert getattr(alone, name) == getattr(builder, name)


def test_a_header_without_a_key_is_refused() -> None:
    pairs = pa.array([[{"key": None, "value": b""}]], HEADERS)

    with pytest.raises(LocalProtocolError, match="the key of a record header is null"):
        [*encode_arrow(ArrowColumns(pa.array([b"x"]), None, pairs), 1000)]
