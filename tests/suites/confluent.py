"""The integration tests of confluent-kafka, that is of librdkafka; they take brokers by BROKERS."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from suites.suite import AUTHORIZER, KAFKA_VERSION, Meeting, Needs, Suite
from support.client import BlockingClient
from support.config_calls import BROKER, incremental_request, sets
from support.trionet_process import trionet_broker_process

_SETTINGS = {"num.partitions": "4", "group.initial.rebalance.delay.ms": "0"}
_FOLDER = "tests/integration"


@contextlib.contextmanager
def _meet(folder: Path) -> Iterator[Meeting]:
    with trionet_broker_process(settings=_SETTINGS) as (bootstrap, _):
        # As a new cluster does since Kafka 4.1 (KIP-966), and one of the tests expects.
        with BlockingClient(bootstrap) as client:
            altered = incremental_request((BROKER, "", sets(min_insync_replicas=1)))
            assert not client.call(altered, 1).responses[0].error_code
        environment = {"BROKERS": bootstrap, "TEST_TRIVUP_CLUSTER_VERSION": KAFKA_VERSION}
        yield Meeting(int(bootstrap.rpartition(":")[2]), environment)


CONFLUENT = Suite(
    name="confluent",
    distribution="confluent-kafka",
    repository="https://github.com/confluentinc/confluent-kafka-python.git",
    tag="v{}",
    in_archive=False,
    requirements=[
        *("pytest", "pytest-asyncio", "requests-mock", "respx", "psutil"),
        # What its own extras bring, which its fixtures import.
        *("attrs", "authlib", "avro", "cachetools", "certifi", "fastavro", "httpx", "jsonschema"),
        *("googleapis-common-protos", "orjson", "protobuf", "requests"),
        # How the tests start Kafka, which they import anyway.
        "{source}/tests/trivup/trivup-0.14.0.tar.gz",
    ],
    tests=[f"{_FOLDER}/{folder}" for folder in ("admin", "consumer", "producer", "serialization")],
    meet=_meet,
    needs=[
        Needs("*/test_transactions.py::*", ["AddPartitionsToTxn", "EndTxn"]),
        Needs("*::test_delete_records*", ["DeleteRecords"]),
        Needs(
            "*::test_user_scram_credentials",
            ["DescribeUserScramCredentials", "AlterUserScramCredentials"],
        ),
        Needs("*/test_describe_operations.py::*", what=AUTHORIZER),
        Needs("*::test_consumer_upgrade_downgrade", ["ConsumerGroupHeartbeat"]),
        Needs("*::test_basic_operations", what=AUTHORIZER),
    ],
)
