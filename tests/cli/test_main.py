"""The command line as its users see it: what goes where, and with which exit status."""

from __future__ import annotations

import subprocess
import sys

import pytest

from trionet import __version__, is_compiled
from trionet.cli.main import COMMANDS, main

VERSION = f"trionet {__version__} ({'compiled' if is_compiled() else 'pure Python'})"


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])

    assert 0 == stopped.value.code
    assert f"{VERSION}\n" == capsys.readouterr().out


def test_help_lists_every_subcommand_with_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--help"])

    printed = " ".join(capsys.readouterr().out.split())
    assert 0 == stopped.value.code
    assert [] == [name for name, (text, _) in COMMANDS.items() if f"{name} {text}" not in printed]


def test_an_unknown_subcommand_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["brokr"])

    assert 2 == stopped.value.code
    assert "'brokr'" in capsys.readouterr().err


def test_no_subcommand_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([])

    assert 2 == stopped.value.code
    assert "COMMAND" in capsys.readouterr().err


@pytest.mark.parametrize("name", COMMANDS)
def test_a_subcommand_explains_its_options(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([name, "--help"])

    assert 0 == stopped.value.code
    assert capsys.readouterr().out.startswith(f"usage: trionet {name} ")


def test_a_wrong_setting_is_one_line_and_exit_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["broker", "--set", "log.retention.hour=1"])

    error = capsys.readouterr().err
    assert 2 == status
    assert error.startswith("trionet broker: ")
    assert "log.retention.hours" in error


def test_the_package_is_the_command_too() -> None:
    command = [sys.executable, "-m", "trionet", "--version"]

    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert f"{VERSION}\n" == done.stdout


def test_ctrl_c_while_the_command_is_imported_is_quiet() -> None:
    program = (
        "import sys\n"
        "class Interrupts:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'trionet.cli.main':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupts())\n"
        "from trionet.__main__ import main\n"
        "sys.exit(main())\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )

    assert (130, "", "") == (done.returncode, done.stdout, done.stderr)
