"""The .properties format, rule by rule."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.broker.config._properties import (
    PROPERTIES_BYTES_MAX,
    parse_properties,
    read_properties,
)
from trionet.errors import ConfigError


@pytest.mark.parametrize(
    "text",
    ["a=b", "a:b", "a b", "a\tb", "a = b", "  a  :  b", "\fa\f=\fb", "a=\\\n   b", "\\\n a=b"],
)
def test_the_separator_is_an_equals_sign_a_colon_or_white_space(text: str) -> None:
    assert parse_properties(text) == {"a": "b"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a==b", {"a": "=b"}),
        ("a=b=c", {"a": "b=c"}),
        ("a = :b", {"a": ":b"}),
        ("a b c", {"a": "b c"}),
        ("a=b  ", {"a": "b  "}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("a=1\na=2", {"a": "2"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
    ],
)
def test_only_the_first_separator_counts(text: str, expected: dict[str, str]) -> None:
    assert expected == parse_properties(text)


def test_comments_and_blank_lines_say_nothing() -> None:
    assert parse_properties("# x\n  ! y=1\\\n\n \t\na=1 # not one\n") == {"a": "1 # not one"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1,\\\n    2,\\\r\n\t3", {"a": "1,2,3"}),
        ("a=1\\\n#2", {"a": "1#2"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\\\\\\nb=2", {"a": "1\\b=2"}),
        ("a=1\\", {"a": "1"}),
        ("a=1\\\n\nb=2", {"a": "1", "b": "2"}),
        ("\\\n# a comment\nb=2", {"b": "2"}),
        ("\\\n\n", {}),
        ("\\", {}),
    ],
)
def test_an_odd_number_of_backslashes_continues_a_line(text: str, expected: dict[str, str]) -> None:
    assert expected == parse_properties(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"a\ b\=c\:d=1", {"a b=c:d": "1"}),
        (r"a=\t\n\r\f\q\\", {"a": "\t\n\r\fq\\"}),
        (r"a=C:\\data", {"a": "C:\\data"}),
        (r"a=\ b", {"a": " b"}),
        (r"\#a=1", {"#a": "1"}),
        (r"a=\u00e9\u20AC", {"a": "é€"}),
        (r"a=\ud83d\ude00", {"a": "😀"}),
        (r"a=\ud83d!", {"a": "\ufffd!"}),
    ],
)
def test_escapes(text: str, expected: dict[str, str]) -> None:
    assert expected == parse_properties(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a=1\n\n=2", "server.properties:3: no key before '=2'"),
        ("# c\n : 2", "server.properties:2: no key before ': 2'"),
        ("a=1\nb=\\\n 2\\\n \\u12", "server.properties:2: malformed escape '\\\\u12'"),
        (r"a=\u12x4", "server.properties:1: malformed escape"),
        (r"a=C:\users", "server.properties:1: malformed escape"),
    ],
)
def test_a_malformed_line_is_named(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_properties(text, "server.properties")

    assert str(caught.value).startswith(message)


def test_all_malformed_lines_are_named() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_properties("=1\na=1\nb=\\u\n", "server.properties")

    one, two = caught.value.args
    assert one.startswith("server.properties:1: no key ")
    assert two.startswith("server.properties:3: malformed escape ")


@pytest.mark.parametrize(
    "data", ["a=é".encode(), "a=é".encode("iso-8859-1"), b"\xef\xbb\xbfa=\xc3\xa9"]
)
def test_a_file_is_utf_8_or_what_java_takes_it_for(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "server.properties"
    path.write_bytes(data)

    assert read_properties(path) == {"a": "é"}


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*nowhere\.properties: No such file"):
        read_properties(tmp_path / "nowhere.properties")


def test_errors_of_a_file_name_it(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("a=1\n=2\n")

    with pytest.raises(ConfigError, match=r"server\.properties:2: "):
        read_properties(path)


def _escape(text: str) -> str:
    return "".join(f"\\u{unit:04x}" for unit in memoryview(text.encode("utf-16-le")).cast("H"))


_TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.dictionaries(_TEXTS.filter(bool), _TEXTS))
def test_everything_can_be_written_with_escapes(properties: dict[str, str]) -> None:
    text = "\n".join(f"{_escape(key)}={_escape(value)}" for key, value in properties.items())

    assert properties == parse_properties(text)


@given(st.text(alphabet="ab=: \t\\\nu0#!\r"))
def test_any_text_parses_or_is_exactly_one_error(text: str) -> None:
    try:
        properties = parse_properties(text)
    except ConfigError:
        return
    assert all(properties.keys())


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs Linux's devices")
def test_a_device_a_folder_or_an_endless_pipe_is_refused(tmp_path: Path) -> None:
    for path in (Path("/dev/zero"), tmp_path):
        with pytest.raises(ConfigError, match=f"cannot read {path}: it is a (device|directory)"):
            read_properties(path)
    with subprocess.Popen(["yes", "a=b"], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        with pytest.raises(ConfigError, match=f"; at most {PROPERTIES_BYTES_MAX} bytes are"):
            read_properties(f"/dev/fd/{writer.stdout.fileno()}")
        writer.stdout.close()


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="needs /dev/fd")
def test_a_pipe_of_a_shell_is_read_as_a_file() -> None:
    with subprocess.Popen(["echo", "a=b"], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert {"a": "b"} == read_properties(f"/dev/fd/{writer.stdout.fileno()}")
