"""Make `.venv` once and go on inside it: what `python3 tests` and `python3 demo` begin with.

Runs on a bare Python, hence the standard library only, and nothing that an older Python could not
at least read: that one gets a sentence instead of a syntax error.

A set-up is finished when its stamp is written, and a stamp is written last and in one piece. So a
set-up that was killed, a changed `pyproject.toml`, a moved checkout or another Python is noticed at
the next start, and two first starts wait for each other at a lock that the system releases with
its process.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import IO, NoReturn

try:
    import fcntl
except ImportError:  # Windows: two first starts at once are the user's to avoid there
    fcntl = None  # type: ignore[assignment]

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
SCRIPTS = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = SCRIPTS / ("python.exe" if os.name == "nt" else "python")
OLDEST_PYTHON = (3, 11)
# Not sys.executable: that may be the Python of the very environment that is made anew.
STARTER = getattr(sys, "_base_executable", sys.executable)


class SetupFailed(Exception):
    """The environment cannot be made; the text tells the user what to do."""


def run_inside(extra: str, *command: str, also: Callable[[], None] | None = None) -> NoReturn:
    """Replace this process with the environment's Python, which runs ``command``.

    Args:
        extra: which of pyproject.toml's extras the command needs.
        command: the arguments of the environment's Python.
        also: more to set up, when the environment is there.
    """
    # Where bytecode is not written, each of the many processes to come compiles trio, rich and the
    # package anew: half a second each. It goes where git ignores it.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    try:
        prepare(extra)
        if also is not None:
            also()
    except SetupFailed as failure:
        sys.exit(f"trionet: {failure}")
    except KeyboardInterrupt:
        sys.exit("\ntrionet: set-up interrupted; the next start takes it up again")
    arguments = [str(PYTHON), *command]
    # What a test or an example starts by name comes from the environment too.
    os.environ["PATH"] = f"{SCRIPTS}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    sys.stdout.flush()
    if os.name == "nt":  # Windows' exec returns to the shell before the program ends
        sys.exit(subprocess.call(arguments))
    os.execv(arguments[0], arguments)


def prepare(extra: str) -> None:
    """Make the environment and install the package with ``extra``, unless that was done."""
    if sys.version_info < OLDEST_PYTHON:
        raise SetupFailed(
            f"Python 3.11 or newer is needed, this is {sys.version.split()[0]} ({sys.executable})"
        )
    if is_ready(extra):
        return
    VENV.mkdir(exist_ok=True)
    with locked(VENV / "lock"):
        if is_ready(extra):
            return  # made while we waited
        with Progress("trionet: setting up .venv (once)") as progress:
            _make_environment(progress)
            _install(extra, progress)
            write(_stamp_file(extra), _expected_stamp())


def is_ready(extra: str) -> bool:
    """Whether the environment is made, with ``extra``."""
    return _stamp(extra) == _expected_stamp()


def _make_environment(progress: Progress) -> None:
    if PYTHON.exists() and read(VENV / "python") == python_identity():
        return
    if VENV.is_symlink():  # it is another checkout's, and would be emptied
        raise SetupFailed(f"{VENV} is a link to {VENV.resolve()}; remove the link")
    # What another Python, another path or an interrupted start left is not worth repairing.
    for path in VENV.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != "lock":
            path.unlink()
    create = [STARTER, "-m", "venv"]
    if find_spec("ensurepip") is None:
        # Debian splits ensurepip off into python3-venv; the pip of this Python can do its work.
        if find_spec("pip") is None:
            raise SetupFailed(
                f"{STARTER} comes without pip and ensurepip; install them first: "
                "apt-get install python3-venv (Debian, Ubuntu), or use a Python from python.org"
            )
        create.append("--without-pip")
    progress.run([*create, str(VENV)])
    write(VENV / "python", python_identity())


def _install(extra: str, progress: Progress) -> None:
    # Bytecode is left to the first import: most of what is installed here is never imported.
    install = [*pip("install"), "--no-compile", "--editable", f"{ROOT}[{extra}]"]
    # An editable package is not compiled, so nothing has to be there that compiles it.
    progress.run(install, {"TRIONET_PURE": "1"})


def pip(command: str) -> list[str]:
    """The beginning of a command line of the environment's pip."""
    program = [str(PYTHON), "-m", "pip"]
    if not any(VENV.glob("[Ll]ib/**/site-packages/pip")):
        program = [STARTER, "-m", "pip", "--python", str(PYTHON)]
    return [*program, command, "--disable-pip-version-check", "--no-input", "--progress-bar=off"]


def python_identity() -> str:
    """Which Python and which place the environment is for.

    Patch releases share one: the system's 3.11.2 and somebody's own 3.11.7 started in turns must
    not rebuild it each time.
    """
    return f"{sys.implementation.cache_tag} {ROOT}"


def _expected_stamp() -> str:
    digest = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    return f"{digest} {python_identity()}"


def _stamp_file(extra: str) -> Path:
    return VENV / f"installed-{extra}"


def _stamp(extra: str) -> str | None:
    return read(_stamp_file(extra)) if PYTHON.exists() else None


def read(path: Path) -> str | None:
    """What a file says, if it is there."""
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return None


def write(path: Path, text: str) -> None:
    """Replace a file in one piece."""
    whole = path.with_name(path.name + ".new")
    whole.write_text(text, "utf-8")
    whole.replace(path)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """A block that one process at a time is in; the others wait, and say so."""
    with path.open("w") as file:
        os.set_inheritable(file.fileno(), True)
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print("trionet: another start is setting up .venv; waiting", file=sys.stderr)
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Progress:
    """One line for the whole set-up; on a terminal its end shows what happens right now."""

    def __init__(self, title: str, stream: IO[str] | None = None) -> None:
        self._title = title
        self._stream = sys.stderr if stream is None else stream
        self._live = self._stream.isatty()
        self._started = time.monotonic()

    def __enter__(self) -> Progress:
        self._show(f"{self._title} ...")
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._live:
            self._show(f"\r\033[K{self._title} ...")
        outcome = "done" if kind is None else "failed"
        self._show(f" {outcome} after {time.monotonic() - self._started:.0f} s\n")

    def run(self, command: Sequence[str], variables: Mapping[str, str] | None = None) -> None:
        """Run one tool; its output appears only when it fails, and then all of it.

        Args:
            command: its command line.
            variables: what its environment has besides this one's.
        """
        output = []
        environment = {**os.environ, **(variables or {})}
        # What lies in front of the environment on the path is not part of it: pip would take the
        # compiled package there for what is to be replaced, and remove it.
        environment.pop("PYTHONPATH", None)
        with subprocess.Popen(
            command,
            env=environment,
            close_fds=False,  # the tool holds the lock too, also when this process is killed
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as tool:
            assert tool.stdout is not None
            for line in tool.stdout:
                output.append(line)
                if self._live:
                    columns = shutil.get_terminal_size().columns - 1
                    self._show("\r\033[K" + f"{self._title} ... {line.strip()}"[:columns])
        if tool.returncode:
            raise SetupFailed(
                f"`{' '.join(command)}` failed (exit status {tool.returncode}):\n{''.join(output)}"
            )

    def _show(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
