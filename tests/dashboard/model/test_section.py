"""A list of the model: its rows, whether they are all, and why there are none."""

from __future__ import annotations

from trionet.dashboard.model._section import Section


def test_rows_are_replaced_and_each_change_is_a_version() -> None:
    section: Section[str, int] = Section()
    before = section.version

    section.replace({"a": 1, "b": 2}, 5.0)

    assert {"a": 1, "b": 2} == dict(section)
    assert (2, 5.0, True) == (section.total, section.updated_at, section.is_whole)
    assert section.version > before


def test_a_list_that_is_being_read_is_not_whole() -> None:
    section: Section[str, int] = Section()

    section.replace({"a": 1}, 5.0, total=3)
    found = [section.is_whole]
    section.update({"b": 2, "c": 3}, 6.0)
    found.append(section.is_whole)

    assert [False, True] == found
    assert ["a", "b", "c"] == list(section)


def test_what_is_gone_is_forgotten() -> None:
    section: Section[str, int] = Section()
    section.replace({"a": 1, "b": 2, "c": 3}, 5.0)

    section.retain({"a", "c"}, 6.0)

    assert {"a": 1, "c": 3} == dict(section)
    assert 2 == section.total


def test_a_list_that_cannot_be_had_says_why_and_has_no_rows() -> None:
    section: Section[str, int] = Section()
    section.replace({"a": 1}, 5.0)

    section.mark_missing("the broker does not tell")

    assert ("the broker does not tell", {}, 0) == (section.missing, dict(section), section.total)


def test_a_list_that_could_not_be_read_once_keeps_its_rows() -> None:
    section: Section[str, int] = Section()
    section.replace({"a": 1}, 5.0)

    section.mark_failed("no answer")
    assert ("no answer", {"a": 1}) == (section.failure, dict(section))
    section.replace({"a": 2}, 6.0)

    assert (None, None) == (section.failure, section.missing)
