"""Every case gives what Spark's Kafka connector gives, but for those that a page lists.

What the connector gives is stored; ``python3 tests beside`` runs it anew, beside trionet, in Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import trionet

pytest.importorskip("pyspark", reason="PySpark cannot be imported: pip install 'trionet[spark]'")

from spark.beside import outcomes
from spark.beside.cases import CASES, READS, STATEMENTS, STREAMS, WRITES, Read, Stream, Write
from spark.beside.direct import Direct
from spark.beside.expected import OURS, REASONS, ours, stored
from spark.beside.topics import seed_all, settings
from trionet.errors import ConfigError
from trionet.spark._loop_host import host
from trionet.spark._options import SinkOptions

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "migrate-from-the-kafka-connector.md"


@pytest.fixture(scope="module")
def direct() -> Iterator[Direct]:
    with trionet.testing.broker(settings()) as broker:
        seed_all(broker)
        yield Direct(broker)
        host().close()


@pytest.mark.parametrize("case", [*READS, *STREAMS, *WRITES], ids=lambda case: case.name)
def test_case_gives_what_the_connector_gives(direct: Direct, case: Read | Stream | Write) -> None:
    theirs = stored()[case.name]

    found = direct.run(case)

    expected = ours(case.name, theirs)
    assert outcomes.are_equal(expected, found), f"expected {expected!r}, found {found!r}"


def test_every_case_has_what_the_connector_gives() -> None:
    assert list(stored()) == list(CASES)
    assert len(READS) + len(STREAMS) >= 226
    assert len(WRITES) >= 44
    assert {"CREATE TABLE", "INSERT INTO a table"} <= {each.name for each in STATEMENTS}


def test_what_is_other_is_not_equal_and_has_a_reason() -> None:
    theirs = stored()

    assert {each.reason for each in OURS.values()} == REASONS.keys()
    assert [] == [
        name for name, other in OURS.items() if outcomes.are_equal(theirs[name], other.outcome)
    ]


_LOGIN = {"kafka.security.protocol": "SASL_SSL"}


@pytest.mark.parametrize(
    ("row", "options", "message"),
    [
        ("`kafka.partitioner.class`", {"kafka.partitioner.class": "x"}, "not supported"),
        ("`kafka.config.providers`", {"kafka.config.providers": "env"}, "set the values directly"),
        (
            "`java.security.auth.login.config`",
            {**_LOGIN, "kafka.sasl.mechanism": "PLAIN"},
            "requires a user name and a password",
        ),
        (
            "`kafka.sasl.mechanism=GSSAPI`",
            {**_LOGIN, "kafka.sasl.mechanism": "GSSAPI"},
            r"docs/howto/connect-to-a-secured-cluster\.md",
        ),
        ("the default of SASL", _LOGIN, r"docs/howto/connect-to-a-secured-cluster\.md"),
    ],
)
def test_what_has_to_be_changed_is_reported_before_anything_is_written(
    row: str, options: dict[str, str], message: str
) -> None:
    needed = {"kafka.bootstrap.servers": "host:9092", "topic": "t"}

    assert row in PAGE.read_text("utf-8").split("\n## What has to be changed\n")[1]
    with pytest.raises(ConfigError, match=message):
        SinkOptions.parse({**needed, **options})


def test_the_migration_page_lists_what_is_other_and_why() -> None:
    section = PAGE.read_text("utf-8").split("\n## Differences\n")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]

    assert [list(each) for each in REASONS.items()] == rows[1:]
