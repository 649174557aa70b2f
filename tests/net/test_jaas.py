"""The syntax of ``sasl.jaas.config``."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.errors import ConfigError
from trionet.net.sasl._jaas import LoginModule, parse_jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def test_the_users_of_plain() -> None:
    """A18: the form that Kafka's documentation shows."""
    module = parse_jaas(
        f"""{PLAIN} required \\
        username="admin" password="admin-secret"
        user_admin="admin-secret"
        user_alice="alice, = ; secret";""".replace("\\\n", "\n")
    )

    assert PLAIN == module.name
    assert {"admin": "admin-secret", "alice": "alice, = ; secret"} == module.users
    assert "admin" == module.options["username"]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("M required;", {}),
        ("M REQUIRED ;", {}),
        ("M optional a=b c = 'd e' ;", {"a": "b", "c": "d e"}),
        ('M sufficient a="" a="last";', {"a": "last"}),
        (r'M requisite a="\"\\\t\101\x";', {"a": '"\\\tAx'}),
        ("// one\nM /* two\n */ required a=b; // three", {"a": "b"}),
        ('M required "a b"="c";', {"a b": "c"}),
        ("M required user_ä.b-c$=x_1;", {"user_ä.b-c$": "x_1"}),
        ('M required a="\\1011";', {"a": "A1"}),
    ],
)
def test_options_are_read_as_java_reads_them(text: str, options: dict[str, str]) -> None:
    assert LoginModule("M", options) == parse_jaas(text)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "exactly one login module, but has 0"),
        ("M required; N required;", "exactly one login module, but has 2"),
        ("M", "no flag after the class"),
        ("M needed;", "no flag after the class"),
        ("; M required;", "class of a login module"),
        ("M required", "missing ; at the end"),
        ("M required a=secret", "missing ; at the end"),
        ("M required a;", "an option has no value"),
        ("M required a=;", "an option has no value"),
        ("M required a", "an option has no value"),
        ("M required a=", "an option has no value"),
        ("M required =a;", "expected an option, found '='"),
        ('M required a="secret;', "position 14"),
        ("M required a=#secret;", "position 14"),
        ("M required /* for ever", "position 12"),
    ],
)
def test_another_form_is_an_error_that_shows_no_secret(text: str, fault: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_jaas(text, "listener.name.x.plain.sasl.jaas.config")

    assert fault in str(caught.value)
    assert "secret" not in str(caught.value)
    assert str(caught.value).startswith("listener.name.x.plain.sasl.jaas.config")


def test_passwords_are_no_part_of_a_repr() -> None:
    assert "secret" not in repr(parse_jaas('M required user_a="secret";'))


@given(
    st.dictionaries(
        st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), min_size=1),
        st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])),
    )
)
def test_what_is_written_is_read_back(options: dict[str, str]) -> None:
    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    written = " ".join(f"{quoted(key)}={quoted(value)}" for key, value in options.items())

    assert options == parse_jaas(f"M required {written};").options


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_jaas(text)
    except ConfigError:
        pass
