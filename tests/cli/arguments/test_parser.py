"""Words are taken wherever they stand between options."""

from __future__ import annotations

import pytest

from trionet.cli.arguments._parser import Parser


def made() -> Parser:
    """A program with one subcommand: a word, more words, and options."""
    parser = Parser(prog="program")
    command = parser.add_subparsers().add_parser("run")
    command.add_argument("first", nargs="?")
    command.add_argument("rest", nargs="*")
    command.add_argument("-a", action="append", default=[])
    command.add_argument("-b", action="store_true")
    return parser


@pytest.mark.parametrize(
    "words",
    [
        "one two three -a x -b",
        "-a x one two three -b",
        "one -a x two -b three",
        "one -b two -a x three",
    ],
)
def test_words_and_options_mix(words: str) -> None:
    found = made().parse_args(["run", *words.split()])

    assert ("one", ["two", "three"], ["x"], True) == (found.first, found.rest, found.a, found.b)


def test_a_dash_is_a_word_and_nothing_is_nothing() -> None:
    found = made().parse_args(["run", "one", "-b", "-"])
    assert ("one", ["-"]) == (found.first, found.rest)

    found = made().parse_args(["run"])
    assert (None, [], [], False) == (found.first, found.rest, found.a, found.b)


def test_after_two_dashes_all_are_words() -> None:
    found = made().parse_args(["run", "-b", "--", "-a", "x"])

    assert ("-a", ["x"], True) == (found.first, found.rest, found.b)


@pytest.mark.parametrize("words", ["one -c", "one -b two -c three", "--all"])
def test_an_unknown_option_is_an_error(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        made().parse_args(["run", *words.split()])

    assert 2 == ended.value.code
    assert "unrecognized arguments: " in capsys.readouterr().err
