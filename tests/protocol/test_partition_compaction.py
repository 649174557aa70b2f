"""The tagged field of trionet's own in responses of DescribeLogDirs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trionet.protocol._codec import lookup
from trionet.protocol._partition_compaction import (
    TAG,
    TAGS_SINCE,
    PartitionCompaction,
    decode_tags,
    encode_tag,
)
from trionet.protocol.api_keys import DESCRIBE_LOG_DIRS
from trionet.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

CLEANED = PartitionCompaction(
    dirty_ratio=0.25,
    cleaned_ms=1_700_000_000_000,
    cleaning_ms=1200,
    bytes_read=4096,
    bytes_written=1024,
    records_read=40,
    records_written=10,
    uncleanable="a record is malformed",
)


def test_field_is_among_others_and_comes_back() -> None:
    tags = ((1, b"other"), encode_tag(CLEANED))

    assert CLEANED == decode_tags(tags)
    assert decode_tags(tags[:1]) is None
    assert decode_tags(()) is None


def test_field_survives_the_codec_of_a_response() -> None:
    partition = DescribeLogDirsPartition(unknown_tags=(encode_tag(CLEANED),))
    topic = DescribeLogDirsTopic(name="t", partitions=[partition])
    response = DescribeLogDirsResponse(results=[DescribeLogDirsResult(topics=[topic])])
    each = lookup(DESCRIBE_LOG_DIRS, TAGS_SINCE)
    assert each is not None
    chunks: list[bytes] = []
    each.encode_response(response, chunks)  # type: ignore[arg-type]

    [result] = each.decode_response(b"".join(chunks), 0).results

    assert CLEANED == decode_tags(result.topics[0].partitions[0].unknown_tags)


@given(st.binary(max_size=80))
def test_field_of_others_with_the_same_tag_counts_as_missing(data: bytes) -> None:
    found = decode_tags(((TAG, data),))

    assert found is None or isinstance(found, PartitionCompaction)
