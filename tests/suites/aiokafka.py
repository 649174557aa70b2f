"""aiokafka's tests, which would start Kafka in a container."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

from suites.listeners import broker_with_listeners
from suites.suite import AUTHORIZER, KAFKA_VERSION, Meeting, Needs, Suite

_USERS = {"test": "test"}
# As the container of the tests sets up Kafka.
_SETTINGS = {
    "node.id": "0",
    "num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
    "listener.name.ssl.ssl.client.auth": "required",
}
_OPTIONS = [
    *("-p", "suites.inside.aiokafka_fixtures"),
    # The tests read the release of Kafka from the name of its image.
    f"--docker-image=trionet:{KAFKA_VERSION}",
    # To leave it unset is a warning, and a warning an error.
    *("-o", "asyncio_default_fixture_loop_scope=function"),
]


@contextlib.contextmanager
def _meet(folder: Path) -> Iterator[Meeting]:
    with broker_with_listeners(folder, _USERS, _SETTINGS) as ports:
        yield Meeting(
            ports["PLAINTEXT"],
            {
                "TRIONET_PORTS": json.dumps(ports),
                "TRIONET_CERTIFICATES": str(folder),
                # The tests import the source beside them, whose C extension is not built.
                "AIOKAFKA_NO_EXTENSIONS": "1",
            },
            _OPTIONS,
        )


AIOKAFKA = Suite(
    name="aiokafka",
    distribution="aiokafka",
    repository="https://github.com/aio-libs/aiokafka.git",
    tag="v{}",
    in_archive=False,
    # The releases of pytest that it is tested with: to later ones something in it is an error.
    requirements=[
        *("pytest==9.0.2", "pytest-asyncio==1.3.0", "pytest-mock"),
        *("docker", "cramjam", "async-timeout"),
    ],
    tests=["tests"],
    meets_by=["kafka_server"],
    meet=_meet,
    needs=[
        Needs("*::test_sasl_deny_*", what=AUTHORIZER),
        Needs("*::test_sasl_unknown_topic_*", what=AUTHORIZER),
        Needs("*_gssapi", what="Kerberos (SASL/GSSAPI)"),
        Needs("*::test_exclude_internal_topics", what="__consumer_offsets as a topic"),
        # With a transactional id, whose coordinator it waits for.
        Needs("*::test_sender_maybe_wait_for_pid_on_failure", ["AddPartitionsToTxn", "EndTxn"]),
        Needs("*/test_transactional_*", ["AddPartitionsToTxn", "EndTxn"]),
        Needs("*::test_alter_configs", ["AlterConfigs"]),
        Needs("*::test_create_partitions", ["CreatePartitions"]),
        Needs("*::test_delete_records", ["DeleteRecords"]),
    ],
    explained={
        "*::test_coordinator__heartbeat_routine": (
            "it talks to nobody, and counts on sleeping 50 ms to the millisecond"
        ),
    },
)
