"""Records as they come, as they are seen."""

from __future__ import annotations

import pytest

from support.shown import Shown
from trionet.client.consumer import ConsumerRecord
from trionet.dashboard.model._model import Model
from trionet.dashboard.model._rows import PartitionRow, TopicRow
from trionet.dashboard.ui._effects import Act


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

    assert "trace: abc" in text
    assert "none: null" in text
    assert '"name": "x"' in text
    assert "7b 22 69 64" in text


def test_what_was_passed_over_is_said(shown: Shown) -> None:
    shown.model.append_tail([record(1000, b"far")], 996, 2.0)

    assert "996 records were skipped" in shown.text


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
