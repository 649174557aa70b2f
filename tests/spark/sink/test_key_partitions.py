"""The partitions of a column of keys are those that a producer finds for each."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.client.producer.batching._topic_queues import partition_of
from trionet.spark.sink._key_partitions import partitions_of

KEYS = st.lists(st.one_of(st.binary(max_size=20), st.binary(min_size=1000, max_size=1100)))


@given(KEYS, st.integers(1, 1000), st.integers(0, 3), st.sampled_from(["binary", "large_binary"]))
def test_each_key_has_the_partition_that_a_producer_finds(
    keys: list[bytes], partitions: int, start: int, kind: str
) -> None:
    """Of every length, also beyond what is hashed side by side, and in a part of a column."""
    column = pa.array(keys, getattr(pa, kind)()).slice(start)

    found = partitions_of(column, partitions).tolist()

    assert [partition_of(key, partitions) for key in keys[start:]] == found


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_texts_are_hashed_as_utf_8(kind: Any) -> None:
    texts = ["", "é", "key", "łódź and more"]

    found = partitions_of(pa.array(texts, kind), 7).tolist()

    assert [partition_of(text.encode(), 7) for text in texts] == found
