from __future__ import annotations

import pytest
from aiokafka.partitioner import murmur2 as theirs
from hypothesis import given
from hypothesis import strategies as st

from trionet.client.producer.batching._topic_queues import murmur2, partition_of


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"", 275646681),
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_hashes_are_those_of_kafka(key: bytes, expected: int) -> None:
    assert expected & 0xFFFF_FFFF == murmur2(key)


@given(key=st.binary(max_size=40))
def test_hashes_are_those_of_another_client(key: bytes) -> None:
    assert theirs(key) & 0xFFFF_FFFF == murmur2(key)


@given(key=st.binary(max_size=20), partitions=st.integers(1, 2000))
def test_a_key_has_one_partition(key: bytes, partitions: int) -> None:
    expected = (theirs(key) & 0x7FFF_FFFF) % partitions

    for same in (key, bytearray(key), memoryview(key)):
        assert expected == partition_of(same, partitions)


def test_text_is_no_key() -> None:
    with pytest.raises(TypeError, match=r"not str; encode it with \.encode\(\)"):
        partition_of("text", 3)  # type: ignore[arg-type]
