"""Errors whose sentence comes first in what Spark shows of them.

Spark shows an error of a Python process as the text of its traceback, in which the sentence that
says what to change is the last line, with lines of Spark after it. A traceback begins with the
causes of its error, so the error gets one more at the very beginning: itself, which has no frames.

This serves the process that plans a stream. In its other processes PySpark removes the causes,
unless ``spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled`` is false.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import TrionetError


@contextmanager
def sentence_first() -> Iterator[None]:
    """Put the sentence of a :class:`TrionetError` first; as a decorator, too."""
    try:
        yield
    except TrionetError as error:
        put_first(error)
        raise


def put_first(error: TrionetError) -> None:
    """Put the sentence of an error first in its traceback."""
    first: BaseException = error
    while (before := _cause(first)) is not None:
        first = before
    if first is error or str(first) != str(error):  # it may be there already
        first.__cause__ = _without_frames(error)


def _cause(error: BaseException) -> BaseException | None:
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _without_frames(error: TrionetError) -> TrionetError:
    kind = type(error)
    copied = kind.__new__(kind, *error.args)
    copied.__dict__.update(error.__dict__)
    return copied
