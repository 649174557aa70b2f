"""Topics, their partitions and their records, as they are seen."""

from __future__ import annotations

import pytest

from support.shown import Shown, wanted_by
from trionet.client.consumer import ConsumerRecord
from trionet.dashboard.model._figures import History
from trionet.dashboard.model._model import Model
from trionet.dashboard.model._rows import CompactionRow, PartitionRow, TopicRow
from trionet.dashboard.ui._view import Act


@pytest.fixture
def model() -> Model:
    model = Model()
    history = History()
    history.add(1, 50)
    topics = [
        TopicRow("orders", "AAAA", False, 2, 3, 1, 0, 2048, 12_345, 50.0, history),
        TopicRow("payments", "BBBB", False, 1, 3, 0, 1),
    ]
    model.topics.replace({row.name: row for row in topics}, 1.0)
    partitions = [
        PartitionRow("orders", 0, 1, 4, (1, 2, 3), (1, 2), (), 5, 6005, 1024, 25.0),
        PartitionRow("orders", 1, 2, 4, (1, 2, 3), (1, 2, 3), (), 0, 6345, 1024, 25.0),
        PartitionRow("payments", 0, -1, 7, (1, 2, 3), (), (1, 2, 3)),
    ]
    model.partitions.replace({(row.topic, row.number): row for row in partitions}, 1.0)
    return model


def test_a_topic_is_a_line(model: Model) -> None:
    shown = Shown(model, "topics")

    assert ["orders", "2", "3", "1", "0", "12,345", "50", "2.0", "KiB"] == (
        shown.line("orders")[:9]
    )
    assert ["payments", "1", "3", "0", "1"] == shown.line("payments")
    assert ("topics", None) == wanted_by(shown)


def test_a_long_topic_is_not_cut_while_a_column_is_empty() -> None:
    name = "settlements.card-payments.by-merchant.and-currency.hourly.aggregates.v2"
    model = Model()
    model.topics.replace({name: TopicRow(name, "AAAA", False, 2, 3, 1, 0, 2048, 12_345)}, 1.0)

    wide = Shown(model, "topics", 160).text

    assert f" {name} " in wide
    assert "DIRTY" not in wide
    assert "UNCLEANED" not in wide


def test_enter_shows_the_partitions_of_a_topic(model: Model) -> None:
    shown = Shown(model, "topics")

    shown.press("enter")

    assert ("partitions", "orders") == wanted_by(shown)
    assert ["0", "1", "1,2,3", "1,2", "5", "6,005", "25", "1.0", "KiB", "4"] == (
        shown.line("6,005")
    )
    assert "payments" not in shown.text
    assert "12,345 records" in shown.text


def test_compacted_topic_shows_how_it_is_cleaned(model: Model) -> None:
    cleaned = CompactionRow(0.25, 1_700_000_000_000, 4096, 1024, None)
    failed = CompactionRow(0.75, None, 0, 0, "a record is malformed")
    rows = [
        PartitionRow("table", 0, 1, 0, (1,), (1,), (), 0, 40, 1024, 0.0, cleaned),
        PartitionRow("table", 1, 1, 0, (1,), (1,), (), 0, 40, 4096, 0.0, failed),
    ]
    topic = TopicRow("table", "CCCC", False, 2, 1, 0, 0, 5120, 80, dirty_ratio=0.75, uncleanable=1)
    model.topics.update({"table": topic}, 1.0)
    model.partitions.update({(row.topic, row.number): row for row in rows}, 1.0)
    shown = Shown(model, "topics", width=160)

    assert ["table", "2", "1", "0", "0", "1", "75", "%", "80"] == shown.line("table")[:9]
    shown.press("/")
    shown.type("table")
    shown.press("enter")
    assert "UNCLEANABLE" in shown.text
    assert "4.0 KiB to 1.0 KiB" in shown.text
    assert "a record is malformed" in shown.text


def test_other_topics_have_no_columns_about_cleaning(model: Model) -> None:
    shown = Shown(model, "topics", width=160)

    shown.press("enter")

    assert "UNCLEANABLE" not in shown.text


def test_enter_once_more_follows_a_partition_and_f_the_topic(model: Model) -> None:
    shown = Shown(model, "topics")
    shown.press("enter", "j", "enter")
    assert ("tail", ("orders", 1)) == wanted_by(shown)

    shown.press("esc", "f")
    assert ("tail", ("orders", None)) == wanted_by(shown)

    shown.press("esc", "c")
    assert ("configs", ("topic", "orders")) == wanted_by(shown)


