"""The last log lines."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pytest

from trionet.metrics._log_ring import LINE_CHARS_MAX, LogRing


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    """A logger of the test's own, whose lines go nowhere else."""
    found = logging.getLogger("trionet.test")
    found.setLevel(logging.DEBUG)
    found.propagate = False
    yield found
    for handler in list(found.handlers):
        found.removeHandler(handler)
    found.propagate = True
    found.setLevel(logging.NOTSET)


def test_lines_are_kept_with_what_belongs_to_them(logger: logging.Logger) -> None:
    ring = LogRing()
    logger.addHandler(ring)

    logger.warning("disk %s is full", "sda")

    [line] = ring.page(10)
    assert (0, "WARNING", "trionet.test", "disk sda is full") == (
        line.number,
        line.level,
        line.logger,
        line.text,
    )
    assert line.time > 1_700_000_000


def test_below_its_level_nothing_is_kept(logger: logging.Logger) -> None:
    ring = LogRing(logging.WARNING)
    logger.addHandler(ring)

    logger.info("started")

    assert (0, []) == (ring.total, ring.page(10))


def test_the_last_line_comes_first_and_pages_do_not_move(logger: logging.Logger) -> None:
    ring = LogRing(lines_max=4)
    logger.addHandler(ring)
    for number in range(6):
        logger.info("line %d", number)

    first = ring.page(2)
    logger.info("one more")
    second = ring.page(2, before=first[-1].number)

    assert ["line 5", "line 4"] == [line.text for line in first]
    # `line 2` had to make room.
    assert ["line 3"] == [line.text for line in second]
    assert (7, 4) == (ring.total, len(ring))
    assert [] == ring.page(2, before=0)
    assert ["one more"] == [line.text for line in ring.page(1, before=99)]


def test_a_long_line_is_cut(logger: logging.Logger) -> None:
    ring = LogRing()
    logger.addHandler(ring)

    logger.info("x" * 10_000)

    [line] = ring.page(1)
    assert ("x" * (LINE_CHARS_MAX - 1)) + "…" == line.text


def test_a_traceback_is_part_of_its_line(logger: logging.Logger) -> None:
    ring = LogRing()
    logger.addHandler(ring)

    try:
        raise KeyError("lost")
    except KeyError:
        logger.exception("failed")

    [line] = ring.page(1)
    assert line.text.startswith("failed\nTraceback")
    assert line.text.endswith("KeyError: 'lost'")


def test_a_line_that_cannot_be_made_is_left_out(
    logger: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    ring = LogRing()
    logger.addHandler(ring)

    logger.info("%d lines", "many")
    logger.info("fine")

    assert ["fine"] == [line.text for line in ring.page(10)]


def test_threads_may_write_while_pages_are_read(logger: logging.Logger) -> None:
    ring = LogRing(lines_max=10)
    logger.addHandler(ring)
    count = 2000

    def write() -> None:
        for _ in range(count):
            logger.info("x")

    writers = [threading.Thread(target=write) for _ in range(3)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        numbers = [line.number for line in ring.page(10)]
        assert sorted(numbers, reverse=True) == numbers
    for writer in writers:
        writer.join()

    assert 3 * count == ring.total
