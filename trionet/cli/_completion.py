"""``trionet completion``: what a shell has to know to complete a command line."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Final

from .terminal._output import stdout

SHELLS: Final = ("bash", "zsh", "fish")
_HOW: Final = """\
bash: trionet completion bash > ~/.local/share/bash-completion/completions/trionet
zsh:  trionet completion zsh > ~/.zfunc/_trionet   (with fpath+=~/.zfunc before compinit)
fish: trionet completion fish > ~/.config/fish/completions/trionet.fish
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments to ``parser``."""
    parser.description = (
        "Print a file that lets a shell complete commands, options and their values. It is made of "
        "this version's commands; names of topics and groups are not looked up."
    )
    parser.epilog = _HOW
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("shell", choices=SHELLS, help="for which shell")


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit status: 0 printed."""
    from .main import whole_parser
    from .shells._tree import places

    shell = import_module(f"trionet.cli.shells._{arguments.shell}")
    stdout().write(shell.script(places(whole_parser())))
    return 0
