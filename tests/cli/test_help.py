"""What the command says about itself: help, examples, and what is wrong with a command line."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator

import pytest

from support.command_runs import Run
from trionet.cli.arguments._parser import examples
from trionet.cli.main import COMMANDS, whole_parser


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from parsers(each)


ALL = {parser.prog: parser for parser in parsers(whole_parser())}
GROUPS = [prog for prog, parser in ALL.items() if parser._subparsers is not None]


def arguments_of(example: str) -> list[str]:
    """The arguments of the command in a pipe, without what the shell takes."""
    words = list(shlex.shlex(example, posix=True, punctuation_chars="|>"))
    words = shlex.split(example) if not {"|", ">"} & set(words) else words
    words = words[words.index("trionet") + 1 :]
    return words[: words.index(">")] if ">" in words else words


@pytest.mark.parametrize("prog", ALL)
def test_help_ends_with_two_examples_that_the_command_takes(prog: str) -> None:
    found = examples(prog)

    assert 2 == len(set(found))
    assert ALL[prog].format_help().endswith("\nexamples:\n  {}\n  {}\n".format(*found))
    name = prog.removeprefix("trionet").split()
    for each in found:
        words = arguments_of(each)
        assert name == words[: len(name)]
        ALL["trionet"].parse_args(words)


@pytest.mark.parametrize("prog", GROUPS)
def test_a_command_alone_lists_its_subcommands(prog: str, run: Run) -> None:
    done = run(*prog.split()[1:])

    assert (2, "") == (done.status, done.out)
    assert ALL[prog].format_help() == done.err


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_is_almost_right_is_named(name: str, run: Run) -> None:
    wrong = name.removesuffix("s") if name not in {"configs", "config"} else f"{name}x"
    wrong = wrong if wrong != name else f"{name}s"

    done = run(wrong, "list")

    assert 2 == done.status
    assert f"trionet: error: unknown command '{wrong}'; the closest match is {name} (" in done.err


def test_a_subcommand_that_is_almost_right_is_named(run: Run) -> None:
    done = run("topics", "lst")

    assert done.err.startswith("usage: trionet topics [-h] COMMAND")
    assert "unknown command 'lst'; the closest match is list (choose from list, " in done.err


@pytest.mark.parametrize(
    ("line", "usage", "message"),
    [
        ("topics list --formt json", "topics list", "--formt; the closest match is --format"),
        ("topics list --format jsn", "topics list", "invalid choice: 'jsn'; the closest match is"),
        ("consume orders --xyz", "consume", "unrecognized arguments: --xyz"),
        ("topics --internal list", "topics", "unrecognized arguments: --internal"),
        ("configs users set", "configs users set", "arguments are required: USER"),
        ("completion bash fish", "completion", "unrecognized arguments: fish"),
        ("produce orders a -Q", "produce", "unrecognized arguments:"),
    ],
)
def test_an_error_shows_the_usage_of_what_it_is_about(
    line: str, usage: str, message: str, run: Run
) -> None:
    done = run(*line.split())

    assert (2, "") == (done.status, done.out)
    assert done.err.startswith(f"usage: trionet {usage} [-h]")
    assert f"trionet {usage}: error: " in done.err
    assert message in done.err
