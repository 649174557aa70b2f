"""``trionet completion``: print a completion script for a shell."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Final

from .terminal._output import stdout

SHELLS: Final = {
    "bash": "trionet.cli.shells._bash",
    "zsh": "trionet.cli.shells._zsh",
    "fish": "trionet.cli.shells._fish",
}
_INSTALLATION: Final = """\
bash: trionet completion bash > ~/.local/share/bash-completion/completions/trionet
zsh:  trionet completion zsh > ~/.zfunc/_trionet   (with fpath+=~/.zfunc before compinit)
fish: trionet completion fish > ~/.config/fish/completions/trionet.fish
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.description = (
        "Print a script that lets a shell complete commands, options and their values. It covers "
        "the commands of this version; names of topics and groups are not looked up."
    )
    parser.epilog = _INSTALLATION
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("shell", choices=SHELLS, help="the shell")


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status."""
    from .main import whole_parser
    from .shells._tree import places

    shell = import_module(SHELLS[arguments.shell])
    stdout().write(shell.script(places(whole_parser())))
    return 0
