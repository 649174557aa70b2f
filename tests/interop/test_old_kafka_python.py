"""kafka-python 1.4.7, told that the broker is Kafka 0.8.0 up to 1.0."""

from __future__ import annotations

import uuid

import pytest

from support.cache import Unavailable
from support.clients.old_kafka_python import exchange

COUNT = 300


@pytest.mark.parametrize("version", ["0.8.0", "0.8.2", "0.9", "0.10", "0.11", "1.0"])
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_records_go_there_and_back(bootstrap: str, version: str, codec: str) -> None:
    if (version, codec) == ("0.8.0", "lz4"):
        pytest.skip("kafka-python has lz4 from 0.8.2 on")
    try:
        seen = exchange(bootstrap, version, codec, f"old-{uuid.uuid4()}", COUNT)
    except Unavailable as reason:
        pytest.skip(str(reason))

    assert [*range(COUNT)] == seen["written"]
    assert [[at, f"k{at}", f"v{at}"] for at in range(COUNT)] == seen["read"]
    assert (version not in ("0.8.0", "0.8.2", "0.9")) is seen["time"], "format 0 has none"
    assert (None if version == "0.8.0" else COUNT) == seen["committed"]
