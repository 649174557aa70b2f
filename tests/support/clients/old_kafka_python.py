"""A kafka-python of 2019 in a virtual environment of its own, as clients of Kafka 0.8 to 1.x were.

Run as a program it is the client: `BOOTSTRAP API_VERSION CODEC TOPIC COUNT`, with the environment's
Python. It writes records, reads them back with a group, and says as JSON what it saw.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

KAFKA_PYTHON_VERSION = "1.4.7"
_PACKAGES = (f"kafka-python=={KAFKA_PYTHON_VERSION}", "lz4", "python-snappy", "xxhash")
_INSTALL_SECONDS_MAX = 180
_RUN_SECONDS_MAX = 120
_READ_MS_MAX = 60_000


def _install(folder: Path) -> None:
    from support.cache import Unavailable

    # No scripts: they would name the scratch folder. Its packages do not mind where they are.
    command = [sys.executable, "-m", "pip", "install", "-q", "--target", str(folder), *_PACKAGES]
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=_INSTALL_SECONDS_MAX
        )
    except subprocess.TimeoutExpired:
        raise Unavailable("pip could not fetch an old kafka-python in time") from None
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise Unavailable(f"pip could not fetch an old kafka-python: {said[-1] if said else '?'}")


def exchange(bootstrap: str, api_version: str, codec: str, topic: str, count: int) -> Any:
    """What the client saw; raises `Unavailable` where it cannot be fetched or does not run."""
    from support.cache import Unavailable, cache_folder, made_once

    if sys.version_info >= (3, 12):
        raise Unavailable("kafka-python of that time does not run with Python 3.12")
    folder = made_once(cache_folder() / f"kafka-python-{KAFKA_PYTHON_VERSION}", _install)
    done = subprocess.run(
        [sys.executable, "-S", __file__, bootstrap, api_version, codec, topic, str(count)],
        check=False,
        capture_output=True,
        text=True,
        timeout=_RUN_SECONDS_MAX,
        env={"PYTHONPATH": str(folder)},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def main(bootstrap: str, api_version: str, codec: str, topic: str, count: int) -> None:
    """What runs with the old packages."""
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition

    version = tuple(map(int, api_version.split(".")))
    compression = None if codec == "none" else codec
    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        api_version=version,
        compression_type=compression,
        linger_ms=20,
    )
    sent = [
        producer.send(topic, key=b"k%d" % number, value=b"v%d" % number, partition=0)
        for number in range(count)
    ]
    producer.flush()
    written = [each.get(10).offset for each in sent]
    producer.close()

    has_groups = version >= (0, 8, 2)
    partition = TopicPartition(topic, 0)
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        api_version=version,
        group_id=topic if has_groups else None,
        enable_auto_commit=False,
        consumer_timeout_ms=_READ_MS_MAX,
    )
    consumer.assign([partition])
    consumer.seek_to_beginning()
    read: list[tuple[int, str, str]] = []
    has_time = False
    while len(read) < count:
        record = next(consumer)
        read.append((record.offset, record.key.decode(), record.value.decode()))
        has_time = record.timestamp is not None
    if has_groups:
        consumer.commit()
    end = consumer.committed(partition) if has_groups else None
    consumer.close()
    print(json.dumps({"written": written, "read": read, "time": has_time, "committed": end}))


if __name__ == "__main__":
    address, wanted, named, into, number = sys.argv[1:]
    main(address, wanted, named, into, int(number))
