"""Our broker responds to transactional requests as Apache Kafka does, line by line.

What Kafka responds is in ``transaction_rules.json``; ``test_kafka_transaction_rules.py`` says
whether that is still so.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pytest
import trio

from support.brokers import broker_and_client
from support.transaction_rules.rules import LONG, SCENARIOS, SETTINGS, play_all, recorded

Deviation = tuple[str, str]
"""What Kafka responds, and what our broker responds."""

DEVIATIONS: Final[dict[str, list[Deviation]]] = {
    # Old clients are served, too.
    "advertised versions": [
        (
            "1: 4-18, 2: 1-11, 8: 2-10, 9: 1-10,",
            "1: 0-18, 2: 0-11, 8: 0-10, 9: 0-10,",
        ),
    ],
    # Classes of Unicode are not supported.
    "ListTransactions": [
        (
            (
                r"/\pL+/: NONE; aborted P3 CompleteAbort, committed P2 CompleteCommit,"
                " empty P0 Empty, open P1 Ongoing"
            ),
            r"/\pL+/: INVALID_REGULAR_EXPRESSION; nothing",
        ),
    ],
    # A batch is always checked against the transactional id that the request names. Kafka does not
    # check it once the partition is in a transaction.
    **{
        f"Produce v{version}": [
            (
                f"Produce v{version} {id} [a-1 txn P0/1 seq=2]: a-1 NONE @2",
                (
                    f"Produce v{version} {id} [a-1 txn P0/1 seq=2]: a-1 INVALID_PRODUCER_ID_MAPPING"
                    " @-1"
                ),
            )
            for id in ("y", "''")
        ]
        for version in (3, 7, 9, 10, 11, 12)
    },
    **{
        f"TxnOffsetCommit v{version}": [
            (
                f"TxnOffsetCommit v{version} {id} P0/1 g a-0=2: a-0 NONE",
                f"TxnOffsetCommit v{version} {id} P0/1 g a-0=2: a-0 INVALID_PRODUCER_ID_MAPPING",
            )
            for id in ("y", "''")
        ]
        for version in range(6)
    },
    "a transactional batch without a producer id": [
        (
            "[a-0 txn -1/-1 seq=-1]: a-0 NONE @0",
            "[a-0 txn -1/-1 seq=-1]: a-0 INVALID_PRODUCER_ID_MAPPING @-1",
        ),
        ("hw=1 lso=1 start=0 aborted=[] [0-0 txn]", "hw=0 lso=0 start=0 aborted=[] []"),
    ],
    # Only the aborted transactions up to the end of the records are listed.
    "interleaved transactions": [
        ("lso=1 start=0 aborted=[P1@2] [0-0]", "lso=1 start=0 aborted=[] [0-0]"),
    ],
    # The partitions of a deleted topic leave their transactions, and a new topic of the same name
    # gets no marker of the old one.
    "a topic that is deleted in an open transaction": [("[a-0 b-0]", "[b-0]")],
    "a topic that is deleted and made again without another batch": [
        (
            "hw=1 lso=1 start=0 aborted=null [0-0 P0/1 commit c+0]",
            "hw=0 lso=0 start=0 aborted=null []",
        ),
        ("a-0 NONE [P0/1 seq=-1 time=set c+0 txn@-1]", "a-0 NONE []"),
    ],
    "a marker of a negative epoch": [("UNKNOWN_SERVER_ERROR", "INVALID_REQUEST")],
    # The level says what clients should do. Kafka's coordinator cannot store these transactions.
    "both protocols at level 0": [
        (
            (
                "[a-0 txn P0/3 seq=0]: a-0 UNSUPPORTED_VERSION @-1\n"
                "DescribeTransactions x: x Empty P0/3 timeout=60000 start=none []"
            ),
            (
                "[a-0 txn P0/3 seq=0]: a-0 NONE @3\n"
                "DescribeTransactions x: x Ongoing P0/3 timeout=60000 start=set [a-0]"
            ),
        ),
    ],
    # A request may be repeated more than once.
    "the last epoch: InitProducerId": [
        (
            "EndTxn v5 x P0/32766 commit: INVALID_PRODUCER_ID_MAPPING -1/-1",
            "EndTxn v5 x P0/32766 commit: PRODUCER_FENCED -1/-1",
        ),
    ],
}
"""By scenario: the parts of lines in which our broker differs on purpose."""


# Requests while markers are being written, which our broker does at once; and what takes long, in
# test_transaction_rules_long.py.
_LEFT_OUT: Final = {name for name in SCENARIOS if name.startswith("while a transaction ends")}
_SCENARIOS: Final = [name for name in SCENARIOS if name not in _LEFT_OUT and name not in LONG]


def test_the_file_has_all_scenarios_and_no_others() -> None:
    """A scenario is recorded before it is merged: see the package of the scenarios."""
    assert list(SCENARIOS) == list(recorded())


@pytest.fixture(scope="module")
def played() -> dict[str, list[str]]:
    """What a new broker responds to the scenarios."""
    return trio.run(play, _SCENARIOS)


async def play(names: Iterable[str]) -> dict[str, list[str]]:
    """What a new broker responds to some scenarios."""
    async with broker_and_client(SETTINGS) as (broker, _):
        return await play_all(broker.bootstrap_servers, names)


@pytest.mark.slow
@pytest.mark.parametrize("name", _SCENARIOS)
def test_our_broker_responds_as_kafka_does(name: str, played: dict[str, list[str]]) -> None:
    assert expected(name) == played[name]


def expected(name: str) -> list[str]:
    """What Kafka responds, but for the deviations, each of which must apply."""
    text = "\n".join(recorded()[name])
    for theirs, ours in DEVIATIONS.get(name, ()):
        changed = text.replace(theirs, ours)
        assert changed != text, f"Kafka does not respond so any more: {theirs}"
        text = changed
    return text.split("\n")
