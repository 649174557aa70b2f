"""Loggers whose messages are one line each, whatever a peer has written into them."""

from __future__ import annotations

import logging

from ._text import single_line


def get_logger(name: str) -> logging.Logger:
    """Return the logger of this name, which escapes all unprintable characters in its messages.

    Hosts, ids, error messages and names of files come from others, who could otherwise forge lines
    of the log, or act on the terminal that shows it. The program's handlers and formatters see the
    escaped message.
    """
    logger = logging.getLogger(name)
    logger.addFilter(_escape)
    return logger


def _escape(record: logging.LogRecord) -> bool:
    try:
        message = record.getMessage()
    except Exception:  # boundary: a record that cannot be formatted; its handler reports that
        return True
    if not message.isprintable():
        record.msg, record.args = single_line(message), ()
    return True
