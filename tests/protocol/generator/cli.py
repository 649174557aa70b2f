"""Write the generated modules, or compare them with what is committed."""

from __future__ import annotations

import argparse
from functools import cache
from importlib.metadata import version
from pathlib import Path

from .apis import APIS, DATA
from .modules import api_keys_module, api_modules, error_codes_module, registry_module
from .schema import load_api

ROOT = Path(__file__).parents[3]
PROTOCOL = ROOT / "trionet" / "protocol"
PAGE = ROOT / "docs" / "reference" / "coverage.md"

#: The generated text names this version as its source.
KIO_VERSION = "0.6.5"
#: Whose protocol kio's metadata describe.
KAFKA_VERSION = "4.2"

OLDER = '''\
"""Codecs of versions before the first flexible one (KIP-482), imported when a peer uses them."""
'''


@cache
def generate() -> dict[Path, str]:
    """Every generated file's path below ``trionet/protocol`` and its text."""
    if version("kio") != KIO_VERSION:
        raise SystemExit(f"kio {KIO_VERSION} is needed, {version('kio')} is installed")
    apis = [load_api(module) for module in APIS]
    files = {
        Path("api_keys.py"): api_keys_module(),
        Path("error_codes.py"): error_codes_module(),
        Path("messages/registry.py"): registry_module(apis),
        Path("messages/__init__.py"): '"""The generated messages: one module per API."""\n',
        Path("messages/older/__init__.py"): OLDER,
    }
    for api in [*apis, *(load_api(module) for module in DATA)]:
        for name, text in api_modules(api).items():
            files["messages" / name] = text
    return files


def differences(files: dict[Path, str], root: Path) -> list[str]:
    """The names of files that are missing, stale or no longer generated."""
    stale = [
        str(name)
        for name, text in files.items()
        if not (root / name).is_file() or (root / name).read_text("utf-8") != text
    ]
    known = {root / name for name in files}
    left = [
        str(path.relative_to(root))
        for path in (root / "messages").rglob("*.py")
        if path not in known
    ]
    return sorted(stale + left)


@cache
def coverage() -> str:
    """The page of APIs."""
    # It reads the package, whose codecs may not be there before they are generated.
    from .coverage import coverage_page

    return coverage_page(KAFKA_VERSION)


def is_current(page: Path) -> bool:
    """Whether the page of APIs says what is so."""
    return page.is_file() and page.read_text("utf-8") == coverage()


def main(argv: list[str], root: Path = PROTOCOL, page: Path = PAGE) -> int:
    """Generate below ``root``, and ``page``; or, with ``--check``, compare.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(prog="generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    check = parser.parse_args(argv).check
    files = generate()
    changed = differences(files, root)
    if check:
        changed += [] if is_current(page) else [page.name]
        for name in changed:
            print(f"{name}: differs from what the generator writes")
        return 1 if changed else 0
    for path, text in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
    changed += [] if is_current(page) else [page.name]
    page.write_text(coverage(), "utf-8")
    print(f"{len(files) + 1} files written, {len(changed)} of them changed")
    return 0
