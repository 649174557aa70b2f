"""The package as pip installs it where there is a C compiler: compiled, in `.venv/compiled`.

`python3 tests compiled` tests it, and `python3 tests bench` measures it. It lies in front of the
sources on the path of whatever is started, and of everything that this starts in turn. A folder is
named by what went into it, and appears in one piece; the ones used last are kept, so that two
states of the sources can be compared without compiling in between.

As `environment.py` this runs on a bare Python.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from environment import PYTHON, ROOT, VENV, Progress, SetupFailed, locked, pip, python_identity

FOLDER = VENV / "compiled"
FOLDERS_KEPT = 4
HOOK = ROOT / ".ci" / "compile_hot_path.py"
#: What goes into a wheel, or decides what does.
SOURCES = (
    "trionet/**/*.py",
    "trionet/**/*.toml",
    "trionet/py.typed",
    ".ci/*.py",
    "pyproject.toml",
    "README.md",
)


def obstacle() -> str:
    """Why nothing can be compiled here; empty when it can. The environment must be there."""
    command = [str(PYTHON), str(HOOK)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SetupFailed(f"`{PYTHON} {HOOK}` failed:\n{done.stderr}")
    return done.stdout.strip()


def put_in_front() -> None:
    """Build the compiled package, unless that was done; what is started from here on imports it."""
    home = FOLDER / _digest()
    if not home.exists():
        FOLDER.mkdir(exist_ok=True)
        with locked(VENV / "lock"):
            if not home.exists():  # made while we waited
                with Progress("trionet: compiling (once for each change)") as progress:
                    _build(home, progress)
    os.utime(str(home))
    path = [str(home / "package"), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(path)
    # Without, `python -m` would find the sources in the current folder first.
    os.environ["PYTHONSAFEPATH"] = "1"


def _digest() -> str:
    digest = hashlib.sha256(python_identity().encode())
    for path in sorted(path for pattern in SOURCES for path in ROOT.glob(pattern)):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(ROOT)} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def _build(home: Path, progress: Progress) -> None:
    new = FOLDER / "new"
    shutil.rmtree(str(new), ignore_errors=True)  # of an interrupted start
    options = ["--no-deps", "--no-build-isolation", "--wheel-dir", str(new / "wheel")]
    # 0: a wheel that is not compiled would be no use here, so that an error is one.
    progress.run([*pip("wheel"), *options, str(ROOT)], {"TRIONET_PURE": "0"})
    [wheel] = (new / "wheel").iterdir()
    options = ["--no-deps", "--no-index", "--no-compile", "--target", str(new / "package")]
    progress.run([*pip("install"), *options, str(wheel)])
    new.rename(home)
    by_use = sorted(FOLDER.iterdir(), key=lambda folder: folder.stat().st_mtime)
    for folder in by_use[:-FOLDERS_KEPT]:
        shutil.rmtree(str(folder))
