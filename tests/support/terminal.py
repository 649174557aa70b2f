"""A terminal with a program in it, as a user has one: tmux, without a window."""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

#: How often the screen is looked at while something is waited for, if tmux tells of no change.
LOOK_SECONDS: Final = 0.25
#: How long anything may take on a busy machine.
WAIT_SECONDS: Final = 30.0

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="there is no tmux here")

#: What the shell shows when it waits for a command; nothing else on the screen looks like it.
PROMPT: Final = "shell> "


class Terminal:
    """A screen of so many cells, with a shell in it.

    Args:
        socket: of the tmux server.
        changes: tells something whenever the screen changes.
    """

    def __init__(self, socket: Path, changes: int) -> None:
        self._socket = socket
        self._changes = changes

    def tmux(self, *words: str) -> str:
        """What a command of tmux says."""
        command = ["tmux", "-S", str(self._socket), *words]
        done = subprocess.run(command, capture_output=True, check=True, timeout=WAIT_SECONDS)
        return done.stdout.decode()

    def run(self, command: Sequence[str | Path]) -> None:
        """Type a command into the shell."""
        self.type(shlex.join(map(str, command)))
        self.press("Enter")

    def press(self, *keys: str) -> None:
        """Press keys, by tmux's names of them: ``q``, ``Enter``, ``C-z``, ``Up``."""
        self.tmux("send-keys", *keys)

    def type(self, text: str) -> None:
        """Type text as it is."""
        self.tmux("send-keys", "-l", "--", text)

    def click(self, column: int, row: int) -> None:
        """Press and release the left button; 0 is the leftmost column and the uppermost row."""
        for end in "Mm":
            self.tmux("send-keys", "-H", *_hex(f"\x1b[<0;{column + 1};{row + 1}{end}"))

    def kill_program(self, number: signal.Signals) -> None:
        """Send a signal to the program in the foreground of the shell."""
        pid = int(self._flag("pane_pid"))
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        os.kill(int(children[-1]), number)

    def screen(self) -> list[str]:
        """The lines of the screen, without blanks at their ends."""
        return self.tmux("capture-pane", "-p").split("\n")

    def text(self) -> str:
        """The screen as one text."""
        return "\n".join(self.screen())

    def history(self) -> str:
        """What was shown on the screen of the shell from its start on, as one text."""
        return self.tmux("capture-pane", "-p", "-J", "-S", "-")

    def resize(self, columns: int, lines: int) -> None:
        """Give the screen another size."""
        self.tmux("resize-window", "-x", str(columns), "-y", str(lines))

    def has_alternate_screen(self) -> bool:
        """Whether a program has taken the screen."""
        return "1" == self._flag("alternate_on")

    def shows_cursor(self) -> bool:
        """Whether the cursor is seen."""
        return "1" == self._flag("cursor_flag")

    def reports_mouse(self) -> bool:
        """Whether clicks are told to the program."""
        return "1" == self._flag("mouse_any_flag")

    def _flag(self, name: str) -> str:
        return self.tmux("display-message", "-p", f"#{{{name}}}").strip()

    def modes(self) -> str:
        """The settings of the terminal's line, without its size, as the next command finds them.

        While the shell waits it has settings of its own, which hide what a program has left.
        """
        told = self._socket.with_name("modes")
        if not told.exists():
            os.mkfifo(told)
        self.wait_for_prompt()
        self.type(f"stty -a | tail -n +2 >{told}")
        self.press("Enter")
        modes = told.read_text()
        self.wait_for_prompt()  # what is typed before would be echoed twice
        return modes

    def wait_until(
        self, is_so: Callable[[str], object], what: str, seconds: float = WAIT_SECONDS
    ) -> str:
        """The screen as soon as it is so."""
        ends = time.monotonic() + seconds
        while True:
            text = self.text()
            if is_so(text):
                return text
            assert time.monotonic() < ends, f"never seen: {what}; the screen is\n{text}"
            if select.select([self._changes], [], [], LOOK_SECONDS)[0]:
                os.read(self._changes, 65536)

    def wait_for(self, *texts: str, seconds: float = WAIT_SECONDS) -> str:
        """The screen as soon as all of these are on it."""
        return self.wait_until(
            lambda screen: all(text in screen for text in texts), repr(texts), seconds
        )

    def wait_for_prompt(self) -> str:
        """The screen as soon as the shell waits for a command."""
        return self.wait_until(lambda text: text.rstrip("\n").endswith(PROMPT.rstrip()), "a prompt")


@contextlib.contextmanager
def terminal(
    columns: int = 120, lines: int = 40, env: Mapping[str, str] | None = None
) -> Iterator[Terminal]:
    """A terminal with a shell that waits for a command.

    Args:
        columns: of its screen.
        lines: of its screen.
        env: adds to the environment of what runs in it.
    """
    with tempfile.TemporaryDirectory(prefix="tmux-") as folder:
        # A path of a socket may have a hundred characters or so.
        tmux = ["tmux", "-S", f"{folder}/s", "-f", "/dev/null", "-u"]
        Path(folder, "rc").write_text(f"PS1='{PROMPT}'; unset HISTFILE\n")
        variables = {"LC_ALL": "C.UTF-8", **(env or {})}
        given = [word for name, value in variables.items() for word in ("-e", f"{name}={value}")]
        size = ["-x", str(columns), "-y", str(lines)]
        bash = f"bash --noprofile --rcfile {folder}/rc"
        shell = ["new-session", "-d", *size, *given, bash]
        clean = {key: value for key, value in os.environ.items() if key not in {"TMUX", "NO_COLOR"}}
        manual = ["set-option", "-g", "window-size", "manual"]
        subprocess.run([*tmux, *shell, ";", *manual], check=True, env=clean, timeout=WAIT_SECONDS)
        # A client without a screen, which is told of whatever the shell's screen shows.
        with subprocess.Popen(
            [*tmux, "-C", "attach-session", "-f", "ignore-size"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as watcher:
            assert watcher.stdout is not None
            found = Terminal(Path(folder) / "s", watcher.stdout.fileno())
            try:
                found.wait_for_prompt()
                yield found
            finally:
                with contextlib.suppress(subprocess.CalledProcessError):
                    found.tmux("kill-server")
                watcher.kill()  # it would wait for somebody to read what it says last


def _hex(text: str) -> list[str]:
    return [f"{byte:02x}" for byte in text.encode()]


def close_connection_of(screen: Terminal, client_id: str) -> None:
    """Close the only connection of a client from the dashboard, in the view of connections."""
    screen.press("2", "/")
    screen.type(client_id)
    screen.press("Enter")
    screen.wait_for("1 of")
    screen.press("K")
    screen.wait_for("Close the connection of")
    screen.press("y")
    screen.wait_for("closed connection")
