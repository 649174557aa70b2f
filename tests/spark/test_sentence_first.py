"""The sentence of an error comes first in the text that Spark shows of it."""

from __future__ import annotations

import traceback

import pytest

from trionet.errors import ApiError, ConfigError, TrionetError
from trionet.protocol import error_codes
from trionet.spark._offset_limits import OffsetsMismatchError, UnreadRangeError
from trionet.spark._sentence_first import sentence_first


def text_of(error: Exception) -> str:
    """What PySpark sends to the JVM: see ``handle_worker_exception``."""
    with pytest.raises(type(error)) as caught, sentence_first():
        raise error
    return "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "error",
    [
        ConfigError("subscribe: no topics"),
        OffsetsMismatchError("KAFKA_NO_OFFSET_FOR_TIMESTAMP", "give an earlier timestamp"),
        UnreadRangeError("t-0: offsets 3 to 5"),
        ApiError(error_codes.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_the_first_line_is_the_sentence_and_the_last_one_remains(error: TrionetError) -> None:
    lines = text_of(error).splitlines()

    kind = f"{type(error).__module__}.{type(error).__qualname__}"
    assert f"{kind}: {error}" == lines[0] == lines[-1]
    assert any(line.startswith("Traceback") for line in lines)


def test_the_sentence_comes_before_the_causes_of_an_error() -> None:
    error = ConfigError("the file cannot be read")
    error.__cause__ = OSError("no such file")
    error.__cause__.__context__ = KeyError("file")

    lines = text_of(error).splitlines()

    assert "trionet.errors.ConfigError: the file cannot be read" == lines[0] == lines[-1]
    assert lines.index("KeyError: 'file'") < lines.index("OSError: no such file")


def test_other_errors_stay_as_they_are() -> None:
    assert text_of(ZeroDivisionError()).startswith("Traceback")


def test_nested_decorated_functions_add_the_sentence_once() -> None:
    @sentence_first()
    def fail() -> None:
        raise ConfigError("wrong")

    @sentence_first()
    def outer() -> None:
        fail()

    with pytest.raises(ConfigError) as caught:
        outer()
    text = "".join(traceback.format_exception(caught.value))
    assert text.startswith("trionet.errors.ConfigError: wrong\n")
    assert 2 == text.count("ConfigError: wrong")
