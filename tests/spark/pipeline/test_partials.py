"""Rows are grouped by their keys, however many columns these have."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from trionet.spark.pipeline._partials import Groups, matrix

KEYS = st.lists(
    st.tuples(st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(0, 3), st.text(max_size=2)),
    max_size=50,
)


@given(KEYS)
def test_rows_with_the_same_keys_are_one_group(keys: list[tuple[int, str]]) -> None:
    numbers = np.array([number for number, _ in keys], np.int64)
    texts = pa.array([text for _, text in keys], pa.string())

    groups = Groups.by([numbers, texts, numbers])

    assert len(set(keys)) == len(groups)
    assert keys == [keys[groups.first[number]] for number in groups.of_row]


@given(KEYS)
def test_sums_and_maxima_are_those_of_each_group(keys: list[tuple[int, str]]) -> None:
    texts = pa.array([text for _, text in keys], pa.string()).dictionary_encode()
    values = np.arange(2 * len(keys)).reshape(len(keys), 2)

    groups = Groups.by([texts])

    for number, first in enumerate(groups.first):
        of_group = [v for (_, text), v in zip(keys, values, strict=True) if text == keys[first][1]]
        assert np.sum(of_group, axis=0).tolist() == groups.sums(values)[number].tolist()
        assert np.max(of_group, axis=0).tolist() == groups.maxima(values)[number].tolist()


def test_more_kinds_of_keys_than_numbers_can_distinguish_at_once() -> None:
    wide = np.arange(5) << 28
    columns = [wide, wide[::-1].copy(), wide, wide]

    assert 5 == len(Groups.by(columns))


def test_rows_of_an_earlier_version_have_fewer_sums() -> None:
    lists = pa.array([[1, 2, 3], [4, 5], [6, 7, 8]], pa.list_(pa.int64()))

    assert [[1, 2, 3], [4, 5, 0], [6, 7, 8]] == matrix(lists, 3).tolist()
    assert [[1, 2, 0], [3, 4, 0]] == matrix(pa.array([[1, 2], [3, 4]]), 3).tolist()
