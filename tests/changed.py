"""`python3 tests changed`: the tests that are nearest to a change, in about a minute."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
#: What looks at all sources, and takes seconds.
ALWAYS = (
    "tests/test_tidy.py",
    "tests/test_layers.py",
    "tests/test_exports.py",
    "tests/test_lint.py",
)


def main(arguments: list[str]) -> int:
    """Run the tests; the exit status is pytest's, or 2 if there is nothing to go by."""
    parser = argparse.ArgumentParser(
        prog="python3 tests changed",
        description="Run the quick tests that are nearest to what differs from the last commit, or,"
        " if nothing does, to what that commit changed. Before you submit, run python3 tests.",
    )
    parser.add_argument("--since", metavar="REVISION", help="what differs from this revision")
    chosen, others = parser.parse_known_args(arguments)
    try:
        paths = changed_paths(ROOT, chosen.since)
    except (OSError, subprocess.CalledProcessError) as error:
        detail = getattr(error, "stderr", "") or error
        print(f"python3 tests changed: no changes without git: {detail}".rstrip(), file=sys.stderr)
        return 2
    tests = list(dict.fromkeys([*ALWAYS, *nearest(paths, ROOT)]))
    print(f"{len(paths)} files changed; running {' '.join(tests)}", flush=True)
    return int(pytest.main([*tests, "-m", "not slow", *others]))


def changed_paths(root: Path, since: str | None) -> list[str]:
    """What differs from a revision, files that git does not know yet included.

    Args:
        root: of the checkout.
        since: the revision; None for the last commit, or the one before it if nothing differs.

    Raises:
        CalledProcessError: this is no checkout, or it has no such revision.
    """
    new = _git(root, "ls-files", "--others", "--exclude-standard")
    changed = _git(root, "diff", "--name-only", since or "HEAD")
    if not changed and not new and since is None:
        changed = _git(root, "diff", "--name-only", "HEAD~1", "HEAD")
    return sorted({*changed, *new})


def _git(root: Path, *arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def nearest(paths: Iterable[str], root: Path) -> Iterator[str]:
    """The files of tests, and folders of them, for what has changed."""
    for path in map(Path, paths):
        match path.parts:
            case ("trionet", *folders, _):
                yield from _in_folder(root, Path("tests", *folders), path.stem)
            case ("tests", *_, name) if name.startswith("test_"):
                if (root / path).exists():
                    yield path.as_posix()
            case ("tests", *_):
                yield from _importers(root, path)
            case ("docs" | "README.md", *_):
                yield from ("tests/docs", "tests/test_docs.py")
            case ("demo", *_):
                yield "tests/demo"
            case (".ci" | "pyproject.toml", *_):
                yield from ("tests/test_setup.py", "tests/test_compile_hook.py")


def _in_folder(root: Path, folder: Path, stem: str) -> list[str]:
    """The tests in the folder that mirrors a module's, or in the nearest above it."""
    while not (root / folder).is_dir():
        folder = folder.parent
    # Beside what has no folder are the tests of everything.
    pattern = f"test_{stem.strip('_')}*.py" if folder == Path("tests") else "test_*.py"
    return _relative((root / folder).glob(pattern), root)


def _importers(root: Path, path: Path) -> list[str]:
    """The tests that import a module that only tests use."""
    if path.suffix != ".py" or path.stem.startswith("__"):
        return []
    name = re.compile(rf"^\s*(from|import)\b.*\b{re.escape(path.stem)}\b", re.MULTILINE)
    files = (root / "tests").rglob("test_*.py")
    return _relative((each for each in files if name.search(each.read_text("utf-8"))), root)


def _relative(files: Iterable[Path], root: Path) -> list[str]:
    return sorted(each.relative_to(root).as_posix() for each in files)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
