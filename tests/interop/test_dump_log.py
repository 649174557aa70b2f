"""Apache Kafka's own dump tool reads trionet's data directory and finds nothing wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.cache import Unavailable
from support.clients.client import Record
from support.clients.corpus import corpus, small_records
from support.clients.exchange import CODECS
from support.durable import Durable
from support.kafka_tools import DUMP_LOG, kafka_tool

TOPIC = "dumped"
SEGMENT_BYTES = 1 << 20


_RECORDS = [*corpus(), *small_records(2000), *[Record(None, b"x" * 10_000)] * 50]


@pytest.fixture(scope="module")
def segments(durable_for_module: Durable) -> Path:
    """The folder of a partition with several segments, written with every codec."""
    pytest.importorskip("confluent_kafka")
    from support.clients.confluent import Confluent

    durable = durable_for_module
    client = Confluent(durable.bootstrap)
    with durable.running():
        config = {"segment.bytes": str(SEGMENT_BYTES), "index.interval.bytes": "256"}
        client.create_topic(TOPIC, 1, config)
        for is_idempotent in (False, True):
            for codec in CODECS:
                client.write(TOPIC, _RECORDS, codec=codec, is_idempotent=is_idempotent)
    return durable.data / f"{TOPIC}-0"


def _dumped(*files: Path, deeply: bool = False) -> str:
    options = ["--deep-iteration", "--print-data-log"] if deeply else []
    try:
        said = kafka_tool(DUMP_LOG, *options, "--files", ",".join(map(str, files)))
    except Unavailable as reason:
        pytest.skip(str(reason))
    return said.decode(errors="replace")


def test_every_record_of_every_segment_is_dumped(segments: Path) -> None:
    logs = sorted(segments.glob("*.log"))
    said = _dumped(*logs, deeply=True)

    assert len(logs) > 1
    assert said.count("isvalid: true") > 0
    assert "isvalid: false" not in said
    offsets = [int(offset) for offset in re.findall(r"^\| offset: (\d+)", said, re.MULTILINE)]
    assert offsets == list(range(2 * len(CODECS) * len(_RECORDS)))
    assert {"GZIP", "SNAPPY", "LZ4", "ZSTD", "NONE"} <= set(
        re.findall(r"compresscodec: (\w+)", said.upper().replace("COMPRESSCODEC", "compresscodec"))
    )


def test_indexes_agree_with_the_log(segments: Path) -> None:
    """The tool compares each entry with the log beside it and says where they differ."""
    indexes = sorted([*segments.glob("*.index"), *segments.glob("*.timeindex")])
    said = _dumped(*indexes)

    assert len(indexes) > 2
    assert len(re.findall(r"^offset: \d+ position: \d+", said, re.MULTILINE)) > 0
    assert len(re.findall(r"^timestamp: \d+ offset: \d+", said, re.MULTILINE)) > 0
    assert "mismatch" not in said.lower()
    assert "Found" not in said


def test_producer_snapshots_are_dumped(segments: Path) -> None:
    snapshots = sorted(segments.glob("*.snapshot"))
    said = _dumped(*snapshots)

    assert snapshots
    assert re.search(r"producerId: \d+ producerEpoch: 0 ", said), said