def test_a_topic_is_deleted_when_that_was_confirmed(model: Model) -> None:
    shown = Shown(model, "topics")

    assert "Delete the topic orders and all its records?" in shown.press("D")
    shown.press("n")
    assert [] == shown.effects
    shown.press("D", "y")

    [act] = shown.effects
    assert isinstance(act, Act)
    assert ("delete-topic", "orders") == (act.action.name, act.row.name)


def test_a_new_topic_is_asked_for_field_by_field(model: Model) -> None:
    shown = Shown(model, "topics")
    shown.press("C")
    shown.type("events")
    assert "an integer of at least 1" in shown.type("many")
    shown.press("ctrl-u")
    shown.type("6")
    assert "Create the topic events?" in shown.type("")
    shown.press("y")

    [act] = shown.effects
    assert isinstance(act, Act)
    assert ("events", "6", "") == act.answers


def test_a_cluster_that_is_being_read_says_how_much_there_is() -> None:
    model = Model()
    row = TopicRow("orders", "AAAA", False, 2, 3, 1, 0)
    model.topics.replace({"orders": row}, 1.0, total=500)

    assert "500" in Shown(model, "topics").text


def test_without_topics_it_is_said_why() -> None:
    model = Model()
    model.topics.mark_missing("nobody may look")

    assert "nobody may look" in Shown(model, "topics").text


def record(offset: int, value: bytes | None, key: bytes | None = None) -> ConsumerRecord:
    headers = [("trace", b"abc"), ("none", None)]
    return ConsumerRecord("t", 0, offset, 1_700_000_000_000, key, value, headers, 0, 0)


@pytest.fixture
def shown() -> Shown:
    model = Model()
    model.topics.replace({"t": TopicRow("t", "AAAA", False, 1, 1, 0, 0)}, 1.0)
    model.partitions.replace({("t", 0): PartitionRow("t", 0, 1, 0, (1,), (1,), ())}, 1.0)
    model.select_tail(("t", None))
    records = [
        record(0, b"plain", b"k0"),
        record(1, b'{"id": 7, "name": "x"}', b"k1"),
        record(2, b"\x00\x01\xff"),
        record(3, None, b"gone"),
    ]
    model.append_tail(records, 0, 1.0)
    found = Shown(model, "topics")
    found.press("f")
    return found


def test_the_newest_record_is_on_top_and_each_is_as_readable_as_it_can_be(shown: Shown) -> None:
    text = shown.text

    assert text.index("gone") < text.index("00 01 ff") < text.index('"id"') < text.index("plain")
    assert ["json", "22", "B"] == shown.line('"id"')[-3:]
    assert ["null", "0", "B"] == shown.line("gone")[-3:]


def test_enter_shows_a_record_with_its_headers(shown: Shown) -> None:
    text = shown.press("j", "j", "enter")

    assert "── value, 22 B, json ──" in text
    assert "trace: abc" in text
    assert "none: null" in text
    assert '"name": "x"' in text
    assert "7b 22 69 64" in text


def test_a_topic_without_records_says_what_makes_some() -> None:
    model = Model()
    model.topics.replace({"t": TopicRow("t", "AAAA", False, 1, 1, 0, 0)}, 1.0)
    model.select_tail(("t", None))
    model.append_tail([], 0, 1.0)
    shown = Shown(model, "topics")

    assert "P produces one, as does trionet produce t." in shown.press("f")


def test_what_was_passed_over_is_said(shown: Shown) -> None:
    shown.model.append_tail([record(1000, b"far")], 996, 2.0)

    assert "996 records skipped" in shown.text


def test_why_nothing_comes_is_said(shown: Shown) -> None:
    shown.model.tail.mark_failed("t cannot be read: nobody may")

    assert "t cannot be read: nobody may" in shown.text


def test_the_records_of_another_topic_are_not_shown(shown: Shown) -> None:
    shown.model.select_tail(("other", None))
    shown.model.append_tail([record(0, b"of another")], 0, 1.0)

    assert "of another" not in shown.text


def test_a_record_is_produced_when_that_was_confirmed(shown: Shown) -> None:
    shown.press("P")
    shown.type("k")
    assert "Write this record to t?" in shown.type("hello")
    shown.press("y")

    [act] = shown.effects
    assert isinstance(act, Act)
    assert ("k", "hello") == act.answers
