from __future__ import annotations

import io
import json
from contextlib import redirect_stdout

from trionet.cli.groups._lag import TopicLag, committed_lag, partition_lags, topic_lags
from trionet.cli.groups._snapshot import Group
from trionet.cli.groups._tables import document, summaries, topics
from trionet.cli.terminal._output import CSV, JSON, TEXT, write
from trionet.client._topic_partition import TopicPartition
from trionet.client.admin._group_descriptions import GroupDescription
from trionet.client.admin._groups import CommittedOffset
from trionet.client.network._cluster import Node

A, B, C = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
COMMITTED = {A: CommittedOffset(3), B: CommittedOffset(5), C: CommittedOffset(1)}


def test_a_partition_without_an_end_offset_makes_its_totals_unknown() -> None:
    lags = partition_lags(None, COMMITTED, {A: (0, 10), C: (0, 2)})

    assert [7, None, 1] == [each.lag for each in lags]
    assert [TopicLag("a", 2, 0, None), TopicLag("b", 1, 0, 1)] == topic_lags(lags)
    assert committed_lag(lags) is None


def test_a_partition_without_a_committed_offset_is_not_part_of_the_totals() -> None:
    lags = partition_lags(None, {**COMMITTED, B: None}, {A: (0, 10), B: (0, 9), C: (0, 2)})

    assert 8 == committed_lag(lags)


def test_an_end_before_the_committed_offset_is_no_lag() -> None:
    assert [0] == [each.lag for each in partition_lags(None, {A: CommittedOffset(3)}, {A: (0, 2)})]


def test_an_unknown_total_is_shown_as_unknown() -> None:
    about = GroupDescription(
        "billing", "classic", "Empty", "consumer", "", (), Node(0, "127.0.0.1", 9092)
    )
    group = Group(about, partition_lags(None, COMMITTED, {A: (0, 10), C: (0, 2)}))

    def shown(form: str) -> str:
        with redirect_stdout(io.StringIO()) as out:
            write(form, topics([group]), document(group), as_csv=summaries([group]))
        return out.getvalue()

    described = json.loads(shown(JSON))
    assert described["lag"] is None
    assert [("a", None), ("b", 1)] == [(each["topic"], each["lag"]) for each in described["topics"]]
    assert [["billing", "a", "2", "0", "-"], ["billing", "b", "1", "0", "1"]] == [
        line.split() for line in shown(TEXT).splitlines()[1:]
    ]
    assert shown(CSV).endswith(",0,\n")
