"""Strings that are not valid UTF-8 are decoded as Java decodes them."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from trionet.errors import WireFormatError
from trionet.protocol import api_keys
from trionet.protocol._codec import ApiVersionCodec, lookup
from trionet.protocol._lenient_text import is_text_error, lenient
from trionet.protocol._stepping import stepping
from trionet.protocol._wire import TEXT_BYTES_MAX, varint

DELETE_TWO_TOPICS = b"\x03" + b"\3t\xc3" + b"\2u" + bytes(4) + b"\0"


@pytest.fixture
def codec() -> ApiVersionCodec:
    found = lookup(api_keys.DELETE_TOPICS, 5)
    assert found is not None
    return found


def test_what_is_not_utf_8_is_replaced(codec: ApiVersionCodec) -> None:
    with pytest.raises(WireFormatError) as caught:
        codec.decode_request(DELETE_TWO_TOPICS, 0)
    assert is_text_error(caught.value)

    message = lenient(codec.decode_request)(DELETE_TWO_TOPICS, 0)

    assert ["t\ufffd", "u"] == message.topic_names


def test_what_would_become_too_long_for_a_response_stays_invalid(codec: ApiVersionCodec) -> None:
    def decoded(name: bytes) -> str:
        request = b"\x02" + varint(len(name) + 1) + name + bytes(4) + b"\0"
        [text] = lenient(codec.decode_request)(request, 0).topic_names
        assert isinstance(text, str)
        return text

    count = TEXT_BYTES_MAX // len("\ufffd".encode())
    rest = TEXT_BYTES_MAX % len("\ufffd".encode())
    assert "a" * rest + "\ufffd" * count == decoded(b"a" * rest + b"\xff" * count)
    for longer in (b"a" * rest + b"a" + b"\xff" * count, b"\xff" * TEXT_BYTES_MAX):
        with pytest.raises(WireFormatError, match="UTF-8"):
            decoded(longer)


def test_it_has_a_form_that_runs_in_steps(codec: ApiVersionCodec) -> None:
    names: list[str] = []

    def work() -> Generator[None, None, None]:
        decode = stepping(lenient(codec.decode_request), DELETE_TWO_TOPICS, 0)
        names.extend((yield from decode).topic_names)

    assert 2 == len(list(work()))
    assert ["t\ufffd", "u"] == names


def test_other_errors_are_not_taken_for_those_of_text(codec: ApiVersionCodec) -> None:
    for decode in (codec.decode_request, lenient(codec.decode_request)):
        with pytest.raises(WireFormatError) as caught:
            decode(DELETE_TWO_TOPICS[:2], 0)
        assert not is_text_error(caught.value)
