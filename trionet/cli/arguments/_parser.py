"""The command-line parser, and commands with subcommands."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias

from trionet._util._text import nearest, single_line

#: Adds one argument, or a few that belong together, to a parser or to a group of its arguments.
Argument: TypeAlias = "Callable[[Any], object]"
Run: TypeAlias = "Callable[[argparse.Namespace], int]"


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that accepts options between positional arguments, and helps more.

    In ``produce TOPIC -H a=b FILE``, argparse would set the optional FILE to its default
    on reaching ``-H`` and then reject the value that follows.

    The help ends with examples. A command without its subcommand prints the help. An error shows
    the usage of the subcommand that it is about, and the closest name to a misspelt one.
    """

    _is_retrying = False

    def parse_known_args(  # type: ignore[override]  # the overloads add nothing
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse the arguments, and retry with intermixed parsing if arguments are left over.

        No argument is returned as unknown: argparse would have the outermost parser report it,
        with the usage of that one.
        """
        if self._subparsers is not None and args is not None and not args:
            # Still an error, with the status of one: a script may have lost a variable.
            self.print_help(sys.stderr)
            self.exit(2)
        found, rest = super().parse_known_args(args, namespace)
        if not rest or self._is_retrying:
            return found, rest
        if self._subparsers is None and "--" not in (args or ()) and not _has_options(rest):
            self._is_retrying = True
            try:
                found, rest = self.parse_known_intermixed_args(args, namespace)
            finally:
                self._is_retrying = False
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}{self._hint(rest)}")
        return found, rest

    def _hint(self, unknown: Sequence[str]) -> str:
        names = [word.partition("=")[0] for word in unknown if word.startswith("--")]
        if not names:
            return ""
        # Without the dashes, which would make all options alike.
        options = [each[2:] for each in self._option_string_actions if each[:2] == "--"]
        return nearest(names[0][2:], options).replace(" is ", " is --")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        choices = action.choices
        if choices is not None and value not in choices and isinstance(value, str):
            what = "unknown command" if isinstance(action, _SubParsers) else "invalid choice:"
            names = [str(each) for each in choices]
            raise argparse.ArgumentError(
                None if isinstance(action, _SubParsers) else action,
                f"{what} {value!r}{nearest(value, names)} (choose from {', '.join(names)})",
            )
        super()._check_value(action, value)

    def error(self, message: str) -> NoReturn:
        """Print the usage and the error, which may quote the name of a file, and exit."""
        super().error(single_line(message))

    def format_help(self) -> str:
        """Return the help text, which ends with examples."""
        lines = "".join(f"  {line}\n" for line in examples(self.prog))
        return super().format_help() + (f"\nexamples:\n{lines}" if lines else "")


def examples(prog: str) -> list[str]:
    """Return example command lines of a command, such as ``trionet topics list``."""
    import tomllib
    from pathlib import Path

    path = Path(__file__).parents[1] / "examples.toml"
    found = tomllib.loads(path.read_text("utf-8"))
    lines: list[str] = found.get(prog.removeprefix("trionet").strip(), [])
    return lines


_SubParsers: Final = argparse._SubParsersAction  # noqa: SLF001 -- it has no public name


def _has_options(words: Sequence[str]) -> bool:
    """Return whether any of the words is an option, which argparse then rejects as unknown."""
    return any(word.startswith("-") and word != "-" for word in words)


def argument(dest: str, metavar: str, help: str, **options: Any) -> Argument:
    """Return a positional argument.

    Args:
        dest: the name of the attribute of the parsed arguments.
        metavar: the name in the help text.
        help: the help text.
        options: further parameters of argparse's ``add_argument``.
    """
    return lambda parser: parser.add_argument(dest, metavar=metavar, help=help, **options)


def option(usage: str, help: str, **options: Any) -> Argument:
    """Return an option.

    Args:
        usage: its spellings and the name of its value as in the help text, such as
            ``-p, --partitions N``.
        help: the help text.
        options: further parameters of argparse's ``add_argument``.
    """
    spellings = re.match(r"(?:--?[\w-]+(?:, )?)+", usage)
    assert spellings is not None, usage
    if metavar := usage[spellings.end() :].strip():
        options["metavar"] = metavar
    flags = spellings[0].split(", ")
    return lambda parser: parser.add_argument(*flags, help=help, **options)


def log_level(default: str = "info") -> Argument:
    """Return the option of the commands that log to standard error."""
    return option(
        "--log-level",
        f"lowest level that is logged on standard error (default: {default})",
        default=default,
        choices=["debug", "info", "warning", "error"],
    )


def repeatable(usage: str, help: str, **options: Any) -> Argument:
    """Return an option whose values are collected in a list, which is empty by default."""
    return option(usage, help, action="append", default=[], **options)


def flag(usage: str, help: str, **options: Any) -> Argument:
    """Return an option without a value."""
    return option(usage, help, action="store_true", **options)


def add_all(parser: argparse._ActionsContainer, *arguments: Argument) -> None:
    """Add arguments to a parser or to a group of its arguments."""
    for each in arguments:
        each(parser)


def group(title: str, *arguments: Argument) -> Argument:
    """Return arguments that have a heading in the help text."""
    return lambda parser: add_all(parser.add_argument_group(title), *arguments)


def one_of(*arguments: Argument, required: bool = False) -> Argument:
    """Return arguments that exclude each other."""
    return lambda parser: add_all(
        parser.add_mutually_exclusive_group(required=required), *arguments
    )


class Verb(NamedTuple):
    """A subcommand of a command.

    Attributes:
        summary: the help text in the list of subcommands.
        add_arguments: adds the arguments of the subcommand to a parser.
        run: runs the subcommand and returns the exit status.
    """

    summary: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Run


def run(arguments: argparse.Namespace) -> int:
    """Run the chosen subcommand and return its exit status."""
    status: int = arguments.run_subcommand(arguments)
    return status


class Subcommands:
    """The subcommands of a command, in the order of its help text.

    Args:
        description: describes the command; by default its summary.
    """

    def __init__(self, *, description: str | None = None) -> None:
        self.run = run
        self._commands: dict[str, Verb] = {}
        self._description = description

    def command(
        self, name: str, summary: str, *arguments: Argument, description: str | None = None
    ) -> Callable[[Run], Run]:
        """Return a decorator that makes a subcommand of the function that runs it.

        Args:
            name: the name of the subcommand.
            summary: the help text in the list of subcommands.
            arguments: the arguments, in the order of the help text.
            description: describes the subcommand; by default the summary.
        """

        def add_arguments(parser: argparse.ArgumentParser) -> None:
            if description is not None:
                parser.description = description
            add_all(parser, *arguments)

        def add(run: Run) -> Run:
            self.add(name, Verb(summary, add_arguments, run))
            return run

        return add

    def add(self, name: str, verb: Verb) -> None:
        """Add a subcommand."""
        self._commands[name] = verb

    def add_nested(self, name: str, summary: str, commands: Subcommands) -> None:
        """Add a subcommand that has subcommands itself."""
        self.add(name, Verb(summary, commands.add_arguments, run))

    def extend(self, others: Subcommands) -> None:
        """Add all subcommands of others."""
        self._commands |= others._commands

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the subcommands and their arguments to ``parser``."""
        if self._description is not None:
            parser.description = self._description
        subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
        for name, verb in self._commands.items():
            subparser = subparsers.add_parser(
                name,
                help=verb.summary,
                description=f"{verb.summary[0].upper()}{verb.summary[1:]}.",
                allow_abbrev=False,
            )
            subparser.set_defaults(run_subcommand=verb.run, prog=subparser.prog)
            verb.add_arguments(subparser)
