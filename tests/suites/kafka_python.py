"""kafka-python's integration tests, which would start Kafka by themselves, or find it by a URI."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

from suites.listeners import broker_with_listeners
from suites.suite import AUTHORIZER, KAFKA_VERSION, Meeting, Needs, Suite

_USERS = {"alice": "alice-secret"}
# As the tests set up the Kafka that they start.
_SETTINGS = {
    "node.id": "0",
    "num.partitions": "4",
    "group.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
}
# It starts Kafka, and nothing of that happens here.
_SERVICE = """\
class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def dump_logs(self):
        pass


class SpawnedService:
    pass
"""


@contextlib.contextmanager
def _meet(folder: Path) -> Iterator[Meeting]:
    with broker_with_listeners(folder, _USERS, _SETTINGS) as ports:
        yield Meeting(
            ports["PLAINTEXT"],
            {
                "KAFKA_VERSION": KAFKA_VERSION,
                "KAFKA_ROOT": str(folder),  # a folder that has to be there, and is not used
                "TRIONET_PORTS": json.dumps(ports),
                "TRIONET_CERTIFICATES": str(folder),
            },
            ["-p", "suites.inside.kafka_python_fixtures"],
        )


def _complete(source: Path) -> None:
    """The archive has the tests, but not all that they import."""
    (source / "test" / "__init__.py").touch()
    (source / "test" / "service.py").write_text(_SERVICE)


KAFKA_PYTHON = Suite(
    name="kafka-python",
    distribution="kafka-python",
    repository="https://github.com/dpkp/kafka-python.git",
    tag="{}",
    in_archive=True,
    requirements=["pytest", "pytest-mock", "py", "lz4", "python-snappy", "zstandard"],
    tests=["test/integration"],
    meet=_meet,
    needs=[
        Needs("*::test_transactional_*", ["AddPartitionsToTxn", "EndTxn"]),
        Needs("*::test_create_describe_delete_acls", what=AUTHORIZER),
        Needs("*::test_delete_records*", ["DeleteRecords"]),
        Needs("*::test_create_partitions", ["CreatePartitions"]),
        Needs("*::test_elect_leaders", ["ElectLeaders"]),
        Needs("*::test_describe_log_dirs", ["DescribeLogDirs"]),
        Needs("*::test_alter_replica_log_dirs", ["AlterReplicaLogDirs", "DescribeLogDirs"]),
        Needs("*::test_describe_metadata_quorum", ["DescribeQuorum"]),
        Needs("*::test_alter_partition_reassignments", ["AlterPartitionReassignments"]),
        Needs("*::test_list_partition_reassignments", ["ListPartitionReassignments"]),
        Needs("*::test_describe_topic_partitions*", ["DescribeTopicPartitions"]),
        Needs("*::test_list_config_resources", ["ListConfigResources"]),
    ],
    complete=_complete,
)
