"""Log lines: what a peer has written never begins one, and never reaches a terminal as it is."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from trionet._util._logging import get_logger

FORGED = "host\r\nERROR forged\x1b[2J\x9b\u202e\ud800"
SHOWN = r"host\r\nERROR forged\x1b[2J\x9b\u202e\ud800"


@pytest.fixture
def logger(caplog: pytest.LogCaptureFixture) -> Iterator[logging.Logger]:
    caplog.set_level("DEBUG", "trionet.test")
    found = get_logger("trionet.test")
    yield found
    found.filters.clear()


@pytest.mark.parametrize(
    ("message", "arguments", "line"),
    [
        ("lost %s", (FORGED,), f"lost {SHOWN}"),
        ("lost %(host)s", ({"host": FORGED},), f"lost {SHOWN}"),
        ("lost %s", (OSError(FORGED),), f"lost {SHOWN}"),
        (f"lost {FORGED} 100%", (), f"lost {SHOWN} 100%"),
        ("lost %r", ("a\x1bé",), r"lost 'a\x1bé'"),
    ],
)
def test_a_message_is_one_line_whoever_has_written_parts_of_it(
    message: str,
    arguments: tuple[object, ...],
    line: str,
    logger: logging.Logger,
    caplog: pytest.LogCaptureFixture,
) -> None:
    logger.warning(message, *arguments)
    logging.LoggerAdapter(logger).warning(message, *arguments)

    assert [line, line] == caplog.messages


def test_what_is_harmless_keeps_its_arguments(
    logger: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    logger.info("%d records of %s", 2, "t")

    [record] = caplog.records
    assert ("%d records of %s", (2, "t")) == (record.msg, record.args)


def test_a_message_that_cannot_be_formatted_raises_nothing(
    logger: logging.Logger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Unprintable(Exception):
        def __str__(self) -> str:
            raise ValueError("no text")

    monkeypatch.setattr(logger, "propagate", False)
    monkeypatch.setattr(logger, "handlers", [logging.StreamHandler()])
    logger.warning("failed: %s", Unprintable())

    assert "no text" in capsys.readouterr().err


def test_a_logger_escapes_once_however_often_it_is_asked_for(logger: logging.Logger) -> None:
    assert get_logger("trionet.test") is logger
    assert 1 == len(logger.filters)
